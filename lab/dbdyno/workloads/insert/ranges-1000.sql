-- @description Reads 10 entries of a secondary index while 1,000 rows per second are inserted and as many deleted.
-- @option write_rate = 1_000 Rows that are inserted, and rows that are deleted, per second
-- @include _tables.sql
-- @parameter price = uniform(1, 9_000)
-- @transaction range
-- @statement rows=10 access=sales_price
SELECT price, customer FROM sales WHERE price >= :price ORDER BY price, customer LIMIT 10;
-- @include _writer.sql
