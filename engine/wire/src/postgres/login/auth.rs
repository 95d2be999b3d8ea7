//! How an account proves its password.
//!
//! No method moves bytes: [`Proof`] is told what the server asks and says what to answer. The password itself goes through
//! a private [`Channel`] only: TLS whose certificate is verified, or a unix socket.

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use crate::WireError;
use crate::words::words;

const SCRAM: &str = "SCRAM-SHA-256";
const SCRAM_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// What is known about the way to the server.
pub(super) struct Channel<'a> {
    pub(super) user: &'a str,
    pub(super) password: &'a str,
    /// Nobody else reads along, and it is known who listens: verified TLS or a unix socket.
    pub(super) is_private: bool,
    pub(super) is_encrypted: bool,
    /// The hash of the certificate that a login can be bound to.
    pub(super) binding: Option<Vec<u8>>,
}

/// What to send.
pub(super) enum Answer {
    Password(Vec<u8>),
    First { mechanism: &'static str, data: Vec<u8> },
    Further(Vec<u8>),
}

impl Answer {
    pub(super) fn write(&self, out: &mut BytesMut) -> std::io::Result<()> {
        match self {
            Answer::Password(password) => frontend::password_message(password, out),
            Answer::First { mechanism, data } => frontend::sasl_initial_response(mechanism, data, out),
            Answer::Further(data) => frontend::sasl_response(data, out),
        }
    }
}

/// What follows.
pub(super) enum Step {
    Send(Answer),
    Wait,
    /// The server has let us in, by this method.
    Done(&'static str),
}

/// One login's proof, from the server's request to the end.
pub(super) struct Proof {
    method: &'static str,
    scram: Option<ScramSha256>,
}

impl Default for Proof {
    fn default() -> Self {
        Self { method: "trust", scram: None }
    }
}

impl Proof {
    /// The answer to what the server asks.
    pub(super) fn answer(&mut self, asked: &Message, channel: &Channel<'_>) -> Result<Step, WireError> {
        match asked {
            // A server that stops in the middle of SCRAM has proved nothing itself.
            Message::AuthenticationOk if self.scram.is_none() => Ok(Step::Done(self.method)),
            Message::AuthenticationOk => {
                Err(WireError::Protocol("the server ended SCRAM without a proof of its own".into()))
            }
            Message::AuthenticationCleartextPassword => self.clear(channel),
            Message::AuthenticationMd5Password(body) => {
                let password = given(channel)?;
                self.method = "md5";
                let hash = md5_hash(channel.user.as_bytes(), password.as_bytes(), body.salt());
                Ok(Step::Send(Answer::Password(hash.into_bytes())))
            }
            Message::AuthenticationSasl(body) => {
                let offered = body.mechanisms().collect::<Vec<_>>();
                self.begin_scram(&offered.map_err(|error| scram_error(&error))?, channel)
            }
            Message::AuthenticationSaslContinue(body) => {
                let scram = self.scram.as_mut().ok_or_else(out_of_order)?;
                scram.update(body.data()).map_err(|error| scram_error(&error))?;
                Ok(Step::Send(Answer::Further(scram.message().to_vec())))
            }
            Message::AuthenticationSaslFinal(body) => {
                let mut scram = self.scram.take().ok_or_else(out_of_order)?;
                scram.finish(body.data()).map_err(|error| scram_error(&error))?;
                Ok(Step::Wait)
            }
            other => Err(unknown(other)),
        }
    }

    fn clear(&mut self, channel: &Channel<'_>) -> Result<Step, WireError> {
        let password = given(channel)?;
        if channel.is_private {
            self.method = "password";
            return Ok(Step::Send(Answer::Password(password.as_bytes().to_vec())));
        }
        let over = if channel.is_encrypted {
            "over TLS that does not verify who asks"
        } else {
            "over a connection that others may read"
        };
        Err(refused(
            format!("the server asks for the password itself {over}"),
            "use tls mode verify-ca or verify-identity with a ca, or a unix socket; or give the account scram-sha-256 in \
             pg_hba.conf",
        ))
    }

    fn begin_scram(&mut self, mechanisms: &[&str], channel: &Channel<'_>) -> Result<Step, WireError> {
        let password = given(channel)?;
        let offers = |name: &str| mechanisms.contains(&name);
        let (mechanism, binding) = match &channel.binding {
            Some(hash) if offers(SCRAM_PLUS) => {
                (SCRAM_PLUS, ChannelBinding::tls_server_end_point(hash.clone()))
            }
            // We could, and the server says that it cannot: it will notice if somebody else has said so.
            Some(_) if offers(SCRAM) => (SCRAM, ChannelBinding::unrequested()),
            None if offers(SCRAM) => (SCRAM, ChannelBinding::unsupported()),
            _ => {
                return Err(refused(
                    "the server offers no login method that dbdyno knows".into(),
                    "give the account scram-sha-256 in pg_hba.conf",
                ));
            }
        };
        self.method = if mechanism == SCRAM_PLUS { "scram-sha-256-plus" } else { "scram-sha-256" };
        let scram = ScramSha256::new(password.as_bytes(), binding);
        let data = scram.message().to_vec();
        self.scram = Some(scram);
        Ok(Step::Send(Answer::First { mechanism, data }))
    }
}

/// What is said where a password is asked for and there is none.
pub const NO_PASSWORD: &str = "the server asks for a password, and none is given";

/// The password, which no method takes when it is empty.
fn given<'a>(channel: &Channel<'a>) -> Result<&'a str, WireError> {
    if channel.password.is_empty() {
        return Err(refused(
            NO_PASSWORD.into(),
            "name the variable or file of the password in target.password",
        ));
    }
    Ok(channel.password)
}

fn out_of_order() -> WireError {
    WireError::Protocol("a part of SCRAM that was not due".into())
}

/// The library quotes what the server has sent.
fn scram_error(error: &std::io::Error) -> WireError {
    WireError::Protocol(format!("SCRAM: {}", words(error.to_string().as_bytes())))
}

fn refused(text: String, way_out: &str) -> WireError {
    WireError::Refused { code: 0, text, way_out: way_out.into() }
}

fn unknown(asked: &Message) -> WireError {
    let name = match asked {
        Message::AuthenticationGss | Message::AuthenticationGssContinue(_) => "GSSAPI",
        Message::AuthenticationSspi => "SSPI",
        Message::AuthenticationKerberosV5 => "Kerberos",
        Message::AuthenticationScmCredential => "SCM credentials",
        _ => return WireError::Protocol("an unknown message in the middle of a login".into()),
    };
    refused(
        format!("the account logs in with {name}, which dbdyno does not know"),
        "give the account scram-sha-256, md5, cert, peer or trust in pg_hba.conf, or use another account",
    )
}
