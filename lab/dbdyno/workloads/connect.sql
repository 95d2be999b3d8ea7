-- @description Opens a connection, logs in, sends SELECT 1 and closes the connection: a connection storm.
--
-- Each transaction uses a new connection, whatever the experiment's [load] says. It needs no table. The time of a
-- transaction includes that of its connection. For the cost of TLS compare a variant with session.tls = "required".
-- @reconnect_every 1
-- @transaction connect
-- @statement rows=1
SELECT 1;
