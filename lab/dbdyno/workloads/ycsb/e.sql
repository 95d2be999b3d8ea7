-- @description Reads short ranges of 1 to 100 rows 95 %, inserts 5 %: messages of a thread (YCSB E).
--
-- Ranges begin at loaded rows, of which 100 follow, so that each has exactly as many rows as its limit.
-- @include _table.sql
-- @parameter start = zipfian(1, rows(usertable) - 99, exponent=0.99, scattered=true)
-- @parameter length = uniform(1, 100)
-- @include _insert.sql
-- @transaction scan weight=95
-- @statement name=scan rows_parameter=length access=primary
SELECT ycsb_key, field0, field1, field2, field3, field4, field5, field6, field7, field8, field9
FROM usertable WHERE ycsb_key >= :start ORDER BY ycsb_key LIMIT :length;
