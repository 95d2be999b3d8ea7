-- @description The five transactions of TPC-C in their specified mix; a result is not an audited TPC-C result.
-- @option warehouses = 1 Warehouses; each has ten districts, and 100 MB of data
-- @option items = 100_000 Items, and rows in stock of each warehouse
-- @option customers = 3_000 Customers and initial orders of each district, at least 1,000
-- @pauses false
-- @main_statement new-order
--
-- The tables, their rows, the transactions and the consistency conditions follow the TPC-C specification, revision 5.11;
-- its clauses are named below. Each connection is a terminal of one warehouse. With `pauses = true` it waits for the keying
-- and think times of the specification.

-- Clause 2.1.6: A is 8191 for items, 1023 for customers and 255 for names. The constants C are fixed; those of the loaded and
-- the requested names differ by 87, as clause 2.1.6.1 demands.
-- @parameter w = connection(1, warehouses)
-- @parameter terminal_district = connection(1, 10, every=warehouses)
-- @parameter elsewhere = uniform(1, warehouses, other_than=w)
-- @parameter d = uniform(1, 10)
-- @parameter c = nurand(1, customers, a=1023, c=259)
-- @parameter last = words('BAR OUGHT ABLE PRI PRES ESE ANTI CALLY ATION EING', nurand(0, 999, a=255, c=123))
-- @parameter i = nurand(1, items, a=8191, c=7911)
-- @parameter supply_w = choice(w, elsewhere, weights=[99, 1])
-- @parameter quantity = uniform(1, 10)
-- @parameter lines = uniform(5, 15)
-- @parameter lines_before = uniform(4, 14)
-- @parameter line = repetition()
-- @parameter o = result(next_order, type='integer')
-- @parameter price = result(item)
-- @parameter dist_info = result(stock, 3)
-- @parameter cents = uniform(100, 500_000)
-- @parameter c_w = choice(w, elsewhere, weights=[85, 15])
-- @parameter other_d = uniform(1, 10)
-- @parameter c_d = result(district, type='integer')
-- @parameter w_name = result(warehouse)
-- @parameter d_name = result(district, 2)
-- @parameter middle = result(middle, type='integer')
-- @parameter found = result(by_name, type='integer')
-- @parameter last_o = result(last_order, type='integer')
-- @parameter carrier = uniform(1, 10)
-- @parameter delivered_o = result(oldest, type='integer')
-- @parameter delivered_c = result(customer_of, type='integer')
-- @parameter total = result(total)
-- @parameter threshold = uniform(10, 20)

