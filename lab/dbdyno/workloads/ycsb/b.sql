-- @description 95 % reads of a row, 5 % updates of one field (YCSB B, photo tagging).
-- @include _table.sql
-- @include _updates.sql
-- @transaction read weight=190
-- @statement name=read rows=1 access=primary
SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 FROM usertable WHERE ycsb_key = :key;
