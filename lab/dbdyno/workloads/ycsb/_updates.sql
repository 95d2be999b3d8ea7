-- Updates of one field; each of the ten fields has weight 1, so their weights add up to 10.
-- @parameter key = zipfian(1, rows(usertable), exponent=0.99, scattered=true)
-- @parameter value = text(100)
-- @transaction update-field0 weight=1
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field0 = :value WHERE ycsb_key = :key;
-- @transaction update-field1 weight=1
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field1 = :value WHERE ycsb_key = :key;
-- @transaction update-field2 weight=1
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field2 = :value WHERE ycsb_key = :key;
-- @transaction update-field3 weight=1
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field3 = :value WHERE ycsb_key = :key;
-- @transaction update-field4 weight=1
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field4 = :value WHERE ycsb_key = :key;
-- @transaction update-field5 weight=1
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field5 = :value WHERE ycsb_key = :key;
-- @transaction update-field6 weight=1
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field6 = :value WHERE ycsb_key = :key;
-- @transaction update-field7 weight=1
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field7 = :value WHERE ycsb_key = :key;
-- @transaction update-field8 weight=1
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field8 = :value WHERE ycsb_key = :key;
-- @transaction update-field9 weight=1
-- @statement name=update rows=1 access=primary
UPDATE usertable SET field9 = :value WHERE ycsb_key = :key;
