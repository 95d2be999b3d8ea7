//! The options of MySQL sessions.

use dbdyno_schema::plan::Compression;

use super::public_key::PublicKey;
use crate::SessionOptions;

/// Opens sessions with one server, or in turn with several.
#[derive(Clone)]
pub struct MysqlConnector {
    /// Options common to all protocols.
    pub options: SessionOptions,
    /// Whether the server may request data for the session's own LOAD DATA LOCAL; only for the loader.
    pub local_data: bool,
    /// Compression.
    pub compression: Compression,
    /// The server's RSA key from a file, if any.
    pub server_public_key: Option<PublicKey>,
    /// Whether to ask a server on another machine for its RSA key over an unencrypted connection.
    pub allow_public_key_retrieval: bool,
    /// Whether one text may contain several statements, separated by semicolons.
    pub multi_statements: bool,
}
