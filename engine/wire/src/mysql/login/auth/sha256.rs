//! `sha256_password`: the whole password, in private or under the server's RSA key. Deprecated in MySQL 8.0.16.

use super::channel::Channel;
use super::exchange::Exchange;
use crate::WireError;

const REQUEST_KEY: u8 = 1;

pub(super) fn answer(exchange: &mut Exchange, channel: &Channel<'_>) -> Result<Vec<u8>, WireError> {
    if channel.password.is_empty() {
        return Ok(vec![0]);
    }
    exchange.send_password(REQUEST_KEY, channel)
}

#[cfg(test)]
mod tests {
    use super::super::Authenticator;
    use super::super::tests::{CHALLENGE, OPEN};
    use super::*;

    #[test]
    fn no_password_needs_no_private_channel() {
        let mut authenticator = Authenticator::for_plugin(b"sha256_password", CHALLENGE).unwrap();
        assert_eq!(answer(&mut authenticator.exchange, &Channel { password: "", ..OPEN }).unwrap(), [0]);
    }
}
