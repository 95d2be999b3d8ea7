-- @description Reads all rows of the table; no row matches the condition, so none is sent.
--
-- No index contains the column c, so the server reads the whole table.
-- @include _tables.sql
-- @transaction scan
-- @statement rows=0 access=scan
SELECT id, k, c, pad FROM micro WHERE LENGTH(c) < 0;
