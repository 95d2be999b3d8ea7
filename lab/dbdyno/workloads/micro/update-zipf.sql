-- @description Updates an unindexed column of one row; the keys have a Zipf distribution.
--
-- Keys: Zipf's law with exponent 0.8; low ids are the most frequent.
-- @include _tables.sql
-- @parameter id = zipfian(1, rows(micro), exponent=0.8)
-- @transaction update-zipf
-- @statement rows=1 access=primary
UPDATE micro SET n = n + 1 WHERE id = :id;
