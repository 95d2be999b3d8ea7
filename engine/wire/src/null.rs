//! A server that answers from memory.
//!
//! It calibrates the generator's own ceiling and makes every test possible that needs no database. It knows
//! just enough SQL to keep the contracts of the OLTP family: a range returns its length, a change changes a row.

use std::time::Duration;

use dbdyno_schema::record::Session;

use crate::scripted::{Parameter, Prepared, Rows, Scripted, ScriptedConnector, Type};
use crate::{Connection, Connector, Outcome, TextRow, Value, WireError};

/// Opens null connections.
#[derive(Clone, Debug)]
pub struct NullConnector {
    /// Time from a request to its answer; rounded up to the runtime's timer of 1 ms. Zero yields once.
    pub answer: Duration,
    /// Ids in the tables it pretends to have: 1 to this.
    pub rows: u64,
    /// Whether every statement neither returns nor changes a row.
    pub empty_answers: bool,
}

/// A session with nobody.
#[derive(Debug)]
pub struct NullConnection {
    answer: Duration,
    rows: u64,
    empty_answers: bool,
    statements: Vec<Shape>,
    session: Session,
    /// What a script's next message asks for, and how many rows.
    said: (Shape, u64),
    holds_thread: bool,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    Row,
    Range,
    Change,
    Nothing,
}

impl Shape {
    fn of(sql: &str) -> Self {
        let verb = sql.split_ascii_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        match verb.as_str() {
            "SELECT" if sql.contains("BETWEEN") && !sql.contains("SUM(") => Shape::Range,
            "SELECT" => Shape::Row,
            "UPDATE" | "DELETE" | "INSERT" => Shape::Change,
            _ => Shape::Nothing,
        }
    }

    fn outcome(self, values: &[Value], rows: u64) -> Outcome {
        let rows = match (self, values) {
            (Shape::Range, [Value::Int(low), Value::Int(high)]) => {
                ((*high).min(rows as i64) - low + 1).max(0) as u64
            }
            (Shape::Nothing, _) => 0,
            _ => 1,
        };
        Outcome { returns_rows: matches!(self, Shape::Row | Shape::Range), rows, bytes: 0 }
    }
}

impl NullConnection {
    /// What it answers to a statement.
    fn shape(&self, sql: &str) -> Shape {
        if self.empty_answers { Shape::Nothing } else { Shape::of(sql) }
    }

    async fn wait(&self) {
        if self.holds_thread {
            std::thread::sleep(self.answer);
        } else if self.answer.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(self.answer).await;
        }
    }
}

impl Connector for NullConnector {
    type Connection = NullConnection;

    async fn connect(&self, _number: u64) -> Result<NullConnection, WireError> {
        let session = Session { server_version: "null".into(), ..Session::default() };
        Ok(NullConnection {
            answer: self.answer,
            rows: self.rows,
            empty_answers: self.empty_answers,
            statements: Vec::new(),
            session,
            said: (Shape::Nothing, 0),
            holds_thread: false,
        })
    }
}

impl Connection for NullConnection {
    fn session(&self) -> &Session {
        &self.session
    }

    async fn prepare(&mut self, sql: &str, _types: &[Type]) -> Result<(), WireError> {
        self.statements.push(self.shape(sql));
        Ok(())
    }

    async fn execute(&mut self, statement: usize, values: &[Value]) -> Result<Outcome, WireError> {
        self.wait().await;
        Ok(self.statements[statement].outcome(values, self.rows))
    }

    async fn execute_text(&mut self, template: &str, values: &[Value]) -> Result<Outcome, WireError> {
        self.wait().await;
        Ok(self.shape(template).outcome(values, self.rows))
    }

    async fn query(&mut self, sql: &[u8]) -> Result<Outcome, WireError> {
        self.wait().await;
        Ok(self.shape(&String::from_utf8_lossy(sql)).outcome(&[], self.rows))
    }

    async fn rows(&mut self, _sql: &str) -> Result<Vec<TextRow>, WireError> {
        Ok(Vec::new())
    }

    async fn close(&mut self) {}
}

impl Scripted for NullConnection {
    fn write_prepare(&mut self, sql: &[u8]) {
        let sql = String::from_utf8_lossy(sql);
        self.statements.push(self.shape(&sql));
        self.said = (Shape::Nothing, sql.matches('?').count() as u64);
    }

    fn write_execute<'a>(
        &mut self,
        id: u32,
        parameters: impl Iterator<Item = Parameter<'a>> + Clone,
        _types: bool,
    ) {
        let shape = self.statements[id as usize];
        let number = |parameter| if let Parameter::Int(number) = parameter { number } else { 0 };
        let values: Vec<_> = parameters.map(|parameter| Value::Int(number(parameter))).collect();
        self.said = (shape, shape.outcome(&values, self.rows).rows);
    }

    fn write_query(&mut self, sql: &[u8]) {
        let shape = self.shape(&String::from_utf8_lossy(sql));
        self.said = (shape, shape.outcome(&[], self.rows).rows);
    }

    async fn prepared(&mut self) -> Result<Prepared, WireError> {
        Ok(Prepared { id: self.statements.len() as u32 - 1, parameters: self.said.1 as u16 })
    }

    async fn skimmed(&mut self) -> Result<Outcome, WireError> {
        self.wait().await;
        let (shape, rows) = self.said;
        Ok(Outcome { rows, ..shape.outcome(&[], self.rows) })
    }

    /// Its rows have one column, which is NULL.
    async fn kept(&mut self, mut rows: Rows) -> (Rows, Result<Outcome, WireError>) {
        rows.clear();
        let outcome = self.skimmed().await;
        if let Ok(Outcome { returns_rows: true, rows: count, .. }) = outcome {
            rows.columns = 1;
            rows.bytes.resize(count as usize, 0xfb);
            rows.ends.extend(1..=count as usize);
        }
        (rows, outcome)
    }

    async fn forget(&mut self, _id: u32) -> Result<(), WireError> {
        Ok(())
    }

    fn hold_thread(&mut self, hold: bool) {
        self.holds_thread = hold;
    }
}

impl ScriptedConnector for NullConnector {
    async fn connect_at_once(&self, number: u64) -> Result<NullConnection, WireError> {
        self.connect(number).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_with_the_table() {
        let shape = Shape::of("SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?");
        let rows = |low, high| shape.outcome(&[Value::Int(low), Value::Int(high)], 1000).rows;
        assert_eq!(rows(1, 100), 100);
        assert_eq!(rows(950, 1049), 51);
    }
}
