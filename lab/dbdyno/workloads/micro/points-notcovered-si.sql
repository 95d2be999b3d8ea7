-- @description Looks 100 values up in a secondary index, and returns a column that the index lacks.
--
-- Keys: uniform; each is from another hundredth of the values, and each value is in one row.
-- @include _tables.sql
-- @parameter ks = list(100, uniform(1, rows(micro)), pick='distinct')
-- @transaction points-notcovered-si
-- @statement rows=100 access=micro_k
SELECT c FROM micro WHERE k IN (:ks);
