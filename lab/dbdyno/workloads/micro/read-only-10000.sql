-- @description Ten reads of one row and four ranges of 10,000 rows (plain, sum, sorted, distinct), in one transaction.
--
-- Keys: uniform. The table needs at least 10,000 rows.
-- @include _tables.sql
-- @parameter id = uniform(1, rows(micro))
-- @parameter low = uniform(1, rows(micro) - 9999)
-- @transaction read-only
BEGIN;
-- @statement name=point rows=1 repeat=10 draw=id access=primary
SELECT c FROM micro WHERE id = :id;
-- @statement name=range rows=10000 access=primary
SELECT c FROM micro WHERE id BETWEEN :low AND :low + 9999;
-- @statement name=sum rows=1 draw=low access=primary
SELECT SUM(k) FROM micro WHERE id BETWEEN :low AND :low + 9999;
-- @statement name=order rows=10000 draw=low access=primary
SELECT c FROM micro WHERE id BETWEEN :low AND :low + 9999 ORDER BY c;
-- @statement name=distinct rows=10000 draw=low access=primary
SELECT DISTINCT c FROM micro WHERE id BETWEEN :low AND :low + 9999 ORDER BY c;
COMMIT;
