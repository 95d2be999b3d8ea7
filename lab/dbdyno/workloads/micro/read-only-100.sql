-- @description Ten reads of one row and four ranges of 100 rows (plain, sum, sorted, distinct), in one transaction.
--
-- Keys: uniform.
-- @include _tables.sql
-- @parameter id = uniform(1, rows(micro))
-- @parameter low = uniform(1, rows(micro) - 99)
-- @transaction read-only
BEGIN;
-- @statement name=point rows=1 repeat=10 draw=id access=primary
SELECT c FROM micro WHERE id = :id;
-- @statement name=range rows=100 access=primary
SELECT c FROM micro WHERE id BETWEEN :low AND :low + 99;
-- @statement name=sum rows=1 draw=low access=primary
SELECT SUM(k) FROM micro WHERE id BETWEEN :low AND :low + 99;
-- @statement name=order rows=100 draw=low access=primary
SELECT c FROM micro WHERE id BETWEEN :low AND :low + 99 ORDER BY c;
-- @statement name=distinct rows=100 draw=low access=primary
SELECT DISTINCT c FROM micro WHERE id BETWEEN :low AND :low + 99 ORDER BY c;
COMMIT;
