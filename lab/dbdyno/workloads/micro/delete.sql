-- @description Deletes one row by its primary key and inserts it again, in one transaction.
--
-- A DELETE alone would soon find no rows. The ids come in a scattered order in which each id occurs once before any
-- occurs again, so that no two connections delete the same row, and every DELETE finds one.
-- @include _tables.sql
-- @parameter id = sequence(1, rows(micro), order='random')
-- @transaction delete
BEGIN;
-- @statement name=delete rows=1 access=primary
DELETE FROM micro WHERE id = :id;
-- @statement name=insert-again rows=1
INSERT INTO micro (id, k, u, n, c, pad) VALUES (:id, 1 + MOD(2147483647 * (:id - 1), {rows}), 1, 0,
  'a row that takes the place of the deleted one, and that has as many characters as it: 120 in this column, 60 in pad. 1',
  'a row that takes the place of the deleted one, 60 characters');
COMMIT;
