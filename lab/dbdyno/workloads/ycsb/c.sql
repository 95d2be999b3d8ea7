-- @description Only reads of a row (YCSB C, user profile cache).
-- @include _table.sql
-- @parameter key = zipfian(1, rows(usertable), exponent=0.99, scattered=true)
-- @transaction read weight=1
-- @statement name=read rows=1 access=primary
SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 FROM usertable WHERE ycsb_key = :key;
