//! The connection on which a password travels.

use crate::mysql::public_key::PublicKey;

/// The password, and the properties of the connection that decide in which form to send it.
pub(in super::super) struct Channel<'a> {
    pub(in super::super) password: &'a str,
    /// Nobody can read it, and the server's identity is certain: verified TLS or a unix socket.
    pub(in super::super) is_private: bool,
    pub(in super::super) is_encrypted: bool,
    /// The server's RSA key, where the plan names it.
    pub(in super::super) key: Option<&'a PublicKey>,
    pub(in super::super) may_request_key: bool,
}
