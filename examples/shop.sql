-- A small shop: customers look at items, most often at popular ones, and sometimes buy one.
-- It runs unchanged on MariaDB, MySQL and PostgreSQL. docs/experiment.md describes the annotations (-- @).

-- @parameter item = zipfian(1, rows(item), exponent=0.9)
-- @parameter customer = uniform(1, rows(customer))
-- @parameter purchase = sequence()
-- @parameter price = result(read_price)

-- @table customer rows=1_000_000
-- @column id = sequence()
-- @column name = text(8, 30)
-- @column born = date('1950-01-01', '2010-12-31', nulls=0.1)

-- @table item rows=5_000_000
-- @column id = sequence()
-- @column seller = foreign_key('customer', 'id', distribution='zipfian')
-- @column price = decimal(1, 500, scale=2)
-- @column state = one_of('new', 'used', weights=[9, 1])
-- @column description = text(40, 120)

-- @setup
CREATE TABLE IF NOT EXISTS customer (
  id INTEGER NOT NULL PRIMARY KEY,
  name VARCHAR(40) NOT NULL,
  born DATE
);
CREATE TABLE IF NOT EXISTS item (
  id INTEGER NOT NULL PRIMARY KEY,
  seller INTEGER NOT NULL,
  price DECIMAL(10, 2) NOT NULL,
  state VARCHAR(10) NOT NULL,
  description VARCHAR(120) NOT NULL
);
CREATE TABLE IF NOT EXISTS purchase (
  id BIGINT NOT NULL PRIMARY KEY,
  item INTEGER NOT NULL,
  customer INTEGER NOT NULL,
  price DECIMAL(10, 2) NOT NULL
);

-- @after
CREATE INDEX item_of_seller ON item (seller);

-- @transaction browse weight=9
-- @statement name=show_item rows=1 repeat=5 draw=item
SELECT i.description, i.price, c.name FROM item i JOIN customer c ON c.id = i.seller WHERE i.id = :item;

-- @transaction buy
BEGIN;
-- @statement name=read_price rows=1
SELECT price FROM item WHERE id = :item;
-- @statement name=purchase rows=1 mode=text
INSERT INTO purchase (id, item, customer, price) VALUES (:purchase, :item, :customer, :price);
COMMIT;
