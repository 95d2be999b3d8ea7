//! Authentication, without I/O. [`Authenticator`] turns requests of the server into replies. The [`Channel`] determines
//! in which form the authenticator may send the password:
//!
//! | channel | password in clear text | password under the server's RSA key |
//! |---|---|---|
//! | TLS with a verified certificate, unix socket | yes | not needed |
//! | loopback | never | yes |
//! | anything else | never | with the key from a file, or if the plan allows requesting it |
//!
//! `caching_sha2_password`, MySQL's default since 8.0 ("Caching SHA-2 Pluggable Authentication" in the MySQL manual):
//!
//! ```text
//! challenge ─▶ scramble ─┬─ 3: the scramble is in the server's cache ─▶ OK
//!                        └─ 4: not in the cache ─▶ full password (TLS, unix socket, or RSA-encrypted) ─▶ OK
//! ```

mod ed25519;

use mysql_common::auth::plugins::caching_sha2_password::scramble_sha256;
use mysql_common::auth::plugins::mysql_native_password::scramble_native;

use crate::WireError;
use crate::mysql::errors::CR_AUTH_PLUGIN_CANNOT_LOAD;
use crate::mysql::public_key::PublicKey;
use crate::server_message::sanitize;

/// `caching_sha2_password` found the scramble in its cache.
const FOUND_IN_CACHE: u8 = 3;
/// `caching_sha2_password` needs the full password.
const FULL_PASSWORD: u8 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// SHA-1 of password and challenge. MariaDB's default; removed in MySQL 9.
    Native,
    CachingSha2,
    /// The full password. Deprecated since MySQL 8.0.16.
    Sha256,
    /// A signature; only MariaDB.
    Ed25519,
    /// The password in clear text, for servers that authenticate by PAM or LDAP.
    Clear,
}

const METHODS: [(&str, Method); 5] = [
    ("mysql_native_password", Method::Native),
    ("caching_sha2_password", Method::CachingSha2),
    ("sha256_password", Method::Sha256),
    ("client_ed25519", Method::Ed25519),
    ("mysql_clear_password", Method::Clear),
];

/// The password, and the properties of the connection that decide in which form to send it.
pub(super) struct Channel<'a> {
    pub(super) password: &'a str,
    /// Whether the channel is confidential and the server's identity is verified: verified TLS or a unix socket.
    pub(super) is_private: bool,
    pub(super) is_encrypted: bool,
    /// The server's RSA key from the plan's file, if any.
    pub(super) key: Option<&'a PublicKey>,
    pub(super) may_request_key: bool,
}

/// The client's side of one authentication.
pub(super) struct Authenticator {
    method: Method,
    name: &'static str,
    challenge: Vec<u8>,
    /// Whether the client has requested the server's key.
    awaits_key: bool,
}

impl Authenticator {
    /// Begins with the method in the server's greeting. If that method is unknown, begins with one whose first reply
    /// does not reveal the password; the server then requests the account's method.
    pub(super) fn for_greeting(plugin: &[u8], challenge: Vec<u8>) -> Self {
        let (name, method) = if plugin == b"caching_sha2_password" { METHODS[1] } else { METHODS[0] };
        Self { method, name, challenge, awaits_key: false }
    }

    /// Begins with the method that the server requests.
    pub(super) fn for_plugin(plugin: &[u8], challenge: &[u8]) -> Result<Self, WireError> {
        let entry = METHODS.iter().find(|(name, _)| name.as_bytes() == plugin);
        let Some(&(name, method)) = entry else { return Err(unknown_method_error(plugin)) };
        Ok(Self { method, name, challenge: challenge.to_vec(), awaits_key: false })
    }

    /// Name of the authentication method.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The reply to the server's challenge.
    pub(super) fn answer(&mut self, channel: &Channel<'_>) -> Result<Vec<u8>, WireError> {
        let password = channel.password.as_bytes();
        match self.method {
            Method::Native => {
                let answer = scramble_native(self.nonce(20)?, password);
                Ok(answer.map(|answer| answer.to_vec()).unwrap_or_default())
            }
            Method::CachingSha2 => {
                let nonce = self.nonce(20)?.first_chunk().expect("20 bytes");
                // A zero byte means an empty password.
                Ok(scramble_sha256(nonce, password).map_or(vec![0], |answer| answer.to_vec()))
            }
            Method::Sha256 if password.is_empty() => Ok(vec![0]),
            Method::Sha256 => self.send_password(channel),
            Method::Ed25519 => ed25519::sign(self.nonce(32)?, channel.password),
            Method::Clear if channel.is_private => Ok(null_terminated(channel.password)),
            Method::Clear => Err(refused_error(
                "the server asks for the password in clear text (mysql_clear_password); dbdyno sends it inside verified TLS \
                 or over a unix socket only",
                "use tls mode verify-ca or verify-identity with a ca, or a unix socket",
            )),
        }
    }

    /// The reply to further data of the server; `None` if the server expects no reply.
    pub(super) fn answer_data(
        &mut self,
        data: &[u8],
        channel: &Channel<'_>,
    ) -> Result<Option<Vec<u8>>, WireError> {
        if std::mem::take(&mut self.awaits_key) {
            return self.encrypt_password(&PublicKey::from_pem(data)?, channel).map(Some);
        }
        match (self.method, data) {
            (Method::CachingSha2, [FOUND_IN_CACHE]) => Ok(None),
            (Method::CachingSha2, [FULL_PASSWORD]) => self.send_password(channel).map(Some),
            _ => Err(WireError::Protocol(format!("{} unexpected bytes in {}", data.len(), self.name))),
        }
    }

