-- @description Sums 100 consecutive primary keys; the query reads no other column.
--
-- Keys: the start of the range is uniform. The result is one row, so the test measures no result transfer.
-- @include _tables.sql
-- @parameter low = uniform(1, rows(micro) - 99)
-- @transaction range-covered-pk
-- @statement rows=1 access=primary,covering
SELECT SUM(id) FROM micro WHERE id BETWEEN :low AND :low + 99;
