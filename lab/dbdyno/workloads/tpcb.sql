-- @description The default transaction of pgbench (TPC-B-like), on tables of the same names.
--
-- Each unit of scale is 1 branch, 10 tellers and 100,000 accounts. A transaction adds one amount to a random account,
-- teller and branch, and inserts it into the history, so the four sums stay equal. With a small scale all connections wait for the row of the
-- same branch; use a scale of at least the number of connections to avoid that. Keys: uniform.
--
-- Accounts and tellers belong to branches in turn, not in blocks as in pgbench; no statement depends on that.
-- @option scale = 1 Number of branches
-- @table pgbench_branches rows=scale
-- @column bid = sequence()
-- @column bbalance = constant(0)
-- @column filler = text(88)
-- @table pgbench_tellers rows="10 * scale"
-- @column tid = sequence()
-- @column bid = sequence(1, 1, last=scale)
-- @column tbalance = constant(0)
-- @column filler = text(84)
-- @table pgbench_accounts rows="100_000 * scale"
-- @column aid = sequence()
-- @column bid = sequence(1, 1, last=scale)
-- @column abalance = constant(0)
-- @column filler = text(84)
-- @setup
CREATE TABLE pgbench_branches (bid INT NOT NULL PRIMARY KEY, bbalance INT, filler CHAR(88));
CREATE TABLE pgbench_tellers (tid INT NOT NULL PRIMARY KEY, bid INT, tbalance INT, filler CHAR(84));
CREATE TABLE pgbench_accounts (aid INT NOT NULL PRIMARY KEY, bid INT, abalance INT, filler CHAR(84));
CREATE TABLE pgbench_history (tid INT, bid INT, aid INT, delta INT, mtime TIMESTAMP, filler CHAR(22));
-- @parameter aid = uniform(1, rows(pgbench_accounts))
-- @parameter tid = uniform(1, rows(pgbench_tellers))
-- @parameter bid = uniform(1, rows(pgbench_branches))
-- @parameter delta = uniform(-5000, 5000)
-- @transaction tpcb
BEGIN;
-- @statement name=account rows=1 access=primary
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
-- @statement name=balance rows=1 access=primary
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
-- @statement name=teller rows=1
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
-- @statement name=branch rows=1
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
-- @statement name=history rows=1
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
COMMIT;
