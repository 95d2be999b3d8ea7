-- @description Updates an indexed column of one row, found by its primary key.
--
-- Keys: uniform. u is part of one secondary index.
-- @include _tables.sql
-- @parameter id = uniform(1, rows(micro))
-- @transaction update-index
-- @statement rows=1 access=primary
UPDATE micro SET u = u + 1 WHERE id = :id;