-- Clause 4.3.3: the initial rows. In each district, the last 900 orders are not delivered.
-- @table item rows=items
-- @column i_id = sequence()
-- @column i_im_id = uniform(1, 10_000)
-- @column i_name = text(14, 24)
-- @column i_price = decimal(1, 100)
-- @column i_data = text(26, 50, word='ORIGINAL', share=0.1)
-- @table warehouse rows=warehouses
-- @column w_id = sequence()
-- @column w_name = text(6, 10)
-- @column w_street_1 = text(10, 20)
-- @column w_street_2 = text(10, 20)
-- @column w_city = text(10, 20)
-- @column w_state = text(2, alphabet='ABCDEFGHIJKLMNOPQRSTUVWXYZ')
-- @column w_zip = text(4, alphabet='0123456789', suffix='11111')
-- @column w_tax = decimal(0, 0.2, scale=4)
-- @column w_ytd = constant(100 * customers)
-- @table district rows=10*warehouses
-- @column d_id = cycle(1, 10)
-- @column d_w_id = cycle(1, warehouses, every=10)
-- @column d_name = text(6, 10)
-- @column d_street_1 = text(10, 20)
-- @column d_street_2 = text(10, 20)
-- @column d_city = text(10, 20)
-- @column d_state = text(2, alphabet='ABCDEFGHIJKLMNOPQRSTUVWXYZ')
-- @column d_zip = text(4, alphabet='0123456789', suffix='11111')
-- @column d_tax = decimal(0, 0.2, scale=4)
-- @column d_ytd = constant(10 * customers)
-- @column d_next_o_id = constant(customers + 1)
-- @table customer rows=10*customers*warehouses
-- @column c_id = cycle(1, customers)
-- @column c_d_id = cycle(1, 10, every=customers)
-- @column c_w_id = cycle(1, warehouses, every=10 * customers)
-- @column c_first = text(8, 16)
-- @column c_middle = constant('OE')
-- @column c_last = below(c_id, 1001, words('BAR OUGHT ABLE PRI PRES ESE ANTI CALLY ATION EING', cycle(0, 999)), words('BAR OUGHT ABLE PRI PRES ESE ANTI CALLY ATION EING', nurand(0, 999, a=255, c=36)))
-- @column c_street_1 = text(10, 20)
-- @column c_street_2 = text(10, 20)
-- @column c_city = text(10, 20)
-- @column c_state = text(2, alphabet='ABCDEFGHIJKLMNOPQRSTUVWXYZ')
-- @column c_zip = text(4, alphabet='0123456789', suffix='11111')
-- @column c_phone = text(16, alphabet='0123456789')
-- @column c_since = constant('2024-01-01 00:00:00')
-- @column c_credit = one_of('GC', 'BC', weights=[9, 1])
-- @column c_credit_lim = constant(50_000)
-- @column c_discount = decimal(0, 0.5, scale=4)
-- @column c_balance = constant(-10)
-- @column c_ytd_payment = constant(10)
-- @column c_payment_cnt = constant(1)
-- @column c_delivery_cnt = constant(0)
-- @column c_data = text(300, 500)
-- @table history rows=10*customers*warehouses
-- @column h_c_id = cycle(1, customers)
-- @column h_c_d_id = cycle(1, 10, every=customers)
-- @column h_c_w_id = cycle(1, warehouses, every=10 * customers)
-- @column h_d_id = cycle(1, 10, every=customers)
-- @column h_w_id = cycle(1, warehouses, every=10 * customers)
-- @column h_date = constant('2024-01-01 00:00:00')
-- @column h_amount = constant(10)
-- @column h_data = text(12, 24)
-- @table orders rows=10*customers*warehouses
-- @column o_id = cycle(1, customers)
-- @column o_d_id = cycle(1, 10, every=customers)
-- @column o_w_id = cycle(1, warehouses, every=10 * customers)
-- @column o_c_id = shuffle(1, customers, of=customers)
-- @column o_entry_d = constant('2024-01-01 00:00:00')
-- @column o_carrier_id = below(o_id, customers - 899, uniform(1, 10), null)
-- @column o_ol_cnt = shuffle(5, 15, of=customers)
-- @column o_all_local = constant(1)
-- @table new_orders rows=9_000*warehouses
-- @column no_o_id = cycle(customers - 899, customers)
-- @column no_d_id = cycle(1, 10, every=900)
-- @column no_w_id = cycle(1, warehouses, every=9_000)
-- @table order_line rows=100*customers*warehouses parent=orders.o_ol_cnt
-- @column ol_o_id = parent(o_id)
-- @column ol_d_id = parent(o_d_id)
-- @column ol_w_id = parent(o_w_id)
-- @column ol_number = child_number()
-- @column ol_i_id = uniform(1, items)
-- @column ol_supply_w_id = parent(o_w_id)
-- @column ol_delivery_d = below(ol_o_id, customers - 899, parent(o_entry_d), null)
-- @column ol_quantity = constant(5)
-- @column ol_amount = below(ol_o_id, customers - 899, 0, decimal(0.01, 9999.99))
-- @column ol_dist_info = text(24)
-- @table stock rows=items*warehouses
-- @column s_i_id = cycle(1, items)
-- @column s_w_id = cycle(1, warehouses, every=items)
-- @column s_quantity = uniform(10, 100)
-- @column s_dist_01 = text(24)
-- @column s_dist_02 = text(24)
-- @column s_dist_03 = text(24)
-- @column s_dist_04 = text(24)
-- @column s_dist_05 = text(24)
-- @column s_dist_06 = text(24)
-- @column s_dist_07 = text(24)
-- @column s_dist_08 = text(24)
-- @column s_dist_09 = text(24)
-- @column s_dist_10 = text(24)
-- @column s_ytd = constant(0)
-- @column s_order_cnt = constant(0)
-- @column s_remote_cnt = constant(0)
-- @column s_data = text(26, 50, word='ORIGINAL', share=0.1)

