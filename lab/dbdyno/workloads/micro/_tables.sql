-- The tables of all tests in micro. All tests share one loaded copy.
--
-- id is the primary key, 1 to the number of rows. k is indexed and has the same values in another order: 2,147,483,647
-- is a prime, so every value occurs in exactly one row, and a lookup by k returns an exact number of rows too. No test
-- changes id or k. Updates change u, which is indexed, and n, which is not. churn is empty at first; only `insert` uses it.
-- @option rows = 1_000_000 Rows of the table
-- @table micro rows=rows
-- @column id = sequence()
-- @column k = sequence(1, 2_147_483_647, last=rows)
-- @column u = uniform(1, rows)
-- @column n = constant(0)
-- @column c = text(120)
-- @column pad = text(60)
-- @setup
CREATE TABLE micro (
  id INT NOT NULL PRIMARY KEY,
  k INT NOT NULL,
  u INT NOT NULL,
  n INT NOT NULL,
  c CHAR(120) NOT NULL,
  pad CHAR(60) NOT NULL
);
CREATE TABLE churn (
  id BIGINT NOT NULL PRIMARY KEY,
  k INT NOT NULL,
  n INT NOT NULL,
  c CHAR(120) NOT NULL,
  pad CHAR(60) NOT NULL
);
CREATE INDEX churn_k ON churn (k);
-- @after
CREATE INDEX micro_k ON micro (k);
CREATE INDEX micro_u ON micro (u);
