//! `mysql_clear_password`: the password in clear text, for PAM and LDAP behind the server.

use super::channel::Channel;
use super::exchange::terminated;
use crate::WireError;
use crate::mysql::errors::CR_AUTH_PLUGIN_CANNOT_LOAD;

pub(super) fn answer(channel: &Channel<'_>) -> Result<Vec<u8>, WireError> {
    if channel.is_private {
        return Ok(terminated(channel.password));
    }
    Err(WireError::refused(
        CR_AUTH_PLUGIN_CANNOT_LOAD,
        "the server asks for the password in clear text (mysql_clear_password); dbdyno sends it inside verified TLS or \
         over a unix socket only",
        "use tls mode verify-ca or verify-identity with a ca, or a unix socket",
    ))
}
