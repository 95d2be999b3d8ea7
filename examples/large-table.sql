-- The table of a published benchmark of innodb_buffer_pool_instances, with the number of rows that the publication shows.
-- The published script, however, doubles 10,000 rows fourteen times with INSERT ... SELECT: it makes 16 times as many rows, with
-- gaps between the ids. Here the ids are 1 to the number of rows.

-- @table large_table rows=10_240_000
-- @column id = sequence()
-- @column user_id = uniform(0, 999_999)
-- @column product_id = uniform(0, 9_999)
-- @column quantity = uniform(1, 10)
-- @column price = decimal(0, 500, scale=2)
-- @column created_at = timestamp('2024-01-01 00:00:00', '2024-12-31 23:59:59', order='rising')

-- @parameter id = uniform(1, rows(large_table))

-- @setup
CREATE TABLE IF NOT EXISTS large_table (
  id BIGINT AUTO_INCREMENT PRIMARY KEY,
  user_id INT NOT NULL,
  product_id INT NOT NULL,
  quantity INT DEFAULT 1,
  price DECIMAL(10,2) NOT NULL,
  created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
) ENGINE=InnoDB;
