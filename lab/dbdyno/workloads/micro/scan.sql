-- @description Reads all rows of the table; none fulfils the condition, so no row is sent.
--
-- No index has the column c, so the server reads the table itself.
-- @include _tables.sql
-- @transaction scan
-- @statement rows=0 access=scan
SELECT id, k, c, pad FROM micro WHERE LENGTH(c) < 0;
