//! Login on a connected socket: encryption, startup message, authentication.
//!
//! `postgres-protocol` writes and reads the messages. This file limits the size and number of the server's messages
//! before that library reads them.

mod auth;
mod certificate;

use bytes::BytesMut;
use dbdyno_schema::record::Session;
use postgres_protocol::message::backend::{Header, Message};
use postgres_protocol::message::frontend;

pub use self::auth::NO_PASSWORD;
use self::auth::{Authenticator, Channel};
use super::fields::server_error;
use crate::login_socket::LoginSocket;
use crate::open_sessions::SessionKey;
use crate::server_message::sanitize;
use crate::socket::Socket;
use crate::{Address, SessionOptions, WireError};

/// Maximum bytes of one login message.
const MESSAGE_MAX: i32 = 64 << 10;
/// Maximum messages of a server in one login, including settings and notices.
const MESSAGES_MAX: u32 = 1000;
/// Bytes of a message's header.
const HEADER: usize = 5;

/// A completed login.
pub(super) struct Login {
    pub(super) socket: Socket,
    pub(super) session: Session,
    /// What cancels a statement of this session.
    pub(super) key: Option<SessionKey>,
    /// Unsolicited messages that the server sent after the login.
    pub(super) unsolicited: BytesMut,
}

/// Asks the server to cancel the statement of another session, and waits until the server has closed the connection. The
/// request needs no login. It is encrypted as a login is, because it contains the session's secret.
pub(super) async fn request_cancel(
    socket: Socket,
    options: &SessionOptions,
    address: &Address,
    (process, secret): (i32, i32),
) -> Result<(), WireError> {
    let mut stream = MessageStream(LoginSocket::new(socket, MESSAGES_MAX));
    if let Some(tls) = options.tls_for(address) {
        if stream.request_tls().await? {
            stream = MessageStream(stream.0.encrypt(tls, address).await?.0);
        } else if tls.is_required() {
            return Err(no_tls_answer());
        }
    }
    let mut request = BytesMut::new();
    frontend::cancel_request(process, secret, &mut request);
    stream.0.send(&request).await?;
    stream.0.receive().await
}

/// Logs in on a socket that is connected to `address`. `allow_clear_text_password`: over any connection.
pub(super) async fn log_in(
    socket: Socket,
    options: &SessionOptions,
    address: &Address,
    allow_clear_text_password: bool,
) -> Result<Login, WireError> {
    let mut stream = MessageStream(LoginSocket::new(socket, MESSAGES_MAX));
    let mut session = Session::default();
    let mut binding = None;
    let mut is_verified = false;
    if let Some(tls) = options.tls_for(address) {
        if stream.request_tls().await? {
            let (socket, tls_session) = stream.0.encrypt(tls, address).await?;
            stream = MessageStream(socket);
            session.tls = Some(tls_session.description);
            is_verified = tls.verifies();
            binding = tls_session.certificate.as_deref().and_then(certificate::end_point_hash);
        } else if tls.is_required() {
            let fix = "give the server a certificate (ssl = on, ssl_cert_file, ssl_key_file), which it uses over TCP only";
            return Err(tls.not_offered_error(address, fix));
        }
    }
    let channel = Channel {
        user: &options.user,
        password: &options.password,
        may_send_clear_text: is_verified || matches!(address, Address::Unix(_)) || allow_clear_text_password,
        is_encrypted: session.tls.is_some(),
        binding,
    };
    stream.send_startup(options).await?;
    session.authentication = Some(stream.authenticate(&channel).await?.to_owned());
    let key = stream.read_settings(&mut session).await?;
    Ok(Login { socket: stream.0.socket, session, key, unsolicited: stream.0.bytes })
}

fn no_tls_answer() -> WireError {
    WireError::Protocol("the server did not answer the request for TLS".into())
}

/// The messages of a login.
struct MessageStream(LoginSocket);

impl MessageStream {
    /// Returns whether the server offers TLS. The server replies with one byte.
    async fn request_tls(&mut self) -> Result<bool, WireError> {
        let mut request = BytesMut::new();
        frontend::ssl_request(&mut request);
        self.0.send(&request).await?;
        self.0.receive().await?;
        let is_offered = match &*self.0.bytes {
            [b'S', ..] => true,
            b"N" => false,
            // A server without free connections sends an error before it reads the request.
            [b'E', ..] => return Err(self.read().await.err().unwrap_or_else(no_tls_answer)),
            _ => return Err(no_tls_answer()),
        };
        let _ = self.0.bytes.split_to(1);
        Ok(is_offered)
    }

    async fn send_startup(&mut self, options: &SessionOptions) -> Result<(), WireError> {
        let parameters = [
            ("user", options.user.as_str()),
            ("database", &options.database),
            ("client_encoding", "UTF8"),
            ("application_name", "dbdyno"),
        ];
        let mut out = BytesMut::new();
        frontend::startup_message(parameters, &mut out).map_err(auth::unwritable_error)?;
        self.0.send(&out).await
    }

    /// Reads one message. An error of the server becomes an `Err`.
    async fn read(&mut self) -> Result<Message, WireError> {
        self.0.count_message()?;
        let header = loop {
            match Header::parse(&self.0.bytes).map_err(|error| WireError::Protocol(error.to_string()))? {
                Some(header) if header.len() > MESSAGE_MAX => {
                    return Err(WireError::Protocol(format!(
                        "a message of {} bytes in a login",
                        header.len()
                    )));
                }
                Some(header) if self.0.bytes.len() > header.len() as usize => break header,
                _ => self.0.receive().await?,
            }
        };
        if header.tag() == b'E' {
            let end = header.len() as usize + 1;
            return Err(server_error(&self.0.bytes[HEADER..end]));
        }
        let message = Message::parse(&mut self.0.bytes);
        let message = message.map_err(|error| {
            WireError::Protocol(format!("in a login: {}", sanitize(error.to_string().as_bytes())))
        })?;
        message.ok_or_else(|| WireError::Protocol("a truncated message in a login".into()))
    }

    /// Replies to the server until it accepts the account. Returns the name of the authentication method.
    async fn authenticate(&mut self, channel: &Channel<'_>) -> Result<&'static str, WireError> {
        let mut authenticator = Authenticator::default();
        loop {
            let request = match self.read().await? {
                // Settings, and notices, which an extension can send during a login.
                Message::NoticeResponse(_) | Message::ParameterStatus(_) => continue,
                request => request,
            };
            let mut out = BytesMut::new();
            if authenticator.answer(&request, channel, &mut out)? {
                return Ok(authenticator.method);
            }
            self.0.send(&out).await?;
        }
    }

    /// Reads the server's settings until it is ready for a statement. Returns what cancels a statement.
    async fn read_settings(&mut self, session: &mut Session) -> Result<Option<SessionKey>, WireError> {
        let mut key = None;
        loop {
            match self.read().await? {
                Message::ParameterStatus(status) => {
                    if matches!(status.name(), Ok("server_version")) {
                        session.server_version =
                            status.value().map(|text| sanitize(text.as_bytes())).unwrap_or_default();
                    }
                }
                Message::BackendKeyData(data) => {
                    key =
                        Some(SessionKey::Postgres { process: data.process_id(), secret: data.secret_key() });
                }
                Message::NoticeResponse(_) => {}
                Message::ReadyForQuery(_) => return Ok(key),
                _ => return Err(WireError::Protocol("an unknown message after the login".into())),
            }
        }
    }
}
