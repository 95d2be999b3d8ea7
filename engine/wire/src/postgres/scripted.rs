//! What scripts ask of a session; see [`crate::scripted`].
//!
//! A statement of a script is prepared when the types of its parameters are known, in the same message as its first
//! execution; one without parameters at once.

use super::skim::Expect;
use super::statement::Statement;
use super::{PostgresConnection, PostgresConnector, message};
use crate::scripted::{Parameter, Prepared, Rows, Scripted, ScriptedConnector, Type};
use crate::trouble::within;
use crate::{Outcome, WireError};

/// Most bytes of the rows that a script's statement keeps: more is a mistake, and would fill the memory.
const ROWS_MAX: usize = 1 << 30;

impl PostgresConnection {
    /// Begins a message: what the server has to forget comes first, which costs no answer of its own.
    fn write_forgotten(&mut self) {
        self.out.clear();
        self.asked = None;
        if !std::mem::take(&mut self.has_forgotten) {
            return;
        }
        for (name, statement) in self.statements.iter_mut().enumerate().filter(|(_, found)| found.forgotten) {
            if std::mem::take(&mut statement.known) {
                message::close(&mut self.out, name as u32);
            }
        }
    }

    /// Notes what the server has said of the statement that was asked for.
    fn learn(&mut self, described: Option<bool>, prepared: bool) {
        if let Some(statement) = self.asked.and_then(|name| self.statements.get_mut(name as usize)) {
            statement.known |= prepared;
            statement.returns_rows = described.unwrap_or(statement.returns_rows);
        }
    }
}

impl Scripted for PostgresConnection {
    fn write_prepare(&mut self, sql: &[u8]) {
        self.write_forgotten();
        let (text, parameters) = message::numbered(sql);
        let free = self.statements.iter().position(|statement| statement.forgotten && !statement.known);
        let name = free.unwrap_or(self.statements.len());
        if parameters == 0 {
            message::parse(&mut self.out, name as u32, &text, std::iter::empty());
            message::sync(&mut self.out);
        }
        let statement = Statement { script: Some(Box::new((text, parameters))), ..Statement::default() };
        match free {
            Some(free) => self.statements[free] = statement,
            None => self.statements.push(statement),
        }
        self.asked = Some(name as u32);
    }

    fn write_execute<'a>(
        &mut self,
        id: u32,
        parameters: impl Iterator<Item = Parameter<'a>> + Clone,
        types: bool,
    ) {
        self.out.clear();
        let statement = &mut self.statements[id as usize];
        let mut returns_rows = statement.returns_rows;
        if let Some(script) =
            statement.script.as_ref().filter(|script| !statement.known || (types && script.1 > 0))
        {
            if std::mem::take(&mut statement.known) {
                message::close(&mut self.out, id);
            }
            let types: Vec<Type> = parameters.clone().map(|parameter| parameter.kind()).collect();
            message::parse(&mut self.out, id, &script.0, types.into_iter());
            returns_rows = false;
        }
        message::execute_with(&mut self.out, id, parameters);
        self.asked = Some(id);
        self.skim.begin(Expect::Result, returns_rows);
    }

    fn write_query(&mut self, sql: &[u8]) {
        self.write_forgotten();
        message::query(&mut self.out, sql);
        self.skim.begin(Expect::Result, false);
    }

    async fn prepared(&mut self) -> Result<Prepared, WireError> {
        let id = self.asked.unwrap_or_default();
        let statement = &self.statements[id as usize];
        let parameters = statement.script.as_ref().map_or(0, |script| script.1);
        if parameters == 0 {
            let answer =
                within(self.timeout, "preparing a statement", self.ask_shortly(Expect::Prepared)).await;
            match answer {
                Ok(answer) => self.learn(answer.described, answer.prepared),
                Err(error) => {
                    self.statements[id as usize].forgotten = true;
                    return Err(error);
                }
            }
        }
        Ok(Prepared { id, parameters })
    }

    async fn skimmed(&mut self) -> Result<Outcome, WireError> {
        let result = self.exchange().await;
        let (described, prepared) = self.skim.learned();
        self.learn(described, prepared);
        Ok(result?.outcome)
    }

    async fn kept(&mut self, mut rows: Rows) -> (Rows, Result<Outcome, WireError>) {
        rows.clear();
        self.skim.keep(rows, ROWS_MAX);
        let answer = self.exchange().await;
        (self.skim.take_rows(), answer.map(|answer| answer.outcome))
    }

    async fn forget(&mut self, id: u32) -> Result<(), WireError> {
        if let Some(statement) = self.statements.get_mut(id as usize) {
            (statement.forgotten, self.has_forgotten) = (true, true);
        }
        Ok(())
    }

    fn hold_thread(&mut self, hold: bool) {
        self.socket.hold_thread(hold);
    }
}

impl ScriptedConnector for PostgresConnector {
    async fn connect_at_once(&self, number: u64) -> Result<PostgresConnection, WireError> {
        let address = self.address(number);
        let socket = crate::socket::Socket::holding(address, self.timeout)
            .map_err(|error| WireError::Lost(format!("{address}: {error}")))?;
        let mut connection = self.log_in(socket, address).await?;
        connection.hold_thread(false);
        Ok(connection)
    }
}
