-- @description Opens a connection, logs in, sends SELECT 1 and closes the connection: a connection storm.
--
-- Each transaction opens a new connection, also without reconnect_every in [load]. The latency of a transaction includes
-- the time to connect. The statement is sent as text, because an application does not prepare a statement that a
-- connection executes once. To measure the cost of TLS, add a variant with session.tls = "required". No table is needed.
-- @statements text
-- @reconnect_every 1
-- @transaction connect
-- @statement rows=1
SELECT 1;
