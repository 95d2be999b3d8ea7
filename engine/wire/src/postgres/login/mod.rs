//! Startup, encryption and authentication.
//!
//! The messages are those of `postgres-protocol`. What the server says is bounded before that library sees it.

mod auth;
mod certificate;

use bytes::BytesMut;
use dbdyno_schema::record::Session;
use postgres_protocol::message::backend::{Header, Message};
use postgres_protocol::message::frontend;

pub use self::auth::NO_PASSWORD;
use self::auth::{Channel, Proof};
use super::connector::PostgresConnector;
use super::fields::server_error;
use crate::socket::Socket;
use crate::tls::{self, TlsClient};
use crate::trouble::{Trouble, lost};
use crate::words::words;
use crate::{Address, WireError};

/// Most bytes of one message of a login.
const MESSAGE_MAX: i32 = 64 << 10;
/// Most messages of a server in one login, settings and notices included.
const MESSAGES_MAX: u32 = 1000;
/// Length of an ErrorResponse's header.
const HEADER: usize = 5;

/// A session after its login.
pub(super) struct LoggedIn {
    pub(super) socket: Socket,
    pub(super) session: Session,
    /// What came after the end of the login, unasked.
    pub(super) early: BytesMut,
}

/// Logs in on a socket that is connected to `address`.
pub(super) async fn log_in(
    socket: Socket,
    connector: &PostgresConnector,
    address: &Address,
) -> Result<LoggedIn, WireError> {
    let mut line = Line { socket, bytes: BytesMut::new(), left: MESSAGES_MAX };
    let (mut session, mut binding, mut verified) = (Session::default(), None, false);
    // What stays inside one machine is encrypted on demand only.
    let is_wanted = |tls: &&TlsClient| tls.is_demanded() || matches!(address, Address::Tcp(..));
    if let Some(tls) = connector.tls.as_ref().filter(is_wanted) {
        line = match line.ask_for_tls().await? {
            true => {
                let secured = line.encrypt(tls, address).await?;
                session.tls = Some(secured.words);
                verified = tls.verifies();
                binding = secured.certificate.as_deref().and_then(certificate::end_point);
                secured.line
            }
            false if tls.is_demanded() => return Err(no_tls(tls, address)),
            false => line,
        };
    }
    let channel = Channel {
        user: &connector.user,
        password: &connector.password,
        is_private: verified || matches!(address, Address::Unix(_)),
        is_encrypted: session.tls.is_some(),
        binding,
    };
    line.start(connector).await?;
    session.authentication = Some(line.authenticate(&channel).await?.to_owned());
    line.settle(&mut session).await?;
    Ok(LoggedIn { socket: line.socket, session, early: line.bytes })
}

fn no_tls(tls: &TlsClient, address: &Address) -> WireError {
    tls::refused(
        format!("{address}: the server offers no TLS, and tls mode {} demands it", tls.mode()),
        "give the server a certificate (ssl = on, ssl_cert_file, ssl_key_file), which it uses over TCP only, or use tls \
         mode preferred or disabled",
    )
}

fn no_answer() -> WireError {
    WireError::Protocol("no answer to the request for TLS".into())
}

/// A socket during the login: whole messages, and bytes that came too early.
struct Line {
    socket: Socket,
    bytes: BytesMut,
    /// Messages that the server may still send.
    left: u32,
}

/// A line inside TLS.
struct Secured {
    line: Line,
    /// Version and cipher suite.
    words: String,
    /// The server's certificate in DER.
    certificate: Option<Vec<u8>>,
}

impl Line {
    async fn more(&mut self) -> Result<(), WireError> {
        let Self { socket, bytes, .. } = self;
        let more = socket.receive(|piece| {
            bytes.extend_from_slice(piece);
            Ok(Some(()))
        });
        more.await.map_err(Trouble::into_wire)
    }

    async fn send(
        &mut self,
        write: impl FnOnce(&mut BytesMut) -> std::io::Result<()>,
    ) -> Result<(), WireError> {
        let mut out = BytesMut::new();
        write(&mut out).map_err(|error| WireError::Refused {
            code: 0,
            text: format!("the login cannot be written: {error}"),
            way_out: "use a user, a password and a database without the character NUL".into(),
        })?;
        self.socket.send(&out).await.map_err(lost)
    }

