//! `caching_sha2_password`: MySQL's usual method since 8.0.
//!
//! ```text
//! challenge ─▶ scramble ─┬─ 3: the server had it in its cache ─▶ OK
//!                        └─ 4: it had not ─▶ the whole password, in private or under the server's RSA key ─▶ OK
//! ```
//! Source: "Caching SHA-2 Pluggable Authentication" in the MySQL manual.

use mysql_common::auth::plugins::caching_sha2_password::scramble_sha256;

use super::channel::Channel;
use super::exchange::{Exchange, exactly};
use crate::WireError;

const FAST_OK: u8 = 3;
const WHOLE_PASSWORD: u8 = 4;
const REQUEST_KEY: u8 = 2;

pub(super) fn answer(challenge: &[u8], password: &str) -> Result<Vec<u8>, WireError> {
    let challenge = exactly(20, challenge)?.first_chunk().expect("of that length");
    // A zero means an empty password.
    Ok(scramble_sha256(challenge, password.as_bytes()).map_or(vec![0], |answer| answer.to_vec()))
}

pub(super) fn answer_data(
    exchange: &mut Exchange,
    data: &[u8],
    channel: &Channel<'_>,
) -> Result<Option<Vec<u8>>, WireError> {
    match data {
        [FAST_OK] => Ok(None),
        [WHOLE_PASSWORD] => exchange.send_password(REQUEST_KEY, channel).map(Some),
        _ => Err(WireError::Protocol(format!("{} bytes in the middle of caching_sha2_password", data.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Authenticator;
    use super::super::tests::{CHALLENGE, OPEN, PRIVATE};
    use super::*;

    #[test]
    fn the_fast_path_sends_nothing_more() {
        let mut authenticator = Authenticator::for_plugin(b"caching_sha2_password", CHALLENGE).unwrap();
        assert_eq!(authenticator.answer(&OPEN).unwrap().len(), 32);
        assert_eq!(authenticator.answer_data(&[FAST_OK], &OPEN).unwrap(), None);
        assert_eq!(authenticator.answer_data(&[WHOLE_PASSWORD], &PRIVATE).unwrap().unwrap(), b"secret\0");
        for data in [b"".as_slice(), b"\x05", b"\x03\x03"] {
            assert!(
                matches!(authenticator.answer_data(data, &PRIVATE), Err(WireError::Protocol(_))),
                "{data:?}"
            );
        }
    }

    #[test]
    fn no_password_is_a_zero() {
        assert_eq!(answer(CHALLENGE, "").unwrap(), [0]);
    }
}
