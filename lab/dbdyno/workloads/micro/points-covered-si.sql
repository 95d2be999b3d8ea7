-- @description Looks up 100 values in a secondary index, and returns only that column.
--
-- Keys: uniform, one from each hundredth of the values; each value occurs in one row.
-- @include _tables.sql
-- @parameter ks = list(100, uniform(1, rows(micro)), pick='distinct')
-- @transaction points-covered-si
-- @statement rows=100 access=micro_k,covering
SELECT k FROM micro WHERE k IN (:ks);