    /// Asks whether the server can TLS. It answers with one byte.
    async fn ask_for_tls(&mut self) -> Result<bool, WireError> {
        self.send(|out| {
            frontend::ssl_request(out);
            Ok(())
        })
        .await?;
        self.more().await?;
        match &*self.bytes {
            b"S" => {
                self.bytes.clear();
                Ok(true)
            }
            b"N" => {
                self.bytes.clear();
                Ok(false)
            }
            // Whatever comes with it did not come from inside TLS (CVE-2021-23222).
            [b'S' | b'N', ..] => Err(WireError::Protocol("data between the request for TLS and TLS".into())),
            // A server without room answers so before it reads anything.
            [b'E', ..] => Err(self.read().await.err().unwrap_or_else(no_answer)),
            _ => Err(no_answer()),
        }
    }

    async fn encrypt(mut self, tls: &TlsClient, address: &Address) -> Result<Secured, WireError> {
        let host = match address {
            Address::Tcp(host, _) => host,
            Address::Unix(_) => "localhost",
        };
        let stream = tls.secure(self.socket, host).await?;
        let session = stream.get_ref().1;
        let words = tls::describe(session);
        let certificate = session.peer_certificates().and_then(|chain| chain.first()).map(|der| der.to_vec());
        self.socket = Socket::Tls(Box::new(stream));
        Ok(Secured { line: self, words, certificate })
    }

    async fn start(&mut self, connector: &PostgresConnector) -> Result<(), WireError> {
        let parameters = [
            ("user", connector.user.as_str()),
            ("database", &connector.database),
            ("client_encoding", "UTF8"),
            ("application_name", "dbdyno"),
        ];
        self.send(|out| frontend::startup_message(parameters, out)).await
    }

    /// Reads one message; an error of the server is returned as one.
    async fn read(&mut self) -> Result<Message, WireError> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| WireError::Protocol(format!("more than {MESSAGES_MAX} messages in a login")))?;
        let header = loop {
            match Header::parse(&self.bytes).map_err(|error| WireError::Protocol(error.to_string()))? {
                Some(header) if header.len() > MESSAGE_MAX => {
                    return Err(WireError::Protocol(format!(
                        "a message of {} bytes in a login",
                        header.len()
                    )));
                }
                Some(header) if self.bytes.len() > header.len() as usize => break header,
                _ => self.more().await?,
            }
        };
        if header.tag() == b'E' {
            let end = header.len() as usize + 1;
            return Err(server_error(&self.bytes[HEADER..end]));
        }
        let message = Message::parse(&mut self.bytes);
        let message = message.map_err(|error| {
            WireError::Protocol(format!("in a login: {}", words(error.to_string().as_bytes())))
        })?;
        message.ok_or_else(|| WireError::Protocol("a message that is cut short in a login".into()))
    }

    /// Answers the server until it lets us in. Returns the name of the method that did it.
    async fn authenticate(&mut self, channel: &Channel<'_>) -> Result<&'static str, WireError> {
        let mut proof = Proof::default();
        loop {
            let asked = match self.read().await? {
                // A notice of an extension that looks at logins.
                Message::NoticeResponse(_) | Message::ParameterStatus(_) => continue,
                asked => asked,
            };
            match proof.answer(&asked, channel)? {
                auth::Step::Send(answer) => self.send(|out| answer.write(out)).await?,
                auth::Step::Wait => {}
                auth::Step::Done(name) => return Ok(name),
            }
        }
    }

    /// Reads the settings that the server tells, until it waits for us.
    async fn settle(&mut self, session: &mut Session) -> Result<(), WireError> {
        loop {
            match self.read().await? {
                Message::ParameterStatus(status) => {
                    if matches!(status.name(), Ok("server_version")) {
                        session.server_version =
                            status.value().map(|text| words(text.as_bytes())).unwrap_or_default();
                    }
                }
                Message::BackendKeyData(_) | Message::NoticeResponse(_) => {}
                Message::ReadyForQuery(_) => return Ok(()),
                _ => return Err(WireError::Protocol("an unknown message after the login".into())),
            }
        }
    }
}
