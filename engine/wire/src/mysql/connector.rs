//! What it takes to open sessions.

use std::time::Duration;

use dbdyno_schema::plan::Compression;

use super::public_key::PublicKey;
use crate::Address;
use crate::tls::TlsClient;

/// Opens sessions with one server, or with several in turn.
#[derive(Clone)]
pub struct MysqlConnector {
    /// Where the server listens; at least one place.
    pub addresses: Vec<Address>,
    /// Account name.
    pub user: String,
    /// Password; empty for none.
    pub password: String,
    /// Schema to use.
    pub database: String,
    /// Time allowed to open and log in, and then to prepare each statement.
    pub timeout: Duration,
    /// Whether the sessions may be asked for the data of their own LOAD DATA LOCAL. For loading alone.
    pub local_data: bool,
    /// On connections with lower numbers the delay inside the client is sampled (see [`crate::delay`]).
    pub sampled: u64,
    /// Encryption; none means `disabled`.
    pub tls: Option<TlsClient>,
    /// Compression.
    pub compression: Compression,
    /// The server's RSA key, where a file holds it.
    pub server_public_key: Option<PublicKey>,
    /// Whether a server on another machine is asked for its RSA key over a plain connection.
    pub allow_public_key_retrieval: bool,
    /// Whether one text may hold several statements, separated by semicolons.
    pub multi_statements: bool,
}
