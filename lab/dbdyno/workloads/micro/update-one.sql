-- @description Updates the same row from all connections, which wait for each other.
-- @include _tables.sql
-- @transaction update-one
-- @statement rows=1 access=primary
UPDATE micro SET n = n + 1 WHERE id = 1;
