-- @description Deletes one row by its primary key and inserts it again, in one transaction.
--
-- With DELETE alone the rows would run out, and later trials would find none. Keys: in a scattered order without
-- repetition until all were used, so that no two connections change the same row and every DELETE finds one. k is
-- computed from id as in the loaded rows.
-- @include _tables.sql
-- @parameter id = sequence(1, rows(micro), order='random')
-- @transaction delete
BEGIN;
-- @statement name=delete rows=1 access=primary
DELETE FROM micro WHERE id = :id;
-- @statement name=insert-again rows=1
INSERT INTO micro (id, k, u, n, c, pad) VALUES (:id, 1 + MOD(2147483647 * (:id - 1), {rows}), 1, 0,
  CONCAT('a row that was deleted and inserted again, whose texts are as long as those of the loaded rows, with its id: .', :id),
  'an inserted row: 60 characters in this column ..............');
COMMIT;
