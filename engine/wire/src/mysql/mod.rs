//! The MySQL protocol: MySQL and MariaDB.
//!
//! # Layout
//! - [`message`]: what the client sends.
//! - [`skim`]: what the server answers; `fields`: what is inside its packets.
//! - [`errors`]: classes of the server's error numbers.
//! - `login`: greeting, encryption and authentication, on top of `mysql_common`.
//! - `public_key`: the server's RSA key; `refused`: a login that is not gone through with.
//! - `local_data`: LOAD DATA LOCAL with rows made on the way.
//! - [`compress`]: the compressed form of the protocol.
//! - `scripted`: what scripts ask for beyond the native workloads.
//! - `connector`: what it takes to open sessions.
//! - this file: a session that puts them together.

pub mod compress;
pub mod errors;
pub mod message;
pub mod skim;

mod connector;
mod fields;
mod local_data;
mod login;
mod public_key;
mod refused;
mod scripted;

use std::time::Duration;

use dbdyno_schema::record::Session;

pub use self::connector::MysqlConnector;
use self::login::LoggedIn;
pub use self::public_key::PublicKey;
use self::skim::{Answer, Expect, Skim, text_row};
pub use crate::Address;
use crate::scripted::{Part, Type};
use crate::socket::Socket;
use crate::trouble::{Trouble, lost, within};
use crate::{Connection, Connector, Outcome, TextRow, Value, WireError};

/// Most bytes of an answer outside the load: to the loader's statements, say, which no run's end cuts short.
const SHORT_ANSWER_BYTES: u64 = 64 << 20;

impl Connector for MysqlConnector {
    type Connection = MysqlConnection;

    async fn connect(&self, number: u64) -> Result<MysqlConnection, WireError> {
        let address = &self.addresses[(number % self.addresses.len() as u64) as usize];
        within(self.timeout, &address.to_string(), self.open(address, number < self.sampled)).await
    }
}

impl MysqlConnector {
    async fn open(&self, address: &Address, sampled: bool) -> Result<MysqlConnection, WireError> {
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
    ) -> Result<MysqlConnection, WireError> {
        self.log_in(Socket::Unix(stream), address).await
    }

    async fn log_in(&self, socket: Socket, address: &Address) -> Result<MysqlConnection, WireError> {
        let LoggedIn { socket, session, deprecate_eof } = login::log_in(socket, self, address).await?;
        let timeout = self.timeout;
        Ok(MysqlConnection {
            socket,
            session,
            deprecate_eof,
            timeout,
            out: Vec::new(),
            statements: Vec::new(),
            tells_parts: false,
            parts: Vec::new(),
        })
    }
}

/// One session with a MySQL or MariaDB server.
#[derive(Debug)]
pub struct MysqlConnection {
    socket: Socket,
    session: Session,
    deprecate_eof: bool,
    /// Time allowed to prepare a statement, which is a part of opening.
    timeout: Duration,
    /// The message being sent; kept to save the allocation.
    out: Vec<u8>,
    statements: Vec<Statement>,
    /// Whether several results are told one by one, and those of the last answer.
    tells_parts: bool,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Statement {
    id: u32,
    types_sent: bool,
}

impl MysqlConnection {
    /// Sends what is in `out` and skims the answer with `skim`.
    async fn exchange(&mut self, skim: &mut Skim) -> Result<Answer, WireError> {
        self.socket.send(&self.out).await.map_err(lost)?;
        self.socket.receive(|bytes| skim.feed(bytes).map_err(Trouble::Wire)).await.map_err(Trouble::into_wire)
    }

    /// The same for statements whose answer is known to be short.
    async fn ask_shortly(&mut self, expect: Expect) -> Result<Answer, WireError> {
        let mut skim = Skim::new(expect, self.deprecate_eof).at_most(SHORT_ANSWER_BYTES);
        self.exchange(&mut skim).await
    }

    async fn ask(&mut self, expect: Expect) -> Result<Answer, WireError> {
        let mut skim = Skim::new(expect, self.deprecate_eof);
        self.exchange(&mut skim).await
    }
}

impl Connection for MysqlConnection {
    fn session(&self) -> &Session {
        &self.session
    }

    async fn prepare(&mut self, sql: &str, _types: &[Type]) -> Result<(), WireError> {
        self.out.clear();
        message::prepare(&mut self.out, sql);
        let answer = within(self.timeout, "preparing a statement", self.ask_shortly(Expect::Prepared));
        let id = answer.await?.statement_id;
        self.statements.push(Statement { id, types_sent: false });
        Ok(())
    }

    async fn execute(&mut self, statement: usize, values: &[Value]) -> Result<Outcome, WireError> {
        self.out.clear();
        let prepared = &mut self.statements[statement];
        message::execute(&mut self.out, prepared.id, values, !prepared.types_sent);
        prepared.types_sent = true;
        Ok(self.ask(Expect::Result).await?.outcome)
    }

    async fn execute_text(&mut self, template: &str, values: &[Value]) -> Result<Outcome, WireError> {
        self.out.clear();
        message::query_with(&mut self.out, template, values);
        Ok(self.ask(Expect::Result).await?.outcome)
    }

    async fn query(&mut self, sql: &[u8]) -> Result<Outcome, WireError> {
        self.out.clear();
        message::query(&mut self.out, sql);
        Ok(self.ask_shortly(Expect::Result).await?.outcome)
    }

    async fn rows(&mut self, sql: &str) -> Result<Vec<TextRow>, WireError> {
        self.out.clear();
        message::query(&mut self.out, sql.as_bytes());
        let mut skim = Skim::new(Expect::Result, self.deprecate_eof).keep_rows().at_most(SHORT_ANSWER_BYTES);
        self.exchange(&mut skim).await?;
        skim.into_rows().iter().map(|row| text_row(row)).collect()
    }

    async fn close(&mut self) {
        self.out.clear();
        message::quit(&mut self.out);
        // The session ends either way; a server that is gone has nothing to hear.
        let _ = self.socket.send(&self.out).await;
    }
}
