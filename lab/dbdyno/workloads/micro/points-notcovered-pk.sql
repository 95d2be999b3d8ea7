-- @description Looks 100 values up in the primary key, and returns a column that the index lacks.
--
-- Keys: uniform; each is from another hundredth of the values, and each value is in one row.
-- @include _tables.sql
-- @parameter ids = list(100, uniform(1, rows(micro)), pick='distinct')
-- @transaction points-notcovered-pk
-- @statement rows=100 access=primary
SELECT c FROM micro WHERE id IN (:ids);
