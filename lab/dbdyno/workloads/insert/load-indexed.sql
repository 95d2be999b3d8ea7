-- @description Inserts 10 rows per transaction in the order of the primary key, into a table with three more indexes.
--
-- Each further trial on the same data starts 100,000,000 ids higher.
-- @include _tables.sql
-- @parameter new = sequence()
-- @parameter at = uniform(1, 2_000_000_000)
-- @parameter till = uniform(1, 1_000)
-- @parameter customer = uniform(1, 100_000)
-- @parameter price = uniform(1, 10_000)
-- @transaction load-indexed
BEGIN;
-- @statement name=insert rows=1 repeat=10 draw=new,at,till,customer,price
INSERT INTO sales_indexed (id, sold_at, till, customer, price, data)
  VALUES (:new, :at, :till, :customer, :price, 'new');
COMMIT;
