-- @description Reads 10 rows by their primary keys, in one statement.
--
-- Keys: uniform, one from each tenth of the table, so that all differ and the number of rows is exact.
-- @include _tables.sql
-- @parameter ids = list(10, uniform(1, rows(micro)), pick='distinct')
-- @transaction random-points
-- @statement rows=10 access=primary
SELECT id, k, c, pad FROM micro WHERE id IN (:ids);
