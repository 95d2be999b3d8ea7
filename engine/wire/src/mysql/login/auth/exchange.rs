//! Common parts of the methods: the challenge, and the whole password where a method needs it.

use super::channel::Channel;
use crate::WireError;
use crate::mysql::errors::CR_AUTH_PLUGIN_CANNOT_LOAD;
use crate::mysql::public_key::PublicKey;

/// A method's exchange with the server.
pub(super) struct Exchange {
    /// Name of the method.
    pub(super) name: &'static str,
    pub(super) challenge: Vec<u8>,
    /// Whether the method regards a unix socket as private.
    pub(super) trusts_unix_sockets: bool,
    /// The client has requested the server's key.
    pub(super) awaits_key: bool,
}

impl Exchange {
    /// The answer that holds the whole password in the form that suits the channel, or `request`, the method's request for
    /// the key.
    pub(super) fn send_password(&mut self, request: u8, channel: &Channel<'_>) -> Result<Vec<u8>, WireError> {
        if channel.is_private && (channel.is_encrypted || self.trusts_unix_sockets) {
            return Ok(terminated(channel.password));
        }
        if channel.is_encrypted {
            // Inside TLS a server expects the password itself, never an encrypted one.
            return Err(WireError::refused(
                CR_AUTH_PLUGIN_CANNOT_LOAD,
                format!(
                    "{} asks for the password itself, and this TLS does not verify the server",
                    self.name
                ),
                "use tls mode verify-ca or verify-identity with a ca, or a unix socket",
            ));
        }
        if let Some(key) = channel.key {
            return self.encrypt_password(key, channel);
        }
        if channel.may_request_key {
            self.awaits_key = true;
            return Ok(vec![request]);
        }
        Err(WireError::refused(
            CR_AUTH_PLUGIN_CANNOT_LOAD,
            format!("{} asks for the password itself over a connection that others may read", self.name),
            "use tls mode verify-ca or verify-identity, name the server's key as server_public_key, or set \
             allow_public_key_retrieval where nobody can intercept the connection",
        ))
    }

    /// The password under the server's key, combined with the challenge so that nobody can replay it.
    pub(super) fn encrypt_password(
        &self,
        key: &PublicKey,
        channel: &Channel<'_>,
    ) -> Result<Vec<u8>, WireError> {
        let challenge = exactly(20, &self.challenge)?;
        let mut password = terminated(channel.password);
        password.iter_mut().zip(challenge.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        key.encrypt(&password)
    }
}

/// A challenge of `length` bytes, to which a server may append a zero.
pub(super) fn exactly(length: usize, challenge: &[u8]) -> Result<&[u8], WireError> {
    match challenge {
        [bytes @ .., 0] if bytes.len() == length => Ok(bytes),
        bytes if bytes.len() == length => Ok(bytes),
        bytes => Err(WireError::Protocol(format!("a challenge of {} bytes, not {length}", bytes.len()))),
    }
}

/// A string with a zero at its end.
pub(super) fn terminated(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}
