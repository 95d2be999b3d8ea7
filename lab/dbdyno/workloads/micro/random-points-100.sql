-- @description Reads 100 rows by their primary keys, in one statement.
--
-- Keys: uniform, one from each hundredth of the table, so that all differ and the number of rows is exact.
-- @include _tables.sql
-- @parameter ids = list(100, uniform(1, rows(micro)), pick='distinct')
-- @transaction random-points
-- @statement rows=100 access=primary
SELECT id, k, c, pad FROM micro WHERE id IN (:ids);
