-- @description Looks up 100 values in the primary key, and returns another column.
--
-- Keys: uniform, one from each hundredth of the values; each value occurs in one row.
-- @include _tables.sql
-- @parameter ids = list(100, uniform(1, rows(micro)), pick='distinct')
-- @transaction points-notcovered-pk
-- @statement rows=100 access=primary
SELECT c FROM micro WHERE id IN (:ids);
