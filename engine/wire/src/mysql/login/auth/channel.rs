//! What is known about the way to the server.

use crate::mysql::public_key::PublicKey;

/// What is known about the way to the server, and what it may be used for.
pub(in super::super) struct Channel<'a> {
    pub(in super::super) password: &'a str,
    /// Nobody else reads along, and it is known who listens: verified TLS or a unix socket.
    pub(in super::super) is_private: bool,
    pub(in super::super) is_encrypted: bool,
    /// The server's RSA key, where the plan names it.
    pub(in super::super) key: Option<&'a PublicKey>,
    /// Whether the server may be asked for its key.
    pub(in super::super) may_ask_key: bool,
}
