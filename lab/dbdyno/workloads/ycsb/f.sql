-- @description 50 % reads of a row, 50 % reads of a row and updates of one of its fields (YCSB F, user database).
--
-- As in YCSB, the read and the update are two autocommitted statements.
-- @include _table.sql
-- @parameter key = zipfian(1, rows(usertable), exponent=0.99, scattered=true)
-- @parameter value = text(100)
-- @transaction read weight=10
-- @statement name=read rows=1 access=primary
SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 FROM usertable WHERE ycsb_key = :key;
-- @transaction modify-field0 weight=1
-- @statement name=read rows=1 access=primary
SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 FROM usertable WHERE ycsb_key = :key;
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field0 = :value WHERE ycsb_key = :key;
-- @transaction modify-field1 weight=1
-- @statement name=read rows=1 access=primary
SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 FROM usertable WHERE ycsb_key = :key;
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field1 = :value WHERE ycsb_key = :key;
-- @transaction modify-field2 weight=1
-- @statement name=read rows=1 access=primary
SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 FROM usertable WHERE ycsb_key = :key;
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field2 = :value WHERE ycsb_key = :key;
-- @transaction modify-field3 weight=1
-- @statement name=read rows=1 access=primary
SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 FROM usertable WHERE ycsb_key = :key;
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field3 = :value WHERE ycsb_key = :key;
-- @transaction modify-field4 weight=1
-- @statement name=read rows=1 access=primary
SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 FROM usertable WHERE ycsb_key = :key;
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field4 = :value WHERE ycsb_key = :key;
-- @transaction modify-field5 weight=1
-- @statement name=read rows=1 access=primary
SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 FROM usertable WHERE ycsb_key = :key;
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field5 = :value WHERE ycsb_key = :key;
-- @transaction modify-field6 weight=1
-- @statement name=read rows=1 access=primary
SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 FROM usertable WHERE ycsb_key = :key;
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field6 = :value WHERE ycsb_key = :key;
-- @transaction modify-field7 weight=1
-- @statement name=read rows=1 access=primary
SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 FROM usertable WHERE ycsb_key = :key;
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field7 = :value WHERE ycsb_key = :key;
-- @transaction modify-field8 weight=1
-- @statement name=read rows=1 access=primary
SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 FROM usertable WHERE ycsb_key = :key;
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field8 = :value WHERE ycsb_key = :key;
-- @transaction modify-field9 weight=1
-- @statement name=read rows=1 access=primary
SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 FROM usertable WHERE ycsb_key = :key;
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field9 = :value WHERE ycsb_key = :key;
