-- @description Reads 100 rows with consecutive values of a secondary index, which are scattered over the table.
--
-- Keys: the start of the range is uniform. The result is one row, so the test measures no result transfer.
-- @include _tables.sql
-- @parameter low = uniform(1, rows(micro) - 99)
-- @transaction range-notcovered-si
-- @statement rows=1 access=micro_k
SELECT SUM(LENGTH(c)) FROM micro WHERE k BETWEEN :low AND :low + 99;
