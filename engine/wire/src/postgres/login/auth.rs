//! Authentication, without I/O.
//!
//! [`Authenticator`] turns requests of the server into replies. It sends a clear-text password only through a [`Channel`]
//! that may: TLS with a verified certificate, a unix socket, or any if the user allows it.

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use crate::WireError;
use crate::server_message::sanitize;

/// The method of an account for which the server asks nothing.
const NO_METHOD: &str = "trust";
const SCRAM: &str = "SCRAM-SHA-256";
const SCRAM_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// The password, and the properties of the connection that decide in which form to send it.
pub(super) struct Channel<'a> {
    pub(super) user: &'a str,
    pub(super) password: &'a str,
    /// Whether the channel is confidential and the server's identity is verified (verified TLS or a unix socket), or the
    /// user allows it nevertheless.
    pub(super) may_send_clear_text: bool,
    pub(super) is_encrypted: bool,
    /// Hash of the server's certificate, for channel binding.
    pub(super) binding: Option<Vec<u8>>,
}

/// The client's side of one authentication.
pub(super) struct Authenticator {
    /// Name of the method.
    pub(super) method: &'static str,
    scram: Option<ScramSha256>,
}

impl Default for Authenticator {
    fn default() -> Self {
        Self { method: NO_METHOD, scram: None }
    }
}

impl Authenticator {
    /// Writes the answer to the server's request into `out`. Returns whether the server has accepted the account.
    pub(super) fn answer(
        &mut self,
        request: &Message,
        channel: &Channel<'_>,
        out: &mut BytesMut,
    ) -> Result<bool, WireError> {
        let asks_for_password = matches!(
            request,
            Message::AuthenticationCleartextPassword
                | Message::AuthenticationMd5Password(_)
                | Message::AuthenticationSasl(_)
        );
        // A server that asks without end would get answers without end.
        if asks_for_password && self.method != NO_METHOD {
            return Err(WireError::Protocol("the server asks for the password twice".into()));
        }
        match request {
            // If a server sends OK before SCRAM is complete, it has not proved its identity.
            Message::AuthenticationOk if self.scram.is_none() => return Ok(true),
            Message::AuthenticationOk => {
                return Err(WireError::Protocol(
                    "the server ended SCRAM without proving its identity".into(),
                ));
            }
            Message::AuthenticationCleartextPassword => self.send_clear_text(channel, out)?,
            Message::AuthenticationMd5Password(body) => {
                let password = require_password(channel)?;
                self.method = "md5";
                let hash = md5_hash(channel.user.as_bytes(), password.as_bytes(), body.salt());
                frontend::password_message(hash.as_bytes(), out).map_err(unwritable_error)?;
            }
            Message::AuthenticationSasl(body) => {
                let offered = body.mechanisms().collect::<Vec<_>>();
                self.begin_scram(&offered.map_err(scram_error)?, channel, out)?;
            }
            Message::AuthenticationSaslContinue(body) => {
                let scram = self.scram.as_mut().ok_or_else(out_of_order_error)?;
                scram.update(body.data()).map_err(scram_error)?;
                frontend::sasl_response(scram.message(), out).map_err(unwritable_error)?;
            }
            Message::AuthenticationSaslFinal(body) => {
                let mut scram = self.scram.take().ok_or_else(out_of_order_error)?;
                scram.finish(body.data()).map_err(scram_error)?;
            }
            other => return Err(unknown_method_error(other)),
        }
        Ok(false)
    }

    fn send_clear_text(&mut self, channel: &Channel<'_>, out: &mut BytesMut) -> Result<(), WireError> {
        let password = require_password(channel)?;
        if channel.may_send_clear_text {
            self.method = "password";
            return frontend::password_message(password.as_bytes(), out).map_err(unwritable_error);
        }
        let over = if channel.is_encrypted {
            "over TLS that does not verify the server"
        } else {
            "over a connection that others may read"
        };
        Err(refused_error(
            format!("the server asks for the password itself {over}"),
            "use tls mode verify-ca or verify-identity with a ca, or a unix socket; or give the account scram-sha-256 in \
             pg_hba.conf; or allow_clear_text_password, where nobody can read the connection",
        ))
    }

    fn begin_scram(
        &mut self,
        mechanisms: &[&str],
        channel: &Channel<'_>,
        out: &mut BytesMut,
    ) -> Result<(), WireError> {
        let password = require_password(channel)?;
        let offers = |name: &str| mechanisms.contains(&name);
        let (mechanism, binding) = match &channel.binding {
            Some(hash) if offers(SCRAM_PLUS) => {
                (SCRAM_PLUS, ChannelBinding::tls_server_end_point(hash.clone()))
            }
            // `unrequested` means that the client supports channel binding, so the server detects an
            // attacker who removed SCRAM-SHA-256-PLUS from its offer.
            Some(_) if offers(SCRAM) => (SCRAM, ChannelBinding::unrequested()),
            None if offers(SCRAM) => (SCRAM, ChannelBinding::unsupported()),
            _ => {
                return Err(refused_error(
                    "the server offers no authentication method that dbdyno supports",
                    "give the account scram-sha-256 in pg_hba.conf",
                ));
            }
        };
        self.method = if mechanism == SCRAM_PLUS { "scram-sha-256-plus" } else { "scram-sha-256" };
        let scram = ScramSha256::new(password.as_bytes(), binding);
        let scram = self.scram.insert(scram);
        frontend::sasl_initial_response(mechanism, scram.message(), out).map_err(unwritable_error)
    }
}

/// The error for a server that requests a password if the plan has none.
pub const NO_PASSWORD: &str = "the server requests a password, but target.password is not set";

/// The password; an error if it is empty, because no method accepts an empty password.
fn require_password<'a>(channel: &Channel<'a>) -> Result<&'a str, WireError> {
    if channel.password.is_empty() {
        return Err(refused_error(
            NO_PASSWORD,
            "set target.password to the variable or file that contains the password",
        ));
    }
    Ok(channel.password)
}

fn out_of_order_error() -> WireError {
    WireError::Protocol("an unexpected SCRAM message".into())
}

/// The error for a message that the protocol library cannot write.
pub(super) fn unwritable_error(error: std::io::Error) -> WireError {
    let fix = "use a user, a password and a database without the character NUL";
    refused_error(format!("the login cannot be written: {error}"), fix)
}

// Sanitised, because the library's message quotes the server.
fn scram_error(error: std::io::Error) -> WireError {
    WireError::Protocol(format!("SCRAM: {}", sanitize(error.to_string().as_bytes())))
}

fn refused_error(text: impl Into<String>, fix: &str) -> WireError {
    WireError::refused(0, text, fix)
}

fn unknown_method_error(request: &Message) -> WireError {
    let name = match request {
        Message::AuthenticationGss | Message::AuthenticationGssContinue(_) => "GSSAPI",
        Message::AuthenticationSspi => "SSPI",
        Message::AuthenticationKerberosV5 => "Kerberos",
        Message::AuthenticationScmCredential => "SCM credentials",
        _ => return WireError::Protocol("an unknown message during a login".into()),
    };
    refused_error(
        format!("the account uses the authentication method {name}, which dbdyno does not support"),
        "use scram-sha-256, md5, cert, peer or trust for the account in pg_hba.conf, or use another account",
    )
}
