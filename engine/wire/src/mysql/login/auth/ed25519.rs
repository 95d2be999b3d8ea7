//! `client_ed25519`: MariaDB's authentication by signature (the server's plugin `auth_ed25519`). The client never sends
//! the password.

use mysql_common::auth::plugins::client_ed25519::ClientEd25519;
use mysql_common::auth::plugins::{ChallengeResponsePlugin, Context};

use crate::WireError;

/// Signs a challenge of 32 bytes.
pub(super) fn sign(challenge: &[u8], password: &str) -> Result<Vec<u8>, WireError> {
    let response = ClientEd25519::default().run(Password(password), challenge);
    response
        .ok()
        .and_then(|response| response.data().map(<[u8]>::to_vec))
        .ok_or_else(|| WireError::Protocol("a challenge that cannot be signed".into()))
}

/// The password, which is the only secret input of the signature.
struct Password<'a>(&'a str);

impl Context for Password<'_> {
    fn pass(&self) -> &[u8] {
        self.0.as_bytes()
    }

    fn is_ipc_transport(&self) -> bool {
        false
    }

    fn is_tls_transport(&self) -> bool {
        false
    }

    fn scramble(&self) -> &[u8] {
        &[]
    }

    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_of_32_bytes_gives_the_signature_of_rfc_8032() {
        // MariaDB hashes the password where RFC 8032 hashes a seed of 32 bytes, so for that length both agree. This
        // signature is from `openssl pkeyutl -sign -rawin` with the password as the seed.
        let challenge: Vec<u8> = (0..32).collect();
        let signature = [
            0x18, 0x82, 0x42, 0xed, 0x3a, 0x9e, 0x2f, 0xe6, 0x12, 0xb0, 0x7a, 0x64, 0x12, 0xc0, 0xa7, 0xcc,
            0x0b, 0xd8, 0xb3, 0xd6, 0x60, 0x7e, 0x7e, 0x4c, 0x6e, 0x45, 0xeb, 0x5a, 0xfd, 0x0f, 0x50, 0x44,
            0xe5, 0xd3, 0xea, 0xbd, 0x7a, 0xe8, 0xc7, 0xaf, 0xdf, 0x63, 0x65, 0x51, 0xd3, 0xd9, 0x2b, 0x3e,
            0x2e, 0x08, 0x5c, 0x74, 0x47, 0x48, 0x11, 0xb3, 0x13, 0xa3, 0x64, 0x07, 0x08, 0xa9, 0xc9, 0x0b,
        ];
        assert_eq!(sign(&challenge, "0123456789abcdefghijklmnopqrstuv").unwrap(), signature);
    }
}
