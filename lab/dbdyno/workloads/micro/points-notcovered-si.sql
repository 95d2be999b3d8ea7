-- @description Looks up 100 values in a secondary index, and returns a column that is not in the index.
--
-- Keys: uniform, one from each hundredth of the values; each value occurs in one row.
-- @include _tables.sql
-- @parameter ks = list(100, uniform(1, rows(micro)), pick='distinct')
-- @transaction points-notcovered-si
-- @statement rows=100 access=micro_k
SELECT c FROM micro WHERE k IN (:ks);
