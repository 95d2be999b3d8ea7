-- @description 50 % reads of a row, 50 % updates of one field (YCSB A, session store).
-- @include _table.sql
-- @include _updates.sql
-- @transaction read weight=10
-- @statement name=read rows=1 access=primary
SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 FROM usertable WHERE ycsb_key = :key;
