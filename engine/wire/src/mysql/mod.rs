//! The MySQL protocol: MySQL and MariaDB.

pub mod compress;
pub mod errors;
pub mod message;
pub mod skim;

mod cancel;
mod connector;
pub(crate) mod fields;
mod local_data;
mod login;
mod public_key;
mod scripted;

use std::time::Duration;

use dbdyno_schema::record::Session;

pub use self::connector::MysqlConnector;
use self::login::Login;
pub use self::public_key::PublicKey;
use self::skim::{Answer, ExpectedAnswer, Skimmer};
pub use crate::Address;
use crate::open_sessions::{Registration, SessionKey};
use crate::scripted::{ResultSet, Type};
use crate::session_options::with_timeout;
use crate::socket::Socket;
use crate::{Connection, Connector, Outcome, TextRow, Value, WireError};

/// Maximum bytes of an answer outside the load, for example to the loader. The end of a run does not interrupt such an
/// answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

impl Connector for MysqlConnector {
    type Connection = MysqlConnection;

    async fn connect(&self, number: u64) -> Result<MysqlConnection, WireError> {
        self.options.connect(number, async |socket, address| self.log_in(number, socket, address).await).await
    }

    async fn cancel(&self, number: u64, sessions: Vec<SessionKey>) {
        // Without a further connection nothing can be cancelled.
        let _ = cancel::cancel(self, number, &sessions).await;
    }
}

impl MysqlConnector {
    /// Logs in over a connected stream, as if the server were at `address`. For tests and fuzzing, which simulate the
    /// server.
    #[doc(hidden)]
    pub async fn connect_over(
        &self,
        stream: tokio::net::UnixStream,
        address: &Address,
    ) -> Result<MysqlConnection, WireError> {
        self.log_in(0, Socket::Unix(stream), address).await
    }

    async fn log_in(
        &self,
        number: u64,
        socket: Socket,
        address: &Address,
    ) -> Result<MysqlConnection, WireError> {
        let Login { socket, session, id, deprecate_eof } = login::log_in(socket, self, address).await?;
        Ok(MysqlConnection {
            socket,
            session,
            id,
            registration: self.options.open_sessions.register(number, SessionKey::Mysql(id)),
            deprecate_eof,
            timeout: self.options.timeout,
            out: Vec::new(),
            statements: Vec::new(),
            tracks_result_sets: false,
            result_sets: Vec::new(),
        })
    }
}

/// One session with a MySQL or MariaDB server.
pub struct MysqlConnection {
    socket: Socket,
    session: Session,
    /// The server's number of this session.
    id: u32,
    registration: Registration,
    deprecate_eof: bool,
    /// Time limit for preparing a statement.
    timeout: Duration,
    /// The message to send, reused to avoid allocations.
    out: Vec<u8>,
    statements: Vec<Statement>,
    tracks_result_sets: bool,
    /// The results of the last answer, if results are tracked and the answer had several.
    result_sets: Vec<ResultSet>,
}

#[derive(Clone, Copy, Debug)]
struct Statement {
    id: u32,
    types_sent: bool,
}

impl MysqlConnection {
    /// Sends `out` and feeds the answer to `skim`.
    async fn exchange(&mut self, skim: &mut Skimmer) -> Result<Answer, WireError> {
        self.socket.send(&self.out).await?;
        self.socket.receive(|bytes| skim.feed(bytes)).await
    }

    /// Sends `out`, to which the answer is short.
    async fn request_short_answer(&mut self, expect: ExpectedAnswer) -> Result<Answer, WireError> {
        let mut skim = Skimmer::new(expect, self.deprecate_eof).limit_bytes(ANSWER_BYTES_MAX);
        self.exchange(&mut skim).await
    }

    /// Sends the message of a statement of the load.
    async fn request(&mut self) -> Result<Outcome, WireError> {
        let mut skim = Skimmer::new(ExpectedAnswer::Result, self.deprecate_eof);
        Ok(self.exchange(&mut skim).await?.outcome)
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

impl Connection for MysqlConnection {
    fn session(&self) -> &Session {
        &self.session
    }

    async fn prepare(&mut self, sql: &str, _types: &[Type]) -> Result<(), WireError> {
        self.out.clear();
        message::prepare(&mut self.out, sql.as_bytes());
        let id = self.request_prepare().await?.statement_id;
        self.statements.push(Statement { id, types_sent: false });
        Ok(())
    }

    async fn execute(&mut self, statement: usize, values: &[Value]) -> Result<Outcome, WireError> {
        self.out.clear();
        let prepared = &mut self.statements[statement];
        message::execute(&mut self.out, prepared.id, values, !prepared.types_sent);
        prepared.types_sent = true;
        self.request().await
    }

    async fn execute_text(&mut self, template: &str, values: &[Value]) -> Result<Outcome, WireError> {
        self.out.clear();
        message::query_with(&mut self.out, template, values);
        self.request().await
    }

    async fn query(&mut self, sql: &[u8]) -> Result<Outcome, WireError> {
        self.out.clear();
        message::query(&mut self.out, sql);
        Ok(self.request_short_answer(ExpectedAnswer::Result).await?.outcome)
    }

    async fn query_rows(&mut self, sql: &str) -> Result<Vec<TextRow>, WireError> {
        self.out.clear();
        message::query(&mut self.out, sql.as_bytes());
        let mut skim = Skimmer::new(ExpectedAnswer::Result, self.deprecate_eof)
            .keep_rows()
            .limit_bytes(ANSWER_BYTES_MAX);
        self.exchange(&mut skim).await?;
        skim.into_rows().to_text()
    }

    async fn close(&mut self) {
        self.out.clear();
        message::quit(&mut self.out);
        // The session ends even if this message is not sent.
        let _ = self.socket.send(&self.out).await;
        self.registration.remove();
    }
}
