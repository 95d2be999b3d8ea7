-- @description Sends SELECT 1, which reads no table: the cost of protocol and parser alone.
--
-- It has the tables of the other tests only so that a suite loads one copy for all.
-- @include _tables.sql
-- @transaction select-1
-- @statement rows=1
SELECT 1;
