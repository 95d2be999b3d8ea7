-- The tables of the insert benchmark.
--
-- sales has ascending ids from 1 and three secondary indexes. Writers insert above the highest id and delete from the
-- lowest one, so the number of rows does not change. Reads use the ids above the reserve: no row there is deleted as long
-- as a trial deletes fewer rows than the reserve has. sales_log and sales_indexed are empty at first; sales_indexed also
-- has the secondary indexes.
--
-- Every trial must start with the loaded rows: write state_per = "trial" under [design] unless a group has one trial.
-- @option rows = 500_000 Rows that are read
-- @option reserve = 500_000 Rows with lower ids, which a trial may delete
-- @table sales rows=rows+reserve
-- @column id = sequence()
-- @column sold_at = uniform(1, 2_000_000_000)
-- @column till = uniform(1, 1_000)
-- @column customer = uniform(1, 100_000)
-- @column price = uniform(1, 10_000)
-- @column data = text(10)
-- @setup
CREATE TABLE sales (
  id BIGINT NOT NULL PRIMARY KEY,
  sold_at INT NOT NULL,
  till INT NOT NULL,
  customer INT NOT NULL,
  price INT NOT NULL,
  data VARCHAR(10) NOT NULL
);
CREATE TABLE sales_log (
  id BIGINT NOT NULL PRIMARY KEY,
  sold_at INT NOT NULL,
  till INT NOT NULL,
  customer INT NOT NULL,
  price INT NOT NULL,
  data VARCHAR(10) NOT NULL
);
CREATE TABLE sales_indexed (
  id BIGINT NOT NULL PRIMARY KEY,
  sold_at INT NOT NULL,
  till INT NOT NULL,
  customer INT NOT NULL,
  price INT NOT NULL,
  data VARCHAR(10) NOT NULL
);
CREATE INDEX indexed_price ON sales_indexed (price, customer);
CREATE INDEX indexed_till ON sales_indexed (till, price, customer);
CREATE INDEX indexed_time ON sales_indexed (price, sold_at, customer);
-- @after
CREATE INDEX sales_price ON sales (price, customer);
CREATE INDEX sales_till ON sales (till, price, customer);
CREATE INDEX sales_time ON sales (price, sold_at, customer);
