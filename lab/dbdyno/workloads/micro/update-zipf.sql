-- @description Updates a column without an index of one row; some rows are much more frequent than others.
--
-- Keys: Zipf's law with exponent 0.8; low ids are the most frequent.
-- @include _tables.sql
-- @parameter id = zipfian(1, rows(micro), exponent=0.8)
-- @transaction update-zipf
-- @statement rows=1 access=primary
UPDATE micro SET n = n + 1 WHERE id = :id;
