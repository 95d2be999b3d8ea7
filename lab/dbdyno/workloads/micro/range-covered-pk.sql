-- @description Sums 100 consecutive keys of the primary key, which has all that the query needs.
--
-- Keys: the begin of the range is uniform. The sum is one row, so that sending rows costs nothing.
-- @include _tables.sql
-- @parameter low = uniform(1, rows(micro) - 99)
-- @transaction range-covered-pk
-- @statement rows=1 access=primary,covering
SELECT SUM(id) FROM micro WHERE id BETWEEN :low AND :low + 99;
