-- @description Reads the same 100 rows by their primary keys, in one statement, from all connections.
--
-- Keys: always 1 to 100, so a few pages are read again and again.
-- @include _tables.sql
-- @parameter ids = list(100, uniform(1, 100), pick='distinct')
-- @transaction hot-points
-- @statement rows=100 access=primary
SELECT id, k, c, pad FROM micro WHERE id IN (:ids);
