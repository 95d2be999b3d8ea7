-- @description Opens a connection, logs in, sends SELECT 1 and closes the connection: a connection storm.
--
-- Each transaction uses a new connection, whatever the experiment's [load] says. It needs no table. The time of a
-- transaction includes that of its connection. The statement is sent as text, because a connection that executes it once
-- would not prepare it. For the cost of TLS compare a variant with session.tls = "required".
-- @statements text
-- @reconnect_every 1
-- @transaction connect
-- @statement rows=1
SELECT 1;
