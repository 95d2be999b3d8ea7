-- @description Updates an unindexed column of one row, found by its primary key.
--
-- Keys: uniform.
-- @include _tables.sql
-- @parameter id = uniform(1, rows(micro))
-- @transaction update-nonindex
-- @statement rows=1 access=primary
UPDATE micro SET n = n + 1 WHERE id = :id;
