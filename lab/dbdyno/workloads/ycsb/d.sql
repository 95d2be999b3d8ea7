-- @description 95 % reads of the latest rows, 5 % inserts (YCSB D, user status updates).
--
-- Each connection reads the rows that it inserted itself, the latest ones most often, and then the last loaded rows. All
-- of these are committed, so every read finds its row.
-- @include _table.sql
-- @parameter key = latest(new_key, 1, rows(usertable), exponent=0.99)
-- @include _insert.sql
-- @transaction read weight=95
-- @statement name=read rows=1 access=primary
SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 FROM usertable WHERE ycsb_key = :key;