-- @setup
CREATE TABLE IF NOT EXISTS item (
  i_id INT NOT NULL, i_im_id INT NOT NULL, i_name VARCHAR(24) NOT NULL, i_price DECIMAL(5,2) NOT NULL,
  i_data VARCHAR(50) NOT NULL, PRIMARY KEY (i_id));
CREATE TABLE IF NOT EXISTS warehouse (
  w_id INT NOT NULL, w_name VARCHAR(10) NOT NULL, w_street_1 VARCHAR(20) NOT NULL, w_street_2 VARCHAR(20) NOT NULL,
  w_city VARCHAR(20) NOT NULL, w_state CHAR(2) NOT NULL, w_zip CHAR(9) NOT NULL, w_tax DECIMAL(4,4) NOT NULL,
  w_ytd DECIMAL(12,2) NOT NULL, PRIMARY KEY (w_id));
CREATE TABLE IF NOT EXISTS district (
  d_id SMALLINT NOT NULL, d_w_id INT NOT NULL, d_name VARCHAR(10) NOT NULL, d_street_1 VARCHAR(20) NOT NULL,
  d_street_2 VARCHAR(20) NOT NULL, d_city VARCHAR(20) NOT NULL, d_state CHAR(2) NOT NULL, d_zip CHAR(9) NOT NULL,
  d_tax DECIMAL(4,4) NOT NULL, d_ytd DECIMAL(12,2) NOT NULL, d_next_o_id INT NOT NULL, PRIMARY KEY (d_w_id, d_id));
CREATE TABLE IF NOT EXISTS customer (
  c_id INT NOT NULL, c_d_id SMALLINT NOT NULL, c_w_id INT NOT NULL, c_first VARCHAR(16) NOT NULL,
  c_middle CHAR(2) NOT NULL, c_last VARCHAR(16) NOT NULL, c_street_1 VARCHAR(20) NOT NULL,
  c_street_2 VARCHAR(20) NOT NULL, c_city VARCHAR(20) NOT NULL, c_state CHAR(2) NOT NULL, c_zip CHAR(9) NOT NULL,
  c_phone CHAR(16) NOT NULL, c_since TIMESTAMP NULL, c_credit CHAR(2) NOT NULL, c_credit_lim DECIMAL(12,2) NOT NULL,
  c_discount DECIMAL(4,4) NOT NULL, c_balance DECIMAL(12,2) NOT NULL, c_ytd_payment DECIMAL(12,2) NOT NULL,
  c_payment_cnt INT NOT NULL, c_delivery_cnt INT NOT NULL, c_data VARCHAR(500) NOT NULL,
  PRIMARY KEY (c_w_id, c_d_id, c_id));
CREATE TABLE IF NOT EXISTS history (
  h_c_id INT NOT NULL, h_c_d_id SMALLINT NOT NULL, h_c_w_id INT NOT NULL, h_d_id SMALLINT NOT NULL, h_w_id INT NOT NULL,
  h_date TIMESTAMP NULL, h_amount DECIMAL(6,2) NOT NULL, h_data VARCHAR(24) NOT NULL);
CREATE TABLE IF NOT EXISTS orders (
  o_id INT NOT NULL, o_d_id SMALLINT NOT NULL, o_w_id INT NOT NULL, o_c_id INT NOT NULL, o_entry_d TIMESTAMP NULL,
  o_carrier_id SMALLINT, o_ol_cnt SMALLINT NOT NULL, o_all_local SMALLINT NOT NULL, PRIMARY KEY (o_w_id, o_d_id, o_id));
CREATE TABLE IF NOT EXISTS new_orders (
  no_o_id INT NOT NULL, no_d_id SMALLINT NOT NULL, no_w_id INT NOT NULL, PRIMARY KEY (no_w_id, no_d_id, no_o_id));
CREATE TABLE IF NOT EXISTS order_line (
  ol_o_id INT NOT NULL, ol_d_id SMALLINT NOT NULL, ol_w_id INT NOT NULL, ol_number SMALLINT NOT NULL,
  ol_i_id INT NOT NULL, ol_supply_w_id INT NOT NULL, ol_delivery_d TIMESTAMP NULL, ol_quantity SMALLINT NOT NULL,
  ol_amount DECIMAL(6,2) NOT NULL, ol_dist_info CHAR(24) NOT NULL, PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number));
