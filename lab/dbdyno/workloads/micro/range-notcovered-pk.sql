-- @description Reads 100 rows with consecutive primary keys and sums a column of them.
--
-- Keys: the start of the range is uniform. The result is one row, so the test measures no result transfer.
-- @include _tables.sql
-- @parameter low = uniform(1, rows(micro) - 99)
-- @transaction range-notcovered-pk
-- @statement rows=1 access=primary
SELECT SUM(LENGTH(c)) FROM micro WHERE id BETWEEN :low AND :low + 99;
