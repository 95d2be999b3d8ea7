-- @description 95 % range scans of 1 to 100 rows, 5 % inserts (YCSB E, threaded conversations).
--
-- Every range starts at a loaded row with at least 99 loaded rows above it, so it returns exactly LIMIT rows.
-- @include _table.sql
-- @parameter start = zipfian(1, rows(usertable) - 99, exponent=0.99, scattered=true)
-- @parameter length = uniform(1, 100)
-- @include _insert.sql
-- @transaction scan weight=95
-- @statement name=scan rows_parameter=length access=primary
SELECT ycsb_key, field0, field1, field2, field3, field4, field5, field6, field7, field8, field9
FROM usertable WHERE ycsb_key >= :start ORDER BY ycsb_key LIMIT :length;
