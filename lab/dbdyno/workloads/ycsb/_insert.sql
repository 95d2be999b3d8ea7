-- Inserts rows with keys above all others.
-- @parameter new_key = sequence(rows(usertable) + 1)
-- @parameter value0 = text(100)
-- @parameter value1 = text(100)
-- @parameter value2 = text(100)
-- @parameter value3 = text(100)
-- @parameter value4 = text(100)
-- @parameter value5 = text(100)
-- @parameter value6 = text(100)
-- @parameter value7 = text(100)
-- @parameter value8 = text(100)
-- @parameter value9 = text(100)
-- @transaction insert weight=5
-- @statement name=insert rows=1
INSERT INTO usertable (ycsb_key, field0, field1, field2, field3, field4, field5, field6, field7, field8, field9)
VALUES (:new_key, :value0, :value1, :value2, :value3, :value4, :value5, :value6, :value7, :value8, :value9);
