-- @description Reads one row by its primary key.
--
-- Keys: uniform.
-- @include _tables.sql
-- @parameter id = uniform(1, rows(micro))
-- @transaction point-query
-- @statement rows=1 access=primary
SELECT c FROM micro WHERE id = :id;