CREATE TABLE IF NOT EXISTS stock (
  s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity SMALLINT NOT NULL, s_dist_01 CHAR(24) NOT NULL,
  s_dist_02 CHAR(24) NOT NULL, s_dist_03 CHAR(24) NOT NULL, s_dist_04 CHAR(24) NOT NULL, s_dist_05 CHAR(24) NOT NULL,
  s_dist_06 CHAR(24) NOT NULL, s_dist_07 CHAR(24) NOT NULL, s_dist_08 CHAR(24) NOT NULL, s_dist_09 CHAR(24) NOT NULL,
  s_dist_10 CHAR(24) NOT NULL, s_ytd DECIMAL(8,0) NOT NULL, s_order_cnt INT NOT NULL, s_remote_cnt INT NOT NULL,
  s_data VARCHAR(50) NOT NULL, PRIMARY KEY (s_w_id, s_i_id));

-- @after
CREATE INDEX customer_by_name ON customer (c_w_id, c_d_id, c_last, c_first);
CREATE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id);

-- Clause 5.2.3: 45 % new orders, 43 % payments, and 4 % of each of the others, chosen at random. Clause 5.2.5.7: keying and
-- think times. The COMMIT or ROLLBACK is named after its transaction, so its rate is that of the transaction.

-- Clause 2.4.
-- @transaction new-order weight=44.55 keying=18s think=12s
BEGIN;
-- @statement rows=1
SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse
WHERE w_id = :w AND c_w_id = :w AND c_d_id = :d AND c_id = :c;
-- @statement name=next_order rows=1
SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = :w AND d_id = :d FOR UPDATE;
-- @statement rows=1
UPDATE district SET d_next_o_id = :o + 1 WHERE d_w_id = :w AND d_id = :d;
-- @loop times=lines
-- @statement name=item rows=1 draw=i,elsewhere,supply_w,quantity
SELECT i_price, i_name, i_data FROM item WHERE i_id = :i;
-- @statement name=stock rows=1
SELECT s_quantity, s_data, CASE :d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
  WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
  WHEN 9 THEN s_dist_09 ELSE s_dist_10 END
FROM stock WHERE s_w_id = :supply_w AND s_i_id = :i FOR UPDATE;
-- @statement rows=1
UPDATE stock SET s_quantity = CASE WHEN s_quantity >= :quantity + 10 THEN s_quantity - :quantity
    ELSE s_quantity - :quantity + 91 END,
  s_ytd = s_ytd + :quantity, s_order_cnt = s_order_cnt + 1,
  s_remote_cnt = s_remote_cnt + CASE WHEN s_w_id = :w THEN 0 ELSE 1 END
WHERE s_w_id = :supply_w AND s_i_id = :i;
-- @statement rows=1
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
VALUES (:o, :d, :w, :line, :i, :supply_w, :quantity, :quantity * CAST(:price AS DECIMAL(5,2)), :dist_info);
-- @end
-- @statement rows=1
INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
VALUES (:o, :d, :w, :c, CURRENT_TIMESTAMP, :lines, CASE WHEN EXISTS (SELECT 1 FROM order_line
  WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o AND ol_supply_w_id <> :w) THEN 0 ELSE 1 END);
-- @statement rows=1
INSERT INTO new_orders (no_o_id, no_d_id, no_w_id) VALUES (:o, :d, :w);
-- @statement name=new-order
COMMIT;

-- Clause 2.4.1.4: in 1 % of the new orders, the last item does not exist, and the order is rolled back.
-- @transaction new-order-rollback weight=0.45 keying=18s think=12s
BEGIN;
-- @statement rows=1
SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse
WHERE w_id = :w AND c_w_id = :w AND c_d_id = :d AND c_id = :c;
-- @statement name=next_order rows=1
SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = :w AND d_id = :d FOR UPDATE;
-- @statement rows=1
UPDATE district SET d_next_o_id = :o + 1 WHERE d_w_id = :w AND d_id = :d;
-- @loop times=lines_before
-- @statement name=item rows=1 draw=i,elsewhere,supply_w,quantity
SELECT i_price, i_name, i_data FROM item WHERE i_id = :i;
-- @statement name=stock rows=1
SELECT s_quantity, s_data, CASE :d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
  WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
  WHEN 9 THEN s_dist_09 ELSE s_dist_10 END
