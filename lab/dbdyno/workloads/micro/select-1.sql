-- @description Sends SELECT 1, which reads no table: the cost of protocol and parser alone.
--
-- It uses no table; it loads those of the other tests, so that all tests of micro share one copy.
-- @include _tables.sql
-- @transaction select-1
-- @statement rows=1
SELECT 1;
