//! How an account proves its password: one file per method.
//!
//! No method moves bytes. [`Proof`] is told what the server asks and says what to answer; what it may give away
//! depends on the [`Channel`]:
//!
//! | channel | password as it is | password under the server's RSA key |
//! |---|---|---|
//! | TLS whose certificate is verified, unix socket | yes | not needed |
//! | loopback | never | yes |
//! | anything else | never | with the key from a file, or where the plan allows to ask for it |

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
use crate::mysql::fields::words;
use crate::mysql::public_key::PublicKey;
use crate::mysql::refused::refused;

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

/// One login's proof, from the server's challenge to the end.
pub(super) struct Proof {
    method: Method,
    exchange: Exchange,
}

impl Proof {
    fn new(method: Method, name: &'static str, challenge: Vec<u8>) -> Self {
        // sha256_password wants the server's key there too.
        let trusts_unix_sockets = method == Method::CachingSha2;
        Self { method, exchange: Exchange { name, challenge, trusts_unix_sockets, awaits_key: false } }
    }

    /// The proof that goes with a greeting. Only a method whose first answer gives nothing away is taken up; an
    /// account with another is asked for it by name.
    pub(super) fn of_greeting(plugin: &[u8], challenge: Vec<u8>) -> Self {
        let (name, method) = if plugin == b"caching_sha2_password" { METHODS[1] } else { METHODS[0] };
        Self::new(method, name, challenge)
    }

    /// The proof that the server asks for by the name of a method.
    pub(super) fn asked_for(plugin: &[u8], challenge: &[u8]) -> Result<Self, WireError> {
        let found = METHODS.iter().find(|(name, _)| name.as_bytes() == plugin);
        let Some(&(name, method)) = found else { return Err(unknown(plugin)) };
        Ok(Self::new(method, name, challenge.to_vec()))
    }

    /// The method's name.
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

    /// The answer to further data of the server; none where it asks for none.
    pub(super) fn go_on(&mut self, data: &[u8], channel: &Channel<'_>) -> Result<Option<Vec<u8>>, WireError> {
        if self.exchange.awaits_key {
            self.exchange.awaits_key = false;
            return self.exchange.under_key(&PublicKey::from_pem(data)?, channel).map(Some);
        }
        match self.method {
            Method::CachingSha2 => caching_sha2::go_on(&mut self.exchange, data, channel),
            _ => Err(WireError::Protocol(format!("data that {} does not know", self.exchange.name))),
        }
    }
}

fn unknown(plugin: &[u8]) -> WireError {
    let known: Vec<&str> = METHODS.iter().map(|(name, _)| *name).collect();
    refused(
        format!("the account logs in with {}, which dbdyno does not know", words(plugin)),
        &format!("give the account one of {}, or use another account", known.join(", ")),
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A channel where nothing is allowed.
    pub(super) const OPEN: Channel<'static> =
        Channel { password: "secret", is_private: false, is_encrypted: false, key: None, may_ask_key: false };
    pub(super) const PRIVATE: Channel<'static> = Channel { is_private: true, is_encrypted: true, ..OPEN };
    pub(super) const CHALLENGE: &[u8; 21] = b"abcdefghijklmnopqrst\0";

    #[test]
    fn the_password_itself_goes_through_a_private_channel_only() {
        let unverified = Channel { is_encrypted: true, may_ask_key: true, ..OPEN };
        let asked = Channel { may_ask_key: true, ..OPEN };
        for (method, request) in [("sha256_password", 1), ("caching_sha2_password", 2)] {
            let mut proof = Proof::asked_for(method.as_bytes(), CHALLENGE).unwrap();
            assert_eq!(proof.exchange.whole(request, &PRIVATE).unwrap(), b"secret\0");
            let over_unix =
                proof.exchange.whole(request, &Channel { is_encrypted: false, may_ask_key: true, ..PRIVATE });
            let expected = if request == 2 { b"secret\0".to_vec() } else { vec![request] };
            assert_eq!(over_unix.unwrap(), expected);
            proof.exchange.awaits_key = false;
            for channel in [&OPEN, &unverified] {
                assert!(
                    matches!(proof.exchange.whole(request, channel), Err(WireError::Refused { .. })),
                    "{method}"
                );
            }
            assert_eq!(proof.exchange.whole(request, &asked).unwrap(), [request]);
            assert!(proof.exchange.awaits_key);
        }
        let mut proof = Proof::asked_for(b"mysql_clear_password", b"").unwrap();
        assert_eq!(proof.answer(&PRIVATE).unwrap(), b"secret\0");
        for channel in [&OPEN, &unverified, &asked] {
            assert!(matches!(proof.answer(channel), Err(WireError::Refused { .. })));
        }
    }

    #[test]
    fn a_key_from_a_file_is_used_and_none_is_asked_for() {
        let key = PublicKey::from_pem(crate::mysql::public_key::tests::PEM).unwrap();
        let channel = Channel { key: Some(&key), may_ask_key: true, ..OPEN };
        let mut proof = Proof::asked_for(b"sha256_password", CHALLENGE).unwrap();
        assert_eq!(proof.answer(&channel).unwrap().len(), 256);
        assert!(!proof.exchange.awaits_key);
    }

    #[test]
    fn an_unknown_method_names_itself_and_the_known_ones() {
        let Err(WireError::Refused { text, way_out, .. }) = Proof::asked_for(b"parsec", b"") else {
            panic!("it was taken")
        };
        assert!(text.contains("parsec") && way_out.contains("client_ed25519"), "{text} {way_out}");
    }

    #[test]
    fn challenges_of_another_length_are_refused() {
        for challenge in [b"".as_slice(), b"short", &[7; 22]] {
            for method in ["mysql_native_password", "caching_sha2_password", "client_ed25519"] {
                let mut proof = Proof::asked_for(method.as_bytes(), challenge).unwrap();
                assert!(matches!(proof.answer(&PRIVATE), Err(WireError::Protocol(_))), "{method}");
            }
        }
    }
}
