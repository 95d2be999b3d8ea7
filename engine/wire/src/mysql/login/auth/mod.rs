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
mod clear;
mod ed25519;
mod key;
mod native;
mod sha256;

pub use key::PublicKey;

use crate::WireError;
use crate::mysql::fields::words;

/// Error number of MySQL's own clients for a login method they cannot or will not use.
const CR_AUTH_PLUGIN_CANNOT_LOAD: u16 = 2059;

/// What is known about the way to the server, and what it may be used for.
pub(super) struct Channel<'a> {
    pub(super) password: &'a str,
    /// Nobody else reads along, and it is known who listens: verified TLS or a unix socket.
    pub(super) is_private: bool,
    pub(super) is_encrypted: bool,
    /// The server's RSA key, where the plan names it.
    pub(super) key: Option<&'a PublicKey>,
    /// Whether the server may be asked for its key.
    pub(super) may_ask_key: bool,
}

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
    name: &'static str,
    challenge: Vec<u8>,
    /// The server was asked for its key.
    awaits_key: bool,
}

impl Proof {
    /// The proof that goes with a greeting. Only a method whose first answer gives nothing away is taken up; an
    /// account with another is asked for it by name.
    pub(super) fn of_greeting(plugin: &[u8], challenge: Vec<u8>) -> Self {
        let (name, method) = if plugin == b"caching_sha2_password" { METHODS[1] } else { METHODS[0] };
        Self { method, name, challenge, awaits_key: false }
    }

    /// The proof that the server asks for by the name of a method.
    pub(super) fn asked_for(plugin: &[u8], challenge: &[u8]) -> Result<Self, WireError> {
        let found = METHODS.iter().find(|(name, _)| name.as_bytes() == plugin);
        let Some(&(name, method)) = found else { return Err(unknown(plugin)) };
        Ok(Self { method, name, challenge: challenge.to_vec(), awaits_key: false })
    }

    /// The method's name.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The answer to the challenge.
    pub(super) fn answer(&mut self, channel: &Channel<'_>) -> Result<Vec<u8>, WireError> {
        match self.method {
            Method::Native => native::answer(&self.challenge, channel.password),
            Method::CachingSha2 => caching_sha2::answer(&self.challenge, channel.password),
            Method::Sha256 => sha256::answer(self, channel),
            Method::Ed25519 => ed25519::answer(&self.challenge, channel.password),
            Method::Clear => clear::answer(channel),
        }
    }

    /// The answer to further data of the server; none where it asks for none.
    pub(super) fn go_on(&mut self, data: &[u8], channel: &Channel<'_>) -> Result<Option<Vec<u8>>, WireError> {
        if self.awaits_key {
            self.awaits_key = false;
            return self.under_key(&PublicKey::from_pem(data)?, channel).map(Some);
        }
        match self.method {
            Method::CachingSha2 => caching_sha2::go_on(self, data, channel),
            _ => Err(WireError::Protocol(format!("data that {} does not know", self.name))),
        }
    }

    /// The whole password, by the best way the channel has; `request` is the method's request for the key.
    fn whole(&mut self, request: u8, channel: &Channel<'_>) -> Result<Vec<u8>, WireError> {
        // Only caching_sha2_password takes a unix socket for a private way; sha256_password wants its key there too.
        if channel.is_private && (channel.is_encrypted || self.method == Method::CachingSha2) {
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
    fn under_key(&self, key: &PublicKey, channel: &Channel<'_>) -> Result<Vec<u8>, WireError> {
        let challenge = exactly(20, &self.challenge)?;
        let mut password = terminated(channel.password);
        password.iter_mut().zip(challenge.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        key.encrypt(&password)
    }
}

/// A challenge of `length` bytes, which a server may follow by a zero.
fn exactly(length: usize, challenge: &[u8]) -> Result<&[u8], WireError> {
    match challenge {
        [bytes @ .., 0] if bytes.len() == length => Ok(bytes),
        bytes if bytes.len() == length => Ok(bytes),
        bytes => Err(WireError::Protocol(format!("a challenge of {} bytes, not {length}", bytes.len()))),
    }
}

/// A string with the zero at its end that the protocol wants.
fn terminated(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

fn refused(text: String, way_out: &str) -> WireError {
    WireError::Refused { code: CR_AUTH_PLUGIN_CANNOT_LOAD, text, way_out: way_out.into() }
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
            assert_eq!(proof.whole(request, &PRIVATE).unwrap(), b"secret\0");
            let over_unix =
                proof.whole(request, &Channel { is_encrypted: false, may_ask_key: true, ..PRIVATE });
            let expected = if request == 2 { b"secret\0".to_vec() } else { vec![request] };
            assert_eq!(over_unix.unwrap(), expected);
            proof.awaits_key = false;
            for channel in [&OPEN, &unverified] {
                assert!(matches!(proof.whole(request, channel), Err(WireError::Refused { .. })), "{method}");
            }
            assert_eq!(proof.whole(request, &asked).unwrap(), [request]);
            assert!(proof.awaits_key);
        }
        let mut proof = Proof::asked_for(b"mysql_clear_password", b"").unwrap();
        assert_eq!(proof.answer(&PRIVATE).unwrap(), b"secret\0");
        for channel in [&OPEN, &unverified, &asked] {
            assert!(matches!(proof.answer(channel), Err(WireError::Refused { .. })));
        }
    }

    #[test]
    fn a_key_from_a_file_is_used_and_none_is_asked_for() {
        let key = PublicKey::from_pem(key::tests::PEM).unwrap();
        let channel = Channel { key: Some(&key), may_ask_key: true, ..OPEN };
        let mut proof = Proof::asked_for(b"sha256_password", CHALLENGE).unwrap();
        assert_eq!(proof.answer(&channel).unwrap().len(), 256);
        assert!(!proof.awaits_key);
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