FROM stock WHERE s_w_id = :supply_w AND s_i_id = :i FOR UPDATE;
-- @statement rows=1
UPDATE stock SET s_quantity = CASE WHEN s_quantity >= :quantity + 10 THEN s_quantity - :quantity
    ELSE s_quantity - :quantity + 91 END,
  s_ytd = s_ytd + :quantity, s_order_cnt = s_order_cnt + 1,
  s_remote_cnt = s_remote_cnt + CASE WHEN s_w_id = :w THEN 0 ELSE 1 END
WHERE s_w_id = :supply_w AND s_i_id = :i;
-- @statement rows=1
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
VALUES (:o, :d, :w, :line, :i, :supply_w, :quantity, :quantity * CAST(:price AS DECIMAL(5,2)), :dist_info);
-- @end
-- @statement name=missing_item rows=0
SELECT i_price, i_name, i_data FROM item WHERE i_id = {items + 1};
-- @statement name=new-order
ROLLBACK;

-- Clause 2.5: 60 % of the payments select the customer by name; in 15 % the customer is of another warehouse.
-- @transaction payment weight=17.2 keying=3s think=12s
BEGIN;
-- @statement rows=1
UPDATE warehouse SET w_ytd = w_ytd + :cents / 100.0 WHERE w_id = :w;
-- @statement name=warehouse rows=1
SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = :w;
-- @statement rows=1
UPDATE district SET d_ytd = d_ytd + :cents / 100.0 WHERE d_w_id = :w AND d_id = :d;
-- @statement name=district rows=1
SELECT CASE WHEN :c_w = :w THEN :d ELSE :other_d END, d_name, d_street_1, d_street_2, d_city, d_state, d_zip
FROM district WHERE d_w_id = :w AND d_id = :d;
-- @statement rows=1
SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, c_credit_lim,
  c_discount, c_balance, c_ytd_payment, c_since
FROM customer WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_id = :c FOR UPDATE;
-- @statement rows=1
UPDATE customer SET c_balance = c_balance - :cents / 100.0, c_ytd_payment = c_ytd_payment + :cents / 100.0,
  c_payment_cnt = c_payment_cnt + 1,
  c_data = CASE WHEN c_credit = 'BC'
    THEN LEFT(CONCAT(c_id, ' ', c_d_id, ' ', c_w_id, ' ', :d, ' ', :w, ' ', :cents / 100.0, ' ', c_data), 500) ELSE c_data END
WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_id = :c;
-- @statement rows=1
INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
VALUES (:c, :c_d, :c_w, :d, :w, CURRENT_TIMESTAMP, :cents / 100.0, CONCAT(:w_name, '    ', :d_name));
-- @statement name=payment
COMMIT;

-- @transaction payment-by-name weight=25.8 keying=3s think=12s
BEGIN;
-- @statement rows=1
UPDATE warehouse SET w_ytd = w_ytd + :cents / 100.0 WHERE w_id = :w;
-- @statement name=warehouse rows=1
SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = :w;
-- @statement rows=1
UPDATE district SET d_ytd = d_ytd + :cents / 100.0 WHERE d_w_id = :w AND d_id = :d;
-- @statement name=district rows=1
SELECT CASE WHEN :c_w = :w THEN :d ELSE :other_d END, d_name, d_street_1, d_street_2, d_city, d_state, d_zip
FROM district WHERE d_w_id = :w AND d_id = :d;
-- Clause 2.5.2.2: of n customers with this name, sorted by first name, the one at position n / 2, rounded up.
-- @statement name=middle rows=1
SELECT FLOOR((COUNT(*) - 1) / 2) FROM customer WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_last = :last;
-- @statement name=by_name rows=1
SELECT c_id FROM customer WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_last = :last ORDER BY c_first LIMIT 1 OFFSET :middle;
-- @statement rows=1
SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, c_credit_lim,
  c_discount, c_balance, c_ytd_payment, c_since
