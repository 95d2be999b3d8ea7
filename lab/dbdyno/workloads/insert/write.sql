-- @description Inserts 10 rows and deletes the 10 oldest ones in one transaction, with three secondary indexes.
-- @include _tables.sql
-- @parameter new = sequence(rows + reserve + 1)
-- @parameter old = sequence()
-- @parameter at = uniform(1, 2_000_000_000)
-- @parameter till = uniform(1, 1_000)
-- @parameter customer = uniform(1, 100_000)
-- @parameter price = uniform(1, 10_000)
-- @transaction write
BEGIN;
-- @statement name=insert rows=1 repeat=10 draw=new,at,till,customer,price
INSERT INTO sales (id, sold_at, till, customer, price, data) VALUES (:new, :at, :till, :customer, :price, 'new');
-- @statement name=delete rows=1 repeat=10 draw=old
DELETE FROM sales WHERE id = :old;
COMMIT;
