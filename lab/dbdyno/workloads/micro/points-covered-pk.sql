-- @description Looks 100 values up in the primary key, and returns only that column.
--
-- Keys: uniform; each is from another hundredth of the values, and each value is in one row.
-- @include _tables.sql
-- @parameter ids = list(100, uniform(1, rows(micro)), pick='distinct')
-- @transaction points-covered-pk
-- @statement rows=100 access=primary,covering
SELECT id FROM micro WHERE id IN (:ids);
