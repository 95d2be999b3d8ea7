//! The interface for scripts; see [`crate::scripted`].
//!
//! The first execution of a statement with parameters also prepares it, because the script sets their types only then.
//! `prepare` prepares only statements without parameters.

use super::skim::ExpectedAnswer;
use super::statement::Statement;
use super::{PostgresConnection, PostgresConnector, message};
use crate::rows::SCRIPT_BYTES_MAX;
use crate::scripted::{Parameter, Prepared, Rows, Scripted, ScriptedConnector, Type};
use crate::{Outcome, WireError};

impl PostgresConnection {
    /// Begins a new message with a Close for each statement that the script has closed. The server sends no separate answer
    /// to a Close.
    fn write_closes(&mut self) {
        self.out.clear();
        self.current_statement = None;
        if !std::mem::take(&mut self.has_closed) {
            return;
        }
        for (name, statement) in self.statements.iter_mut().enumerate() {
            if statement.is_closed && std::mem::take(&mut statement.is_on_server) {
                message::close(&mut self.out, name as u32);
            }
        }
    }

    /// Records how the server described the current statement, and whether the server has prepared it.
    fn record_description(&mut self, described: Option<bool>, prepared: bool) {
        if let Some(statement) =
            self.current_statement.and_then(|name| self.statements.get_mut(name as usize))
        {
            statement.is_on_server |= prepared;
            statement.returns_rows = described.unwrap_or(statement.returns_rows);
        }
    }
}

impl Scripted for PostgresConnection {
    fn write_prepare(&mut self, sql: &[u8]) {
        self.write_closes();
        let (text, parameters) = message::number_placeholders(sql);
        let free =
            self.statements.iter().position(|statement| statement.is_closed && !statement.is_on_server);
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
        self.current_statement = Some(name as u32);
    }

    fn write_execute<'a>(
        &mut self,
        id: u32,
        parameters: impl Iterator<Item = Parameter<'a>> + Clone,
        types_changed: bool,
    ) {
        self.out.clear();
        let statement = &mut self.statements[id as usize];
        let mut returns_rows = statement.returns_rows;
        if let Some(script) = statement
            .script
            .as_ref()
            .filter(|script| !statement.is_on_server || (types_changed && script.1 > 0))
        {
            if std::mem::take(&mut statement.is_on_server) {
                message::close(&mut self.out, id);
            }
            let types: Vec<Type> = parameters.clone().map(|parameter| parameter.kind()).collect();
            message::parse(&mut self.out, id, &script.0, types.into_iter());
            returns_rows = false;
        }
        message::execute_with(&mut self.out, id, parameters);
        self.current_statement = Some(id);
        self.skim.begin(ExpectedAnswer::Result, returns_rows);
    }

    fn write_query(&mut self, sql: &[u8]) {
        self.write_closes();
        message::query(&mut self.out, sql);
        self.skim.begin(ExpectedAnswer::Result, false);
    }

    async fn send_prepare(&mut self) -> Result<Prepared, WireError> {
        let id = self.current_statement.unwrap_or_default();
        let statement = &self.statements[id as usize];
        let parameters = statement.script.as_ref().map_or(0, |script| script.1);
        if parameters == 0 {
            match self.request_prepare().await {
                Ok(answer) => self.record_description(answer.described, answer.prepared),
                Err(error) => {
                    self.statements[id as usize].is_closed = true;
                    return Err(error);
                }
            }
        }
        Ok(Prepared { id, parameters })
    }

    async fn skim(&mut self) -> Result<Outcome, WireError> {
        let result = self.exchange().await;
        let (described, prepared) = self.skim.description();
        self.record_description(described, prepared);
        Ok(result?.outcome)
    }

    async fn fetch_rows(&mut self, mut rows: Rows) -> (Rows, Result<Outcome, WireError>) {
        rows.clear();
        self.skim.keep_rows_in(rows, SCRIPT_BYTES_MAX);
        let answer = self.exchange().await;
        (self.skim.take_rows(), answer.map(|answer| answer.outcome))
    }

    async fn close_statement(&mut self, id: u32) -> Result<(), WireError> {
        if let Some(statement) = self.statements.get_mut(id as usize) {
            statement.is_closed = true;
            self.has_closed = true;
        }
        Ok(())
    }

    fn set_blocking(&mut self, blocking: bool) {
        self.socket.set_blocking(blocking);
    }
}

impl ScriptedConnector for PostgresConnector {
    async fn connect_blocking(&self, number: u64) -> Result<PostgresConnection, WireError> {
        self.options
            .connect_blocking(number, async |socket, address| self.log_in(number, socket, address).await)
            .await
    }
}
