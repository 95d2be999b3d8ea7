-- @description Inserts one row with a rising primary key and a random value in a secondary index.
--
-- The rows go into a separate table, which is empty at first; the loaded table does not grow. Each further trial on
-- the same data starts 100,000,000 ids higher.
-- @include _tables.sql
-- @parameter id = sequence()
-- @parameter k = uniform(1, rows(micro))
-- @transaction insert
-- @statement rows=1
INSERT INTO churn (id, k, n, c, pad) VALUES (:id, :k, 0,
  'an inserted row, whose two texts are as long as those of the loaded rows: 120 characters in this column ................',
  'an inserted row: 60 characters in this column ..............');