    /// The full password in the form that the channel allows, or the request for the server's key.
    fn send_password(&mut self, channel: &Channel<'_>) -> Result<Vec<u8>, WireError> {
        // sha256_password requires the server's key even over a unix socket.
        if channel.is_private && (channel.is_encrypted || self.method == Method::CachingSha2) {
            return Ok(null_terminated(channel.password));
        }
        if channel.is_encrypted {
            // Inside TLS, a server expects the full password without RSA encryption.
            return Err(refused_error(
                format!(
                    "{} asks for the password itself, and this tls mode does not verify the server",
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
            return Ok(vec![if self.method == Method::Sha256 { 1 } else { 2 }]);
        }
        Err(refused_error(
            format!("{} asks for the password itself over a connection that others may read", self.name),
            "use tls mode verify-ca or verify-identity, name the server's key as server_public_key, or set \
             allow_public_key_retrieval where nobody can intercept the connection",
        ))
    }

    /// The password encrypted with the server's key, combined with the challenge to prevent a replay.
    fn encrypt_password(&self, key: &PublicKey, channel: &Channel<'_>) -> Result<Vec<u8>, WireError> {
        let mut password = null_terminated(channel.password);
        password.iter_mut().zip(self.nonce(20)?.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        key.encrypt(&password)
    }

    /// The first `length` bytes of the challenge, to which a server may append a zero byte.
    fn nonce(&self, length: usize) -> Result<&[u8], WireError> {
        match &*self.challenge {
            [bytes @ .., 0] if bytes.len() == length => Ok(bytes),
            bytes if bytes.len() == length => Ok(bytes),
            bytes => Err(WireError::Protocol(format!("a challenge of {} bytes, not {length}", bytes.len()))),
        }
    }
}

/// A null-terminated string.
fn null_terminated(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

fn refused_error(text: impl Into<String>, fix: impl Into<String>) -> WireError {
    WireError::refused(CR_AUTH_PLUGIN_CANNOT_LOAD, text, fix)
}

fn unknown_method_error(plugin: &[u8]) -> WireError {
    let known: Vec<&str> = METHODS.iter().map(|(name, _)| *name).collect();
    refused_error(
        format!(
            "the account uses the authentication method {}, which dbdyno does not support",
            sanitize(plugin)
        ),
        format!("change the account to one of {}, or use another account", known.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A channel that does not allow a clear-text password.
    const OPEN: Channel<'static> = Channel {
        password: "secret",
        is_private: false,
        is_encrypted: false,
        key: None,
        may_request_key: false,
    };
    const PRIVATE: Channel<'static> = Channel { is_private: true, is_encrypted: true, ..OPEN };
    const CHALLENGE: &[u8; 21] = b"abcdefghijklmnopqrst\0";

    #[test]
    fn the_clear_text_password_is_sent_only_over_a_private_channel() {
        let unverified = Channel { is_encrypted: true, may_request_key: true, ..OPEN };
        let requestable = Channel { may_request_key: true, ..OPEN };
        for (method, request) in [("sha256_password", 1), ("caching_sha2_password", 2)] {
            let mut authenticator = Authenticator::for_plugin(method.as_bytes(), CHALLENGE).unwrap();
            assert_eq!(authenticator.send_password(&PRIVATE).unwrap(), b"secret\0");
            let unix = Channel { is_encrypted: false, may_request_key: true, ..PRIVATE };
            let over_unix = authenticator.send_password(&unix);
            let expected = if request == 2 { b"secret\0".to_vec() } else { vec![request] };
            assert_eq!(over_unix.unwrap(), expected);
            authenticator.awaits_key = false;
            for channel in [&OPEN, &unverified] {
                let answer = authenticator.send_password(channel);
                assert!(matches!(answer, Err(WireError::Refused { .. })), "{method}");
            }
            assert_eq!(authenticator.send_password(&requestable).unwrap(), [request]);
            assert!(authenticator.awaits_key);
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
        assert!(!authenticator.awaits_key);
    }

    #[test]
    fn the_error_for_an_unknown_method_lists_the_known_methods() {
        let Err(WireError::Refused { text, fix, .. }) = Authenticator::for_plugin(b"parsec", b"") else {
            panic!("the method was accepted")
        };
        assert!(text.contains("parsec") && fix.contains("client_ed25519"), "{text} {fix}");
    }

    #[test]
    fn caching_sha2_sends_the_password_only_when_its_cache_is_empty() {
        let mut authenticator = Authenticator::for_plugin(b"caching_sha2_password", CHALLENGE).unwrap();
        assert_eq!(authenticator.answer(&OPEN).unwrap().len(), 32);
        assert_eq!(authenticator.answer_data(&[FOUND_IN_CACHE], &OPEN).unwrap(), None);
        assert_eq!(authenticator.answer_data(&[FULL_PASSWORD], &PRIVATE).unwrap().unwrap(), b"secret\0");
        for data in [b"".as_slice(), b"\x05", b"\x03\x03"] {
            let answer = authenticator.answer_data(data, &PRIVATE);
            assert!(matches!(answer, Err(WireError::Protocol(_))), "{data:?}");
        }
    }

    #[test]
    fn an_empty_password_is_sent_as_an_empty_answer() {
        let open = Channel { password: "", ..OPEN };
        for (name, expected) in [
            ("mysql_native_password", vec![]),
            ("caching_sha2_password", vec![0]),
            ("sha256_password", vec![0]),
        ] {
            let mut authenticator = Authenticator::for_plugin(name.as_bytes(), CHALLENGE).unwrap();
            assert_eq!(authenticator.answer(&open).unwrap(), expected, "{name}");
        }
        let mut native = Authenticator::for_plugin(b"mysql_native_password", CHALLENGE).unwrap();
        assert_eq!(native.answer(&OPEN).unwrap().len(), 20);
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