FROM customer WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_id = :found FOR UPDATE;
-- @statement rows=1
UPDATE customer SET c_balance = c_balance - :cents / 100.0, c_ytd_payment = c_ytd_payment + :cents / 100.0,
  c_payment_cnt = c_payment_cnt + 1,
  c_data = CASE WHEN c_credit = 'BC'
    THEN LEFT(CONCAT(c_id, ' ', c_d_id, ' ', c_w_id, ' ', :d, ' ', :w, ' ', :cents / 100.0, ' ', c_data), 500) ELSE c_data END
WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_id = :found;
-- @statement rows=1
INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
VALUES (:found, :c_d, :c_w, :d, :w, CURRENT_TIMESTAMP, :cents / 100.0, CONCAT(:w_name, '    ', :d_name));
-- @statement name=payment
COMMIT;

-- Clause 2.6: 60 % of the queries select the customer by name.
-- @transaction order-status weight=1.6 keying=2s think=10s
BEGIN;
-- @statement rows=1
SELECT c_id, c_first, c_middle, c_last, c_balance FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
-- @statement name=last_order rows=1
SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_c_id = :c
ORDER BY o_id DESC LIMIT 1;
SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :last_o;
-- @statement name=order-status
COMMIT;

-- @transaction order-status-by-name weight=2.4 keying=2s think=10s
BEGIN;
-- @statement name=middle rows=1
SELECT FLOOR((COUNT(*) - 1) / 2) FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_last = :last;
-- @statement name=by_name rows=1
SELECT c_id, c_first, c_middle, c_last, c_balance FROM customer
WHERE c_w_id = :w AND c_d_id = :d AND c_last = :last ORDER BY c_first LIMIT 1 OFFSET :middle;
-- @statement name=last_order rows=1
SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_c_id = :found
ORDER BY o_id DESC LIMIT 1;
SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :last_o;
-- @statement name=order-status
COMMIT;

-- Clause 2.7: the oldest order of every district is delivered. The terminal waits for the delivery (no deferred execution).
-- @transaction delivery weight=4 keying=2s think=5s
BEGIN;
-- @loop times=10
-- @statement name=oldest
SELECT no_o_id FROM new_orders WHERE no_w_id = :w AND no_d_id = :line ORDER BY no_o_id LIMIT 1 FOR UPDATE;
DELETE FROM new_orders WHERE no_w_id = :w AND no_d_id = :line AND no_o_id = :delivered_o;
-- @statement name=customer_of
SELECT o_c_id FROM orders WHERE o_w_id = :w AND o_d_id = :line AND o_id = :delivered_o FOR UPDATE;
UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w AND o_d_id = :line AND o_id = :delivered_o;
UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP WHERE ol_w_id = :w AND ol_d_id = :line AND ol_o_id = :delivered_o;
-- @statement name=total rows=1
SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = :w AND ol_d_id = :line AND ol_o_id = :delivered_o;
UPDATE customer SET c_balance = c_balance + CAST(:total AS DECIMAL(12,2)), c_delivery_cnt = c_delivery_cnt + 1
WHERE c_w_id = :w AND c_d_id = :line AND c_id = :delivered_c;
-- @end
-- @statement name=delivery
COMMIT;

-- Clause 2.8.
-- @transaction stock-level weight=4 keying=2s think=5s
BEGIN;
-- @statement name=next_order rows=1
SELECT d_next_o_id FROM district WHERE d_w_id = :w AND d_id = :terminal_district;
-- @statement rows=1
SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = :w AND ol_d_id = :terminal_district AND ol_o_id < :o
  AND ol_o_id >= :o - 20 AND s_w_id = :w AND s_i_id = ol_i_id AND s_quantity < :threshold;
-- @statement name=stock-level
COMMIT;

-- Clause 3.3.2: the twelve consistency conditions. The eleventh also counts deliveries, so that it holds after them too.
-- @consistency 1: w_ytd is the sum of d_ytd
SELECT w_id, w_ytd, SUM(d_ytd) FROM warehouse JOIN district ON d_w_id = w_id GROUP BY w_id, w_ytd HAVING w_ytd <> SUM(d_ytd);
-- @consistency 2: d_next_o_id follows the last order
SELECT d_w_id, d_id, d_next_o_id, last_o, last_no FROM district
JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS last_o FROM orders GROUP BY o_w_id, o_d_id) o ON o_w_id = d_w_id AND o_d_id = d_id
LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS last_no FROM new_orders GROUP BY no_w_id, no_d_id) n
  ON no_w_id = d_w_id AND no_d_id = d_id
