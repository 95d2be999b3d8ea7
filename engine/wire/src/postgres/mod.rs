//! PostgreSQL's protocol, version 3.
//!
//! # Layout
//! - [`message`]: what the client sends.
//! - [`skim`]: what the server answers; `fields`: what is inside its messages.
//! - [`errors`]: classes of the server's SQLSTATEs.
//! - `login`: startup, encryption and authentication, on top of `postgres-protocol`.
//! - `copy`: COPY FROM STDIN with rows made on the way.
//! - `scripted`: what scripts ask for beyond the native workloads.
//! - `connector`: what it takes to open sessions.
//! - this file: a session that puts them together.

pub mod errors;
pub mod message;
pub mod skim;

mod connector;
mod copy;
mod fields;
mod login;
mod scripted;
mod statement;

use std::time::Duration;

use dbdyno_schema::record::Session;

pub use self::connector::PostgresConnector;
use self::login::LoggedIn;
pub use self::login::NO_PASSWORD;
use self::skim::{Answer, Expect, Skim, text_row};
use self::statement::Statement;
use crate::scripted::Type;
use crate::socket::Socket;
use crate::trouble::{Trouble, lost, within};
use crate::{Address, Connection, Connector, Outcome, TextRow, Value, WireError};

/// Most bytes of an answer outside the load: to the loader's statements, say, which no run's end cuts short.
const SHORT_ANSWER_BYTES: u64 = 64 << 20;

impl Connector for PostgresConnector {
    type Connection = PostgresConnection;

    async fn connect(&self, number: u64) -> Result<PostgresConnection, WireError> {
        let address = self.address(number);
        within(self.timeout, &address.to_string(), self.open(address, number < self.sampled)).await
    }
}

impl PostgresConnector {
    fn address(&self, number: u64) -> &Address {
        &self.addresses[(number % self.addresses.len() as u64) as usize]
    }

    async fn open(&self, address: &Address, sampled: bool) -> Result<PostgresConnection, WireError> {
        let socket = match address {
            Address::Tcp(host, port) => Socket::tcp(host, *port).await,
            Address::Unix(path) => Socket::unix(path).await,
        };
        let socket = if sampled { socket.and_then(Socket::sampled) } else { socket };
        self.log_in(socket.map_err(|error| WireError::Lost(format!("{address}: {error}")))?, address).await
    }

    /// Logs in over a stream that is there already, as if it led to `address`: for tests and fuzzing, which play the
    /// server.
    #[doc(hidden)]
    pub async fn connect_over(
        &self,
        stream: tokio::net::UnixStream,
        address: &Address,
    ) -> Result<PostgresConnection, WireError> {
        self.log_in(Socket::Unix(stream), address).await
    }

    async fn log_in(&self, socket: Socket, address: &Address) -> Result<PostgresConnection, WireError> {
        let LoggedIn { socket, session, early } = login::log_in(socket, self, address).await?;
        let mut skim = Skim::default();
        skim.feed(&early)?;
        Ok(PostgresConnection {
            socket,
            session,
            timeout: self.timeout,
            out: Vec::new(),
            skim,
            statements: Vec::new(),
            asked: None,
            has_forgotten: false,
        })
    }
}

/// One session with a PostgreSQL server.
#[derive(Debug)]
pub struct PostgresConnection {
    socket: Socket,
    session: Session,
    /// Time allowed to prepare a statement, which is a part of opening.
    timeout: Duration,
    /// The message being sent; kept to save the allocation.
    out: Vec<u8>,
    skim: Skim,
    /// Prepared statements by their numbers, which are their names.
    statements: Vec<Statement>,
    /// The statement that a script's message asks for.
    asked: Option<u32>,
    /// Whether the server still knows statements that a script has forgotten.
    has_forgotten: bool,
}

impl PostgresConnection {
    /// Sends what is in `out` and skims the answer.
    #[inline]
    async fn exchange(&mut self) -> Result<Answer, WireError> {
        if let Some(error) = self.skim.farewell() {
            return Err(error.clone());
        }
        if let Err(error) = self.socket.send(&self.out).await {
            return Err(self.last_words(lost(error)).await);
        }
        self.answer().await
    }

    #[inline]
    async fn answer(&mut self) -> Result<Answer, WireError> {
        let Self { socket, skim, .. } = self;
        let answer = socket.receive(|bytes| skim.feed(bytes).map_err(Trouble::Wire)).await;
        answer.map_err(|trouble| match trouble {
            Trouble::Wire(error) => error,
            // What a server said before it left is worth more than that it has left.
            Trouble::Io(error) => self.skim.unfinished_error().unwrap_or_else(|| lost(error)),
        })
    }

    /// What a server said before it closed the connection, or else `error`.
    #[cold]
    async fn last_words(&mut self, error: WireError) -> WireError {
        match self.answer().await {
            Err(error @ WireError::Server { .. }) => error,
            _ => error,
        }
    }

    /// Sends what is in `out`, whose answer is known to be short.
    async fn ask_shortly(&mut self, expect: Expect) -> Result<Answer, WireError> {
        self.skim.begin(expect, false);
        self.skim.at_most(SHORT_ANSWER_BYTES);
        self.exchange().await
    }
}

impl Connection for PostgresConnection {
    fn session(&self) -> &Session {
        &self.session
    }

    async fn prepare(&mut self, sql: &str, types: &[Type]) -> Result<(), WireError> {
        let name = self.statements.len() as u32;
        let (numbered, _) = message::numbered(sql.as_bytes());
        self.out.clear();
        message::parse(&mut self.out, name, &numbered, types.iter().copied());
        message::sync(&mut self.out);
        let answer =
            within(self.timeout, "preparing a statement", self.ask_shortly(Expect::Prepared)).await?;
        self.statements.push(Statement::prepared(answer.described == Some(true)));
        Ok(())
    }

    async fn execute(&mut self, statement: usize, values: &[Value]) -> Result<Outcome, WireError> {
        self.out.clear();
        message::execute(&mut self.out, statement as u32, values);
        self.skim.begin(Expect::Result, self.statements[statement].returns_rows);
        Ok(self.exchange().await?.outcome)
    }

    async fn execute_text(&mut self, template: &str, values: &[Value]) -> Result<Outcome, WireError> {
        self.out.clear();
        message::query_with(&mut self.out, template, values);
        self.skim.begin(Expect::Result, false);
        Ok(self.exchange().await?.outcome)
    }

    async fn query(&mut self, sql: &[u8]) -> Result<Outcome, WireError> {
        self.out.clear();
        message::query(&mut self.out, sql);
        Ok(self.ask_shortly(Expect::Result).await?.outcome)
    }

    async fn rows(&mut self, sql: &str) -> Result<Vec<TextRow>, WireError> {
        self.out.clear();
        message::query(&mut self.out, sql.as_bytes());
        self.skim.begin(Expect::Result, false);
        self.skim.at_most(SHORT_ANSWER_BYTES);
        self.skim.keep_rows();
        self.exchange().await?;
        let rows = self.skim.take_rows();
        (0..rows.ends.len()).filter_map(|index| rows.row(index)).map(text_row).collect()
    }

    async fn close(&mut self) {
        self.out.clear();
        message::terminate(&mut self.out);
        // The session ends either way; a server that is gone has nothing to hear.
        let _ = self.socket.send(&self.out).await;
    }
}
