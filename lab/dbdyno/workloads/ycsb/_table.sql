-- The table of all workloads in ycsb, after the Yahoo! Cloud Serving Benchmark (Cooper et al., "Benchmarking cloud serving
-- systems with YCSB", SoCC 2010): a key and ten fields of 100 characters. YCSB scatters popular rows by hashing the key
-- to a text. Here the key is a number, and `scattered` in the key distribution does the same.
-- @option rows = 1_000_000 Rows of the table
-- @table usertable rows=rows
-- @column ycsb_key = sequence()
-- @column field0 = text(100)
-- @column field1 = text(100)
-- @column field2 = text(100)
-- @column field3 = text(100)
-- @column field4 = text(100)
-- @column field5 = text(100)
-- @column field6 = text(100)
-- @column field7 = text(100)
-- @column field8 = text(100)
-- @column field9 = text(100)
-- @setup
CREATE TABLE usertable (
  ycsb_key BIGINT NOT NULL PRIMARY KEY,
  field0 VARCHAR(100) NOT NULL,
  field1 VARCHAR(100) NOT NULL,
  field2 VARCHAR(100) NOT NULL,
  field3 VARCHAR(100) NOT NULL,
  field4 VARCHAR(100) NOT NULL,
  field5 VARCHAR(100) NOT NULL,
  field6 VARCHAR(100) NOT NULL,
  field7 VARCHAR(100) NOT NULL,
  field8 VARCHAR(100) NOT NULL,
  field9 VARCHAR(100) NOT NULL
);
