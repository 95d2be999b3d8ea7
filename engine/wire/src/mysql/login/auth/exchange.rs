//! What the methods have in common: the challenge, and the whole password where one asks for it.

use super::channel::Channel;
use crate::WireError;
use crate::mysql::public_key::PublicKey;
use crate::mysql::refused::refused;

/// A method's exchange with the server.
pub(super) struct Exchange {
    /// The method's name.
    pub(super) name: &'static str,
    pub(super) challenge: Vec<u8>,
    /// Whether the method takes a unix socket for a private way.
    pub(super) trusts_unix_sockets: bool,
    /// The server was asked for its key.
    pub(super) awaits_key: bool,
}

impl Exchange {
    /// The whole password, by the best way the channel has; `request` is the method's request for the key.
    pub(super) fn whole(&mut self, request: u8, channel: &Channel<'_>) -> Result<Vec<u8>, WireError> {
        if channel.is_private && (channel.is_encrypted || self.trusts_unix_sockets) {
            return Ok(terminated(channel.password));
        }
        if channel.is_encrypted {
            // Inside TLS a server takes what comes for the password itself, never for one under its key.
            return Err(refused(
                format!("{} asks for the password itself, and this TLS does not verify who asks", self.name),
                "use tls mode verify-ca or verify-identity with a ca, or a unix socket",
            ));
        }
        if let Some(key) = channel.key {
            return self.under_key(key, channel);
        }
        if channel.may_ask_key {
            self.awaits_key = true;
            return Ok(vec![request]);
        }
        Err(refused(
            format!("{} asks for the password itself over a connection that others may read", self.name),
            "use tls mode verify-ca or verify-identity, name the server's key as server_public_key, or set \
             allow_public_key_retrieval where nobody can stand between",
        ))
    }

    /// The password under the server's key, mixed with the challenge so that it is of no use a second time.
    pub(super) fn under_key(&self, key: &PublicKey, channel: &Channel<'_>) -> Result<Vec<u8>, WireError> {
        let challenge = exactly(20, &self.challenge)?;
        let mut password = terminated(channel.password);
        password.iter_mut().zip(challenge.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        key.encrypt(&password)
    }
}

/// A challenge of `length` bytes, which a server may follow by a zero.
pub(super) fn exactly(length: usize, challenge: &[u8]) -> Result<&[u8], WireError> {
    match challenge {
        [bytes @ .., 0] if bytes.len() == length => Ok(bytes),
        bytes if bytes.len() == length => Ok(bytes),
        bytes => Err(WireError::Protocol(format!("a challenge of {} bytes, not {length}", bytes.len()))),
    }
}

/// A string with the zero at its end that the protocol wants.
pub(super) fn terminated(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}
