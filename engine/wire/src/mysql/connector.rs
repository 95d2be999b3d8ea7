//! The options of MySQL sessions.

use dbdyno_schema::plan::Compression;

use super::public_key::PublicKey;
use crate::SessionOptions;

/// Opens sessions with one server, or with several servers in turn.
#[derive(Clone)]
pub struct MysqlConnector {
    /// Options common to all protocols.
    pub options: SessionOptions,
    /// Whether the server may request data for a LOAD DATA LOCAL that this session sent. Only the loader sets it.
    pub local_data: bool,
    /// Compression.
    pub compression: Compression,
    /// The server's RSA key from the plan's file, if any.
    pub server_public_key: Option<PublicKey>,
    /// Whether the client may request the RSA key of a server on another machine over an unencrypted connection.
    pub allow_public_key_retrieval: bool,
    /// Whether one text may contain several statements, separated by semicolons.
    pub multi_statements: bool,
    /// Whether an UPDATE counts only the rows that it changed. If false, it counts every row that its WHERE matched, also
    /// those that already had the new values.
    pub only_changed_rows: bool,
}
