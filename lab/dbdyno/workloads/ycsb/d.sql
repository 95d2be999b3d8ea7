-- @description Reads the latest rows 95 %, inserts 5 %: status updates (YCSB D).
--
-- Each connection reads the rows that it inserted itself, the latest ones most often, and after them the last loaded rows:
-- it knows that these are committed, so that every read finds its row.
-- @include _table.sql
-- @parameter key = latest(new_key, 1, rows(usertable), exponent=0.99)
-- @include _insert.sql
-- @transaction read weight=95
-- @statement name=read rows=1 access=primary
SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 FROM usertable WHERE ycsb_key = :key;
