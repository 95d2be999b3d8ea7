//! What scripts ask of a session; see [`crate::scripted`].

use super::skim::{Expect, Skim};
use super::{MysqlConnection, MysqlConnector, message};
use crate::scripted::{Parameter, Part, Prepared, Rows, Scripted, ScriptedConnector};
use crate::trouble::{Trouble, within};
use crate::{Outcome, WireError};

/// Most bytes of the rows that a script's statement keeps: more is a mistake, and would fill the memory.
const ROWS_MAX: usize = 1 << 30;

impl Scripted for MysqlConnection {
    fn write_prepare(&mut self, sql: &[u8]) {
        self.out.clear();
        message::command(&mut self.out, message::COM_STMT_PREPARE, sql);
    }

    fn write_execute<'a>(
        &mut self,
        id: u32,
        parameters: impl Iterator<Item = Parameter<'a>> + Clone,
        types: bool,
    ) {
        self.out.clear();
        message::execute_with(&mut self.out, id, parameters, types);
    }

    fn write_query(&mut self, sql: &[u8]) {
        self.out.clear();
        message::command(&mut self.out, message::COM_QUERY, sql);
    }

    async fn prepared(&mut self) -> Result<Prepared, WireError> {
        let answer =
            within(self.timeout, "preparing a statement", self.ask_shortly(Expect::Prepared)).await?;
        Ok(Prepared { id: answer.statement_id, parameters: answer.parameters })
    }

    async fn skimmed(&mut self) -> Result<Outcome, WireError> {
        let mut skim = Skim::new(Expect::Result, self.deprecate_eof).telling_parts(self.tells_parts);
        let answer = self.exchange(&mut skim).await;
        self.parts = skim.take_parts();
        Ok(answer?.outcome)
    }

    async fn kept(&mut self, mut rows: Rows) -> (Rows, Result<Outcome, WireError>) {
        rows.clear();
        let skim = Skim::new(Expect::Result, self.deprecate_eof);
        let mut skim = skim.telling_parts(self.tells_parts).keep_in(rows, ROWS_MAX, self.tells_parts);
        let answer = self.exchange(&mut skim).await;
        self.parts = skim.take_parts();
        (skim.into_kept(), answer.map(|answer| answer.outcome))
    }

    fn tell_parts(&mut self) {
        self.tells_parts = true;
    }

    fn take_parts(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.parts)
    }

    async fn forget(&mut self, id: u32) -> Result<(), WireError> {
        self.out.clear();
        message::command(&mut self.out, message::COM_STMT_CLOSE, &id.to_le_bytes());
        self.socket.send(&self.out).await.map_err(|error| Trouble::Io(error).into_wire())
    }

    fn hold_thread(&mut self, hold: bool) {
        self.socket.hold_thread(hold);
    }
}

impl ScriptedConnector for MysqlConnector {
    async fn connect_at_once(&self, number: u64) -> Result<MysqlConnection, WireError> {
        let address = &self.addresses[(number % self.addresses.len() as u64) as usize];
        let socket = crate::socket::Socket::holding(address, self.timeout)
            .map_err(|error| WireError::Lost(format!("{address}: {error}")))?;
        let mut connection = self.log_in(socket, address).await?;
        connection.hold_thread(false);
        Ok(connection)
    }
}