WHERE d_next_o_id - 1 <> last_o OR (last_no IS NOT NULL AND last_no <> last_o);
-- @consistency 3: new_orders has no gap
SELECT no_w_id, no_d_id, MAX(no_o_id) - MIN(no_o_id) + 1, COUNT(*) FROM new_orders GROUP BY no_w_id, no_d_id
HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*);
-- @consistency 4: o_ol_cnt adds up to the lines of a district
SELECT o_w_id, o_d_id, expected, found FROM
  (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS expected FROM orders GROUP BY o_w_id, o_d_id) o LEFT JOIN
  (SELECT ol_w_id, ol_d_id, COUNT(*) AS found FROM order_line GROUP BY ol_w_id, ol_d_id) l
  ON ol_w_id = o_w_id AND ol_d_id = o_d_id
WHERE found IS NULL OR expected <> found;
-- @consistency 5: orders without carrier are in new_orders
SELECT o_w_id, o_d_id, o_id FROM orders LEFT JOIN new_orders ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
WHERE (o_carrier_id IS NULL AND no_o_id IS NULL) OR (o_carrier_id IS NOT NULL AND no_o_id IS NOT NULL);
-- @consistency 6: every order has its lines
SELECT o_w_id, o_d_id, o_id, o_ol_cnt, found FROM orders LEFT JOIN
  (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS found FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) l
  ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
WHERE found IS NULL OR found <> o_ol_cnt;
-- @consistency 7: lines have a delivery date if the order has a carrier
SELECT ol_w_id, ol_d_id, ol_o_id, ol_number FROM order_line JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
WHERE (ol_delivery_d IS NULL AND o_carrier_id IS NOT NULL) OR (ol_delivery_d IS NOT NULL AND o_carrier_id IS NULL);
-- @consistency 8: w_ytd is the sum of the payments
SELECT w_id, w_ytd, paid FROM warehouse LEFT JOIN (SELECT h_w_id, SUM(h_amount) AS paid FROM history GROUP BY h_w_id) h
ON h_w_id = w_id WHERE paid IS NULL OR w_ytd <> paid;
-- @consistency 9: d_ytd is the sum of the payments
SELECT d_w_id, d_id, d_ytd, paid FROM district LEFT JOIN
  (SELECT h_w_id, h_d_id, SUM(h_amount) AS paid FROM history GROUP BY h_w_id, h_d_id) h ON h_w_id = d_w_id AND h_d_id = d_id
WHERE paid IS NULL OR d_ytd <> paid;
-- @consistency 10: c_balance is deliveries less payments
SELECT c_w_id, c_d_id, c_id, c_balance, delivered, paid FROM customer LEFT JOIN
  (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered FROM orders
   JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
   WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS paid FROM history GROUP BY h_c_w_id, h_c_d_id, h_c_id) h
  ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
WHERE c_balance <> COALESCE(delivered, 0) - COALESCE(paid, 0);
-- @consistency 11: orders less new_orders are the delivered ones
SELECT d_w_id, d_id, all_orders, open_orders, delivered FROM district
JOIN (SELECT o_w_id, o_d_id, COUNT(*) AS all_orders FROM orders GROUP BY o_w_id, o_d_id) o ON o_w_id = d_w_id AND o_d_id = d_id
LEFT JOIN (SELECT no_w_id, no_d_id, COUNT(*) AS open_orders FROM new_orders GROUP BY no_w_id, no_d_id) n
  ON no_w_id = d_w_id AND no_d_id = d_id
JOIN (SELECT c_w_id, c_d_id, SUM(c_delivery_cnt) AS delivered FROM customer GROUP BY c_w_id, c_d_id) c
  ON c_w_id = d_w_id AND c_d_id = d_id
WHERE all_orders - COALESCE(open_orders, 0) <> {customers - 900} + delivered;
-- @consistency 12: c_balance and c_ytd_payment are the deliveries
SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, delivered FROM customer LEFT JOIN
  (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered FROM orders
   JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
   WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
WHERE c_balance + c_ytd_payment <> COALESCE(delivered, 0);
