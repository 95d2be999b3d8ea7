//! `mysql_clear_password`: the password as it is, for PAM and LDAP behind the server.

use super::channel::Channel;
use super::exchange::terminated;
use crate::WireError;
use crate::mysql::refused::refused;

pub(super) fn answer(channel: &Channel<'_>) -> Result<Vec<u8>, WireError> {
    if channel.is_private {
        return Ok(terminated(channel.password));
    }
    Err(refused(
        "the server asks for the password in clear text (mysql_clear_password); it gets it inside verified TLS or over \
         a unix socket only"
            .into(),
        "use tls mode verify-ca or verify-identity with a ca, or a unix socket",
    ))
}
