//! PostgreSQL's protocol, version 3.

pub mod errors;
pub mod message;
pub mod skim;

mod cancel;
mod copy;
mod fields;
mod login;
mod scripted;
mod statement;

use std::time::Duration;

use dbdyno_schema::record::Session;

pub use self::login::NO_PASSWORD;
use self::login::{Login, log_in};
use self::skim::{Answer, ExpectedAnswer, Skimmer};
use self::statement::Statement;
use crate::open_sessions::{Registration, SessionKey};
use crate::scripted::Type;
use crate::session_options::with_timeout;
use crate::socket::Socket;
use crate::{Address, Connection, Connector, Outcome, SessionOptions, TextRow, Value, WireError};

/// Maximum bytes of an answer outside the load, for example to the loader. The end of a run does not interrupt such an
/// answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Opens sessions with one server, or with several servers in turn.
#[derive(Clone)]
pub struct PostgresConnector {
    /// Options common to all protocols.
    pub options: SessionOptions,
    /// Whether the client sends the password in clear text, if the server asks for it, over any connection.
    pub allow_clear_text_password: bool,
}

impl Connector for PostgresConnector {
    type Connection = PostgresConnection;

    async fn connect(&self, number: u64) -> Result<PostgresConnection, WireError> {
        self.options.connect(number, async |socket, address| self.log_in(number, socket, address).await).await
    }

    async fn cancel(&self, number: u64, sessions: Vec<SessionKey>) {
        cancel::cancel(&self.options, number, &sessions).await;
    }
}

impl PostgresConnector {
    /// Logs in over a connected stream, as if the server were at `address`. For tests and fuzzing, which simulate the
    /// server.
    #[doc(hidden)]
    pub async fn connect_over(
        &self,
        stream: tokio::net::UnixStream,
        address: &Address,
    ) -> Result<PostgresConnection, WireError> {
        self.log_in(0, Socket::Unix(stream), address).await
    }

    async fn log_in(
        &self,
        number: u64,
        socket: Socket,
        address: &Address,
    ) -> Result<PostgresConnection, WireError> {
        let Login { socket, session, key, unsolicited } =
            log_in(socket, &self.options, address, self.allow_clear_text_password).await?;
        let mut skim = Skimmer::new();
        skim.feed(&unsolicited)?;
        Ok(PostgresConnection {
            socket,
            session,
            registration: key.map(|key| self.options.open_sessions.register(number, key)),
            timeout: self.options.timeout,
            out: Vec::new(),
            skim,
            statements: Vec::new(),
            current_statement: None,
            has_closed: false,
        })
    }
}

/// One session with a PostgreSQL server.
pub struct PostgresConnection {
    socket: Socket,
    session: Session,
    /// `None` if the server did not say how to cancel a statement of this session.
    registration: Option<Registration>,
    /// Time limit for preparing a statement.
    timeout: Duration,
    /// The message to send, reused to avoid allocations.
    out: Vec<u8>,
    skim: Skimmer,
    /// Prepared statements. A statement's index is also its name on the server.
    statements: Vec<Statement>,
    /// The statement to which the written message of a script belongs.
    current_statement: Option<u32>,
    /// Whether the server may still have statements that the script has closed.
    has_closed: bool,
}

impl PostgresConnection {
    /// Sends `out` and skims the answer.
    #[inline]
    async fn exchange(&mut self) -> Result<Answer, WireError> {
        if let Some(error) = self.skim.fatal_error() {
            return Err(error.clone());
        }
        if let Err(error) = self.socket.send(&self.out).await {
            return Err(self.server_error_or(error.into()).await);
        }
        self.answer().await
    }

    #[inline]
    async fn answer(&mut self) -> Result<Answer, WireError> {
        let Self { socket, skim, .. } = self;
        match socket.receive(|bytes| skim.feed(bytes)).await {
            // Prefer the error that the server sent before it closed the connection.
            Err(lost @ WireError::Lost(_)) => Err(skim.unfinished_error().unwrap_or(lost)),
            answer => answer,
        }
    }

    /// The error that the server sent before it closed the connection, or else `error`.
    #[cold]
    async fn server_error_or(&mut self, error: WireError) -> WireError {
        match self.answer().await {
            Err(error @ WireError::Server { .. }) => error,
            _ => error,
        }
    }

    /// Sends `out`, to which the answer is short.
    async fn request_short_answer(&mut self, expect: ExpectedAnswer) -> Result<Answer, WireError> {
        self.skim.begin(expect, false);
        self.skim.limit_bytes(ANSWER_BYTES_MAX);
        self.exchange().await
    }

    /// Sends the message that prepares a statement.
    async fn request_prepare(&mut self) -> Result<Answer, WireError> {
        with_timeout(
            self.timeout,
            "preparing a statement",
            self.request_short_answer(ExpectedAnswer::Prepared),
        )
        .await
    }
}

impl Connection for PostgresConnection {
    fn session(&self) -> &Session {
        &self.session
    }

    async fn prepare(&mut self, sql: &str, types: &[Type]) -> Result<(), WireError> {
        let name = self.statements.len() as u32;
        let (numbered, _) = message::number_placeholders(sql.as_bytes());
        self.out.clear();
        message::parse(&mut self.out, name, &numbered, types.iter().copied());
        message::sync(&mut self.out);
        let returns_rows = self.request_prepare().await?.described == Some(true);
        self.statements.push(Statement { returns_rows, is_on_server: true, ..Statement::default() });
        Ok(())
    }

    async fn execute(&mut self, statement: usize, values: &[Value]) -> Result<Outcome, WireError> {
        self.out.clear();
        message::execute(&mut self.out, statement as u32, values);
        self.skim.begin(ExpectedAnswer::Result, self.statements[statement].returns_rows);
        Ok(self.exchange().await?.outcome)
    }

    async fn execute_text(&mut self, template: &str, values: &[Value]) -> Result<Outcome, WireError> {
        self.out.clear();
        message::query_with(&mut self.out, template, values);
        self.skim.begin(ExpectedAnswer::Result, false);
        Ok(self.exchange().await?.outcome)
    }

    async fn query(&mut self, sql: &[u8]) -> Result<Outcome, WireError> {
        self.out.clear();
        message::query(&mut self.out, sql);
        Ok(self.request_short_answer(ExpectedAnswer::Result).await?.outcome)
    }

    async fn query_rows(&mut self, sql: &str) -> Result<Vec<TextRow>, WireError> {
        self.out.clear();
        message::query(&mut self.out, sql.as_bytes());
        self.skim.begin(ExpectedAnswer::Result, false);
        self.skim.limit_bytes(ANSWER_BYTES_MAX);
        self.skim.keep_rows();
        self.exchange().await?;
        self.skim.take_rows().to_text()
    }

    async fn close(&mut self) {
        self.out.clear();
        message::terminate(&mut self.out);
        // The session ends even if this message is not sent.
        let _ = self.socket.send(&self.out).await;
        self.registration.iter().for_each(Registration::remove);
    }
}
