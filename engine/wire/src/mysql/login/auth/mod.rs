//! Authentication: one file per method.
//!
//! No method does I/O. [`Authenticator`] turns requests of the server into answers; the [`Channel`] decides what it may
//! disclose:
//!
//! | channel | password in clear text | password under the server's RSA key |
//! |---|---|---|
//! | TLS whose certificate is verified, unix socket | yes | not needed |
//! | loopback | never | yes |
//! | anything else | never | with the key from a file, or where the plan allows to request it |

mod caching_sha2;
mod channel;
mod clear;
mod ed25519;
mod exchange;
mod native;
mod sha256;

pub(super) use channel::Channel;
use exchange::Exchange;

use crate::WireError;
use crate::mysql::errors::CR_AUTH_PLUGIN_CANNOT_LOAD;
use crate::mysql::public_key::PublicKey;
use crate::server_message::sanitize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Native,
    CachingSha2,
    Sha256,
    Ed25519,
    Clear,
}

const METHODS: [(&str, Method); 5] = [
    ("mysql_native_password", Method::Native),
    ("caching_sha2_password", Method::CachingSha2),
    ("sha256_password", Method::Sha256),
    ("client_ed25519", Method::Ed25519),
    ("mysql_clear_password", Method::Clear),
];

/// The client's side of one authentication.
pub(super) struct Authenticator {
    method: Method,
    exchange: Exchange,
}

impl Authenticator {
    fn new(method: Method, name: &'static str, challenge: Vec<u8>) -> Self {
        // sha256_password needs the server's key there too.
        let trusts_unix_sockets = method == Method::CachingSha2;
        Self { method, exchange: Exchange { name, challenge, trusts_unix_sockets, awaits_key: false } }
    }

    /// Begins with the method of the greeting, or with another one whose first answer discloses nothing; for an account with
    /// another method the server names it afterwards.
    pub(super) fn for_greeting(plugin: &[u8], challenge: Vec<u8>) -> Self {
        let (name, method) = if plugin == b"caching_sha2_password" { METHODS[1] } else { METHODS[0] };
        Self::new(method, name, challenge)
    }

    /// Begins with the method that the server names.
    pub(super) fn for_plugin(plugin: &[u8], challenge: &[u8]) -> Result<Self, WireError> {
        let entry = METHODS.iter().find(|(name, _)| name.as_bytes() == plugin);
        let Some(&(name, method)) = entry else { return Err(unknown(plugin)) };
        Ok(Self::new(method, name, challenge.to_vec()))
    }

    /// Name of the method.
    pub(super) fn name(&self) -> &'static str {
        self.exchange.name
    }

    /// The answer to the challenge.
    pub(super) fn answer(&mut self, channel: &Channel<'_>) -> Result<Vec<u8>, WireError> {
        match self.method {
            Method::Native => native::answer(&self.exchange.challenge, channel.password),
            Method::CachingSha2 => caching_sha2::answer(&self.exchange.challenge, channel.password),
            Method::Sha256 => sha256::answer(&mut self.exchange, channel),
            Method::Ed25519 => ed25519::answer(&self.exchange.challenge, channel.password),
            Method::Clear => clear::answer(channel),
        }
    }

    /// The answer to further data of the server; none where it expects none.
    pub(super) fn answer_data(
        &mut self,
        data: &[u8],
        channel: &Channel<'_>,
    ) -> Result<Option<Vec<u8>>, WireError> {
        if self.exchange.awaits_key {
            self.exchange.awaits_key = false;
            return self.exchange.encrypt_password(&PublicKey::from_pem(data)?, channel).map(Some);
        }
        match self.method {
            Method::CachingSha2 => caching_sha2::answer_data(&mut self.exchange, data, channel),
            _ => Err(WireError::Protocol(format!("unexpected data in {}", self.exchange.name))),
        }
    }
}

fn unknown(plugin: &[u8]) -> WireError {
    let known: Vec<&str> = METHODS.iter().map(|(name, _)| *name).collect();
    WireError::refused(
        CR_AUTH_PLUGIN_CANNOT_LOAD,
        format!("the account logs in with {}, which dbdyno does not know", sanitize(plugin)),
        format!("give the account one of {}, or use another account", known.join(", ")),
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A channel that allows nothing.
    pub(super) const OPEN: Channel<'static> = Channel {
        password: "secret",
        is_private: false,
        is_encrypted: false,
        key: None,
        may_request_key: false,
    };
    pub(super) const PRIVATE: Channel<'static> = Channel { is_private: true, is_encrypted: true, ..OPEN };
    pub(super) const CHALLENGE: &[u8; 21] = b"abcdefghijklmnopqrst\0";

    #[test]
    fn the_password_itself_goes_through_a_private_channel_only() {
        let unverified = Channel { is_encrypted: true, may_request_key: true, ..OPEN };
        let requestable = Channel { may_request_key: true, ..OPEN };
        for (method, request) in [("sha256_password", 1), ("caching_sha2_password", 2)] {
            let mut authenticator = Authenticator::for_plugin(method.as_bytes(), CHALLENGE).unwrap();
            assert_eq!(authenticator.exchange.send_password(request, &PRIVATE).unwrap(), b"secret\0");
            let over_unix = authenticator
                .exchange
                .send_password(request, &Channel { is_encrypted: false, may_request_key: true, ..PRIVATE });
            let expected = if request == 2 { b"secret\0".to_vec() } else { vec![request] };
            assert_eq!(over_unix.unwrap(), expected);
            authenticator.exchange.awaits_key = false;
            for channel in [&OPEN, &unverified] {
                assert!(
                    matches!(
                        authenticator.exchange.send_password(request, channel),
                        Err(WireError::Refused { .. })
                    ),
                    "{method}"
                );
            }
            assert_eq!(authenticator.exchange.send_password(request, &requestable).unwrap(), [request]);
            assert!(authenticator.exchange.awaits_key);
        }
        let mut authenticator = Authenticator::for_plugin(b"mysql_clear_password", b"").unwrap();
        assert_eq!(authenticator.answer(&PRIVATE).unwrap(), b"secret\0");
        for channel in [&OPEN, &unverified, &requestable] {
            assert!(matches!(authenticator.answer(channel), Err(WireError::Refused { .. })));
        }
    }

    #[test]
    fn a_key_from_a_file_is_used_and_none_is_requested() {
        let key = PublicKey::from_pem(crate::mysql::public_key::tests::PEM).unwrap();
        let channel = Channel { key: Some(&key), may_request_key: true, ..OPEN };
        let mut authenticator = Authenticator::for_plugin(b"sha256_password", CHALLENGE).unwrap();
        assert_eq!(authenticator.answer(&channel).unwrap().len(), 256);
        assert!(!authenticator.exchange.awaits_key);
    }

    #[test]
    fn an_unknown_method_names_itself_and_the_known_ones() {
        let Err(WireError::Refused { text, fix, .. }) = Authenticator::for_plugin(b"parsec", b"") else {
            panic!("it was taken")
        };
        assert!(text.contains("parsec") && fix.contains("client_ed25519"), "{text} {fix}");
    }

    #[test]
    fn challenges_of_another_length_are_refused() {
        for challenge in [b"".as_slice(), b"short", &[7; 22]] {
            for method in ["mysql_native_password", "caching_sha2_password", "client_ed25519"] {
                let mut authenticator = Authenticator::for_plugin(method.as_bytes(), challenge).unwrap();
                assert!(matches!(authenticator.answer(&PRIVATE), Err(WireError::Protocol(_))), "{method}");
            }
        }
    }
}
