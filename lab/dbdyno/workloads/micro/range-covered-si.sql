-- @description Sums 100 consecutive entries of a secondary index, which has all that the query needs.
--
-- Keys: the begin of the range is uniform. The sum is one row, so that sending rows costs nothing.
-- @include _tables.sql
-- @parameter low = uniform(1, rows(micro) - 99)
-- @transaction range-covered-si
-- @statement rows=1 access=micro_k,covering
SELECT SUM(k) FROM micro WHERE k BETWEEN :low AND :low + 99;
