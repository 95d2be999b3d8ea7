-- @description Two updates, and a row deleted and inserted again, in one transaction.
--
-- Keys: uniform; those of the replaced rows in a scattered order without repetition until all were used.
-- @include _tables.sql
-- @parameter id = uniform(1, rows(micro))
-- @parameter replaced = sequence(1, rows(micro), order='random')
-- @transaction write-only
BEGIN;
-- @statement name=update-index rows=1 draw=id access=primary
UPDATE micro SET u = u + 1 WHERE id = :id;
-- @statement name=update-nonindex rows=1 draw=id access=primary
UPDATE micro SET n = n + 1 WHERE id = :id;
-- @statement name=delete rows=1 access=primary
DELETE FROM micro WHERE id = :replaced;
-- @statement name=insert-again rows=1
INSERT INTO micro (id, k, u, n, c, pad) VALUES (:replaced, 1 + MOD(2147483647 * (:replaced - 1), {rows}), 1, 0,
  CONCAT('a row that was deleted and inserted again, whose texts are as long as those of the loaded rows, with its id: .', :replaced),
  'an inserted row: 60 characters in this column ..............');
COMMIT;
