-- @description Reads rows by primary key while 1,000 rows per second are inserted and as many deleted.
-- @option write_rate = 1_000 Rows that are inserted, and rows that are deleted, per second
-- @include _tables.sql
-- @parameter id = uniform(reserve + 1, reserve + rows)
-- @transaction point
-- @statement rows=1 access=primary
SELECT price, customer, data FROM sales WHERE id = :id;
-- @include _writer.sql
