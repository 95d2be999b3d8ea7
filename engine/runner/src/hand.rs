//! One connection by hand: statements one after the other, outside any load, for drop-ins whose originals keep such a
//! connection beside their clients.

use dbdyno_schema::record::Failure;
use dbdyno_wire::mysql::MysqlConnection;
use dbdyno_wire::{Connection, Connector};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use crate::Order;
use crate::connector::{AnyConnector, connector};
use crate::failure;

/// A connection to a MySQL or MariaDB server. Not for measuring.
pub struct Hand {
    runtime: LocalRuntime,
    connection: MysqlConnection,
}

impl Hand {
    /// Opens it to the order's target.
    ///
    /// # Errors
    /// The server cannot be reached or refuses the login, or is of another kind.
    pub fn open(order: &Order) -> Result<Self, Failure> {
        let said = |text: String| Failure { text, ..Failure::default() };
        let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        let runtime = runtime.map_err(|error| said(error.to_string()))?;
        let AnyConnector::Mysql(connector) = connector(order) else {
            return Err(said("only MySQL and MariaDB are spoken to by hand".into()));
        };
        let opened = runtime.block_on(connector.connect(0));
        let connection = opened.map_err(|error| failure::connecting(&error, &order.plan.target, 0).1)?;
        Ok(Self { runtime, connection })
    }

    /// Runs a statement.
    ///
    /// # Errors
    /// The server's answer is an error, or there is none.
    pub fn query(&mut self, sql: &str) -> Result<(), Failure> {
        let done = self.runtime.block_on(self.connection.query(sql.as_bytes()));
        done.map(drop).map_err(|error| failure::working(&error, sql).1)
    }

    /// The first column of a statement's rows; NULL is left out.
    ///
    /// # Errors
    /// As for [`Self::query`].
    pub fn column(&mut self, sql: &str) -> Result<Vec<String>, Failure> {
        let rows = self.runtime.block_on(self.connection.rows(sql));
        let rows = rows.map_err(|error| failure::working(&error, sql).1)?;
        Ok(rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
    }

    /// Says goodbye.
    pub fn close(mut self) {
        self.runtime.block_on(self.connection.close());
    }
}
