-- @description Updates an indexed column of 100 rows, found by their primary keys, in one statement.
--
-- Keys: uniform, one from each hundredth of the table, in ascending order, so that two statements rarely deadlock.
-- @include _tables.sql
-- @parameter ids = list(100, uniform(1, rows(micro)), pick='distinct')
-- @transaction update-inlist
-- @statement rows=100 access=primary
UPDATE micro SET u = u + 1 WHERE id IN (:ids);
