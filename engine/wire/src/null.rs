//! Simulates a server without a network, to measure the maximum rate of the load generator and for tests that need no
//! database.
//!
//! The simulation interprets only as much SQL as the row counts of the OLTP workloads require: a range query returns as
//! many rows as its range has ids, an update changes one row.

use std::time::Duration;

use dbdyno_schema::record::Session;

use crate::scripted::{Parameter, Prepared, Rows, Scripted, ScriptedConnector, Type};
use crate::{Connection, Connector, Outcome, SessionKey, TextRow, Value, WireError};

/// Opens null connections.
#[derive(Clone, Debug)]
pub struct NullConnector {
    /// Response time, which the runtime's timer rounds up to 1 ms. With zero, each statement yields to other tasks
    /// once.
    pub answer: Duration,
    /// Largest id in its simulated tables; the smallest is 1.
    pub rows: u64,
    /// Whether every statement neither returns nor changes rows.
    pub empty_answers: bool,
}

/// A session without a server.
#[derive(Debug)]
pub struct NullConnection {
    options: NullConnector,
    statements: Vec<AnswerKind>,
    session: Session,
    /// The answer to a script's next message, and the number of rows or parameters in it.
    next_answer: (AnswerKind, u64),
    blocking: bool,
}

#[derive(Clone, Copy, Debug)]
enum AnswerKind {
    Row,
    Range,
    Change,
    Nothing,
}

impl AnswerKind {
    fn from_sql(sql: &str) -> Self {
        let verb = sql.split_ascii_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        match verb.as_str() {
            "SELECT" if sql.contains("BETWEEN") && !sql.contains("SUM(") => AnswerKind::Range,
            "SELECT" => AnswerKind::Row,
            "UPDATE" | "DELETE" | "INSERT" => AnswerKind::Change,
            _ => AnswerKind::Nothing,
        }
    }

    fn outcome(self, values: &[Value], rows: u64) -> Outcome {
        let rows = match (self, values) {
            (AnswerKind::Range, [Value::Int(low), Value::Int(high)]) => {
                ((*high).min(rows as i64) - low + 1).max(0) as u64
            }
            (AnswerKind::Nothing, _) => 0,
            _ => 1,
        };
        Outcome { returns_rows: matches!(self, AnswerKind::Row | AnswerKind::Range), rows, bytes: 0 }
    }
}

impl NullConnection {
    fn answer_kind(&self, sql: &str) -> AnswerKind {
        if self.options.empty_answers { AnswerKind::Nothing } else { AnswerKind::from_sql(sql) }
    }

    async fn wait(&self) {
        if self.blocking {
            std::thread::sleep(self.options.answer);
        } else if self.options.answer.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(self.options.answer).await;
        }
    }
}

impl Connector for NullConnector {
    type Connection = NullConnection;

    async fn connect(&self, _number: u64) -> Result<NullConnection, WireError> {
        let session = Session { server_version: "null".into(), ..Session::default() };
        Ok(NullConnection {
            options: self.clone(),
            statements: Vec::new(),
            session,
            next_answer: (AnswerKind::Nothing, 0),
            blocking: false,
        })
    }

    async fn cancel(&self, _number: u64, _sessions: Vec<SessionKey>) {}
}

impl Connection for NullConnection {
    fn session(&self) -> &Session {
        &self.session
    }

    async fn prepare(&mut self, sql: &str, _types: &[Type]) -> Result<(), WireError> {
        self.statements.push(self.answer_kind(sql));
        Ok(())
    }

    async fn execute(&mut self, statement: usize, values: &[Value]) -> Result<Outcome, WireError> {
        self.wait().await;
        Ok(self.statements[statement].outcome(values, self.options.rows))
    }

    async fn execute_text(&mut self, template: &str, values: &[Value]) -> Result<Outcome, WireError> {
        self.wait().await;
        Ok(self.answer_kind(template).outcome(values, self.options.rows))
    }

    async fn query(&mut self, sql: &[u8]) -> Result<Outcome, WireError> {
        self.wait().await;
        Ok(self.answer_kind(&String::from_utf8_lossy(sql)).outcome(&[], self.options.rows))
    }

    async fn query_rows(&mut self, _sql: &str) -> Result<Vec<TextRow>, WireError> {
        Ok(Vec::new())
    }

    async fn close(&mut self) {}
}

impl Scripted for NullConnection {
    fn write_prepare(&mut self, sql: &[u8]) {
        let sql = String::from_utf8_lossy(sql);
        self.statements.push(self.answer_kind(&sql));
        self.next_answer = (AnswerKind::Nothing, sql.matches('?').count() as u64);
    }

    fn write_execute<'a>(
        &mut self,
        id: u32,
        parameters: impl Iterator<Item = Parameter<'a>> + Clone,
        _types_changed: bool,
    ) {
        let kind = self.statements[id as usize];
        let number = |parameter| if let Parameter::Int(number) = parameter { number } else { 0 };
        let values: Vec<_> = parameters.map(|parameter| Value::Int(number(parameter))).collect();
        self.next_answer = (kind, kind.outcome(&values, self.options.rows).rows);
    }

    fn write_query(&mut self, sql: &[u8]) {
        let kind = self.answer_kind(&String::from_utf8_lossy(sql));
        self.next_answer = (kind, kind.outcome(&[], self.options.rows).rows);
    }

    async fn send_prepare(&mut self) -> Result<Prepared, WireError> {
        Ok(Prepared { id: self.statements.len() as u32 - 1, parameters: self.next_answer.1 as u16 })
    }

    async fn skim(&mut self) -> Result<Outcome, WireError> {
        self.wait().await;
        let (kind, rows) = self.next_answer;
        Ok(Outcome { rows, ..kind.outcome(&[], self.options.rows) })
    }

    /// Returns rows with one column, which is NULL.
    async fn fetch_rows(&mut self, mut rows: Rows) -> (Rows, Result<Outcome, WireError>) {
        rows.clear();
        let outcome = self.skim().await;
        if let Ok(Outcome { returns_rows: true, rows: count, .. }) = outcome {
            rows.columns = 1;
            rows.bytes.resize(count as usize, 0xfb);
            rows.ends.extend(1..=count as usize);
        }
        (rows, outcome)
    }

    async fn close_statement(&mut self, _id: u32) -> Result<(), WireError> {
        Ok(())
    }

    fn set_blocking(&mut self, blocking: bool) {
        self.blocking = blocking;
    }
}

impl ScriptedConnector for NullConnector {
    async fn connect_blocking(&self, number: u64) -> Result<NullConnection, WireError> {
        self.connect(number).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_query_returns_no_ids_above_the_table_size() {
        let kind = AnswerKind::from_sql("SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?");
        let rows = |low, high| kind.outcome(&[Value::Int(low), Value::Int(high)], 1000).rows;
        assert_eq!(rows(1, 100), 100);
        assert_eq!(rows(950, 1049), 51);
    }
}
