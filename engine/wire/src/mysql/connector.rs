//! The options of MySQL sessions.

use dbdyno_schema::plan::Compression;

use super::public_key::PublicKey;
use crate::SessionOptions;

/// Opens sessions with one server, or with several in turn.
#[derive(Clone)]
pub struct MysqlConnector {
    /// Options that PostgreSQL's sessions have too.
    pub options: SessionOptions,
    /// Whether the server may request the data of the session's own LOAD DATA LOCAL. For loading alone.
    pub local_data: bool,
    /// Compression.
    pub compression: Compression,
    /// The server's RSA key, where a file holds it.
    pub server_public_key: Option<PublicKey>,
    /// Whether to ask a server on another machine for its RSA key over an unencrypted connection.
    pub allow_public_key_retrieval: bool,
    /// Whether one text may hold several statements, separated by semicolons.
    pub multi_statements: bool,
}
