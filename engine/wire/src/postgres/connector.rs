//! What it takes to open sessions.

use std::time::Duration;

use crate::Address;
use crate::tls::TlsClient;

/// Opens sessions with one server, or with several in turn.
#[derive(Clone)]
pub struct PostgresConnector {
    /// Where the server listens; at least one place.
    pub addresses: Vec<Address>,
    /// Name of the role.
    pub user: String,
    /// Password; empty for none.
    pub password: String,
    /// Database.
    pub database: String,
    /// Time allowed to open and log in, and then to prepare each statement.
    pub timeout: Duration,
    /// On connections with lower numbers the delay inside the client is sampled (see [`crate::delay`]).
    pub sampled: u64,
    /// Encryption; none means `disabled`.
    pub tls: Option<TlsClient>,
}
