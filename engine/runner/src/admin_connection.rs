//! A connection that is not part of the load, for programs that need one in addition to their clients.

use dbdyno_schema::record::Failure;
use dbdyno_wire::mysql::MysqlConnection;
use dbdyno_wire::{Connection, Connector};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use crate::RunSpec;
use crate::connector::{AnyConnector, connector};
use crate::failure;

/// A blocking connection to a MySQL or MariaDB server, without measurements.
pub struct AdminConnection {
    runtime: LocalRuntime,
    connection: MysqlConnection,
}

impl AdminConnection {
    /// Connects to the target.
    ///
    /// # Errors
    /// The server cannot be reached, refuses the login, or is PostgreSQL.
    pub fn open(spec: &RunSpec) -> Result<Self, Failure> {
        let fail = |text: String| Failure { text, ..Failure::default() };
        let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        let runtime = runtime.map_err(|error| fail(error.to_string()))?;
        let AnyConnector::Mysql(connector) = connector(spec) else {
            return Err(fail("an admin connection needs MySQL or MariaDB".into()));
        };
        let opened = runtime.block_on(connector.connect(0));
        let connection =
            opened.map_err(|error| failure::from_connect_error(&error, &spec.plan.target, 0).1)?;
        Ok(Self { runtime, connection })
    }

    /// Runs a statement.
    ///
    /// # Errors
    /// The server returns an error or does not reply.
    pub fn query(&mut self, sql: &str) -> Result<(), Failure> {
        let done = self.runtime.block_on(self.connection.query(sql.as_bytes()));
        done.map(drop).map_err(|error| failure::from_query_error(&error, sql).1)
    }

    /// The first column of a statement's rows; NULL is omitted.
    ///
    /// # Errors
    /// As for [`Self::query`].
    pub fn column(&mut self, sql: &str) -> Result<Vec<String>, Failure> {
        let rows = self.runtime.block_on(self.connection.query_rows(sql));
        let rows = rows.map_err(|error| failure::from_query_error(&error, sql).1)?;
        Ok(rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
    }

    /// Closes the connection with the protocol's quit message.
    pub fn close(mut self) {
        self.runtime.block_on(self.connection.close());
    }
}
