-- @description Sums 100 consecutive entries of a secondary index; the query reads no other column.
--
-- Keys: the start of the range is uniform. The result is one row, so the test measures no result transfer.
-- @include _tables.sql
-- @parameter low = uniform(1, rows(micro) - 99)
-- @transaction range-covered-si
-- @statement rows=1 access=micro_k,covering
SELECT SUM(k) FROM micro WHERE k BETWEEN :low AND :low + 99;
