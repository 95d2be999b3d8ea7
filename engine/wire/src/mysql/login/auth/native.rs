//! `mysql_native_password`: SHA-1 over password and challenge. Removed in MySQL 9, the usual one of MariaDB.

use mysql_common::auth::plugins::mysql_native_password::scramble_native;

use super::exchange::exactly;
use crate::WireError;

pub(super) fn answer(challenge: &[u8], password: &str) -> Result<Vec<u8>, WireError> {
    let answer = scramble_native(exactly(20, challenge)?, password.as_bytes());
    Ok(answer.map(|answer| answer.to_vec()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_password_is_an_empty_answer() {
        assert!(answer(b"abcdefghijklmnopqrst", "").unwrap().is_empty());
        assert_eq!(answer(b"abcdefghijklmnopqrst", "secret").unwrap().len(), 20);
    }
}
