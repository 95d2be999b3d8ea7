//! Validation of user-defined SQL.

use std::collections::BTreeSet;

use super::{
    LogFormat, ParameterSource, SqlStatement, SqlWorkload, StatementMode, TransactionOrder, Workload,
    WorkloadName, limits,
};
use crate::placeholders::{Piece, Quoting, pieces};

const KEY: &str = "workload.sql";

impl Workload {
    /// Errors in the transactions, one sentence each.
    pub(super) fn sql_faults(&self, quoting: Quoting) -> Vec<String> {
        match (self.name, &self.sql) {
            (WorkloadName::Sql, Some(sql)) => sql.faults(self.statements, quoting),
            (WorkloadName::Sql, None) => {
                vec![format!("{KEY} is missing; the workload sql needs its transactions")]
            }
            (_, Some(_)) => {
                vec![format!("{KEY} is set, but workload.name is not sql; leave one of them out")]
            }
            (_, None) => Vec::new(),
        }
    }
}

impl SqlWorkload {
    fn faults(&self, mode: StatementMode, quoting: Quoting) -> Vec<String> {
        let mut faults = Vec::new();
        for (name, generator) in &self.parameters {
            let key = format!("{KEY}.parameters.{name}");
            if pieces(&format!(":{name}"), Quoting::Mysql) != [Piece::Parameter(name)] {
                faults.push(format!(
                    "{key} is not a valid parameter name; use letters, digits and _, and do not begin with a digit"
                ));
            }
            generator.faults(&key, &mut faults);
        }
        faults.extend(self.table_faults());
        self.replay_faults(quoting, &mut faults);
        for (key, list) in [
            ("setup", &self.setup),
            ("after", &self.after),
            ("cleanup", &self.cleanup),
            ("session", &self.session),
            ("teardown", &self.teardown),
        ] {
            if list.iter().any(|sql| sql.trim().is_empty()) {
                faults.push(format!("{KEY}.{key} holds an empty statement; leave it out"));
            }
        }
        if self.each == Some(0) {
            faults.push(format!("{KEY}.each is 0; it must be 1 or more"));
        }
        let mut statements = 0u64;
        let mut names = BTreeSet::new();
        for (index, transaction) in self.transactions.iter().enumerate() {
            let name = self.transaction_name(index);
            if !(transaction.weight.is_finite() && transaction.weight >= 0.0) {
                faults.push(format!("the weight of {name} is {}; it must be 0 or more", transaction.weight));
            }
            if transaction.statements.is_empty() {
                faults.push(format!("{name} has no statements; leave it out or add some"));
            }
            if !names.insert(name.clone()) {
                faults.push(format!("two transactions are named {name}; rename one"));
            }
            statements +=
                transaction.statements.iter().map(|statement| u64::from(statement.repeat)).sum::<u64>();
            self.statement_faults(index, (mode, quoting), &mut faults);
        }
        let weights: f64 = self.transactions.iter().map(|transaction| transaction.weight.max(0.0)).sum();
        if !self.transactions.is_empty() && weights <= 0.0 {
            faults.push("the weights of all transactions are 0; at least one must be above 0".into());
        }
        if statements > limits::SQL_STATEMENTS {
            let most = limits::SQL_STATEMENTS;
            faults.push(format!("{KEY} has {statements} statements; the maximum is {most}"));
        }
        faults
    }

    fn replay_faults(&self, quoting: Quoting, faults: &mut Vec<String>) {
        let Some(replay) = &self.replay else {
            if self.transactions.is_empty() {
                faults.push(format!(
                    "{KEY}.transactions is empty; a workload needs at least one, or {KEY}.replay"
                ));
            }
            return;
        };
        if !(self.transactions.is_empty() && self.parameters.is_empty()) {
            faults.push(format!(
                "{KEY}.replay cannot be combined with transactions or parameters; leave one of them out"
            ));
        }
        if replay.times == Some(0) {
            faults.push(format!("{KEY}.replay.times is 0; it must be 1 or more"));
        }
        if replay.times.is_some() && self.order == TransactionOrder::Weighted {
            faults.push(format!(
                "{KEY}.replay.times needs an order; set {KEY}.order to in-order or each-in-order"
            ));
        }
        if replay.file.is_empty() {
            faults.push(format!("{KEY}.replay.file is empty; set the path of the file"));
        }
        let postgresql = matches!(replay.format, LogFormat::PostgresqlLog | LogFormat::PostgresqlCsv);
        if replay.format != LogFormat::Queries && postgresql != (quoting == Quoting::Postgresql) {
            faults.push(format!(
                "{KEY}.replay.format is a log of another kind of server than the target; replay a log of its own \
                 kind, or statements as queries"
            ));
        }
    }

    /// Errors in the statements of one transaction.
    fn statement_faults(
        &self,
        transaction: usize,
        (mode, quoting): (StatementMode, Quoting),
        faults: &mut Vec<String>,
    ) {
        let mut before: Vec<String> = Vec::new();
        let statements = &self.transactions[transaction].statements;
        for (index, statement) in statements.iter().enumerate() {
            let name = self.statement_name(transaction, index);
            let place = format!("statement {name}");
            let mut fault = |text: String| faults.push(format!("{place} {text}"));
            if statement.sql.trim().is_empty() {
                fault("is empty".into());
            }
            if statement.sql.len() > limits::SQL_BYTES {
                fault(format!("has {} bytes; the maximum is {}", statement.sql.len(), limits::SQL_BYTES));
            }
            if statement.repeat == 0 {
                fault("has repeat 0; it must be 1 or more".into());
            }
            for used in self.used_by(statement, quoting) {
                match used {
                    Used::Mark if statement.mode.unwrap_or(mode) == StatementMode::Prepared => {
                        fault("holds a ? for a parameter; write :name and define name in parameters".into());
                    }
                    Used::Mark => {}
                    Used::Unknown(name) => fault(format!(
                        "uses :{name}, which {KEY}.parameters does not define; define it, or put the colon in quotes"
                    )),
                    Used::Result(wanted) if !before.iter().any(|earlier| earlier == wanted) => {
                        fault(format!(
                            "uses the result of {wanted}, which is not an earlier statement of its transaction"
                        ))
                    }
                    Used::Result(wanted)
                        if before.iter().filter(|earlier| *earlier == wanted).count() > 1 =>
                    {
                        fault(format!(
                            "uses the result of {wanted}, which is the name of two earlier statements; rename one"
                        ));
                    }
                    Used::Result(_) => {}
                }
            }
            before.push(name);
        }
    }

    fn used_by<'a>(&'a self, statement: &'a SqlStatement, quoting: Quoting) -> Vec<Used<'a>> {
        let look_up = |name| match self.parameters.get(name) {
            None => Some(Used::Unknown(name)),
            Some(ParameterSource::Result { statement, .. }) => Some(Used::Result(statement)),
            Some(_) => None,
        };
        let in_text = pieces(&statement.sql, quoting).into_iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            // PostgreSQL has operators with a `?`.
            Piece::Mark => (quoting == Quoting::Mysql).then_some(Used::Mark),
            Piece::Parameter(name) => look_up(name),
        });
        let redrawn = statement.draw.iter().filter_map(|name| look_up(name));
        in_text.chain(redrawn).collect()
    }
}

/// What a statement uses, as far as it has to be checked.
enum Used<'a> {
    /// A `?`.
    Mark,
    /// An undefined parameter.
    Unknown(&'a str),
    /// The result of this statement.
    Result(&'a str),
}

impl ParameterSource {
    fn faults(&self, key: &str, faults: &mut Vec<String>) {
        let mut fault = |text: String| faults.push(format!("{key} {text}"));
        match self {
            ParameterSource::Integer { low, high, distribution } => {
                range_fault(*low, *high).into_iter().for_each(fault);
                faults.extend(distribution.fault(&format!("{key}.integer.distribution")));
            }
            ParameterSource::Sequence { first, last: Some(last) } if last < first => {
                fault(format!("goes from {first} to {last}; last must not be before first"));
            }
            ParameterSource::Sequence { .. } => {}
            ParameterSource::OneOf { values, weights } => {
                weights_fault(values.len(), weights.as_deref()).into_iter().for_each(fault);
            }
            ParameterSource::Csv { column, .. } => {
                if column.is_empty() {
                    fault("has an empty column name".into());
                }
            }
            ParameterSource::Result { column, .. } => {
                if !(1..=4096).contains(column) {
                    fault(format!("has column {column}; it must be between 1 and 4096"));
                }
            }
        }
    }
}

/// The error in a range of integers, if any.
pub(super) fn range_fault(low: i64, high: i64) -> Option<String> {
    if low > high {
        Some(format!("goes from {low} to {high}; low must not be above high"))
    } else if high.abs_diff(low) >= 1 << 62 {
        Some(format!("goes from {low} to {high}; that is more than 2^62 values"))
    } else {
        None
    }
}

/// Errors in a list of `values` values and their weights.
pub(super) fn weights_fault(values: usize, weights: Option<&[f64]>) -> Vec<String> {
    let mut faults = Vec::new();
    if values == 0 {
        faults.push("has no values; it needs at least one".into());
    }
    let Some(weights) = weights else { return faults };
    if weights.len() != values {
        faults.push(format!("has {values} values and {} weights; each needs one", weights.len()));
    } else if !weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0)
        || weights.iter().sum::<f64>() <= 0.0
    {
        faults.push("has weights below 0, or none above 0".into());
    }
    faults
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn faults(sql: Value) -> Vec<String> {
        let workload: Workload = serde_json::from_value(json!({"name": "sql", "sql": sql})).unwrap();
        workload.sql_faults(Quoting::Mysql)
    }

    #[test]
    fn a_whole_workload_has_no_faults() {
        let found = faults(json!({
            "parameters": {
                "id": {"integer": {"low": -5, "high": 10}},
                "next": {"sequence": {}},
                "word": {"one_of": {"values": ["a", 1, null, 1.5], "weights": [1, 2, 0, 1]}},
                "user": {"csv": {"from": {"path": "users.csv"}, "column": "name"}},
                "got": {"result": {"statement": "look"}}
            },
            "transactions": [
                {"statements": [
                    {"sql": "BEGIN"},
                    {"sql": "SELECT a FROM t WHERE id=:id AND w=:word AND u=:user", "name": "look", "rows": 1},
                    {"sql": "UPDATE t SET n=:next WHERE a=:got", "draw": ["id"], "repeat": 3}
                ]},
                {"weight": 0.5, "statements": [{"sql": "SELECT '?', '::', ':no'"}]}
            ]
        }));
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn all_faults_come_at_once() {
        let found = faults(json!({
            "parameters": {
                "id": {"integer": {"low": 5, "high": 1}},
                "far": {"integer": {"low": i64::MIN, "high": i64::MAX}},
                "hot": {"integer": {"high": 9, "distribution": {"zipfian": {"exponent": -1.0}}}},
                "1x": {"sequence": {"first": 2, "last": 1}},
                "w": {"one_of": {"values": [], "weights": [1]}},
                "got": {"result": {"statement": "later", "column": 0}}
            },
            "session": [" "], "each": 0,
            "transactions": [
                {"weight": -1, "name": "a", "statements": [
                    {"sql": " ", "repeat": 0},
                    {"sql": "SELECT ?, :nobody, :got"},
                    {"sql": "DO 1", "name": "later", "draw": ["somebody"]}
                ]},
                {"weight": 0, "name": "a", "statements": []}
            ]
        }));
        for part in [
            "parameters.id goes from 5 to 1;",
            "parameters.far goes from",
            "parameters.hot.integer.distribution.exponent is -1;",
            "parameters.1x is not a valid parameter name;",
            "parameters.1x goes from 2 to 1;",
            "parameters.w has no values;",
            "parameters.w has 0 values and 1 weights;",
            "parameters.got has column 0;",
            "session holds an empty statement;",
            "each is 0;",
            "the weight of a is -1;",
            "two transactions are named a;",
            "a has no statements;",
            "statement a.1 is empty",
            "statement a.1 has repeat 0;",
            "statement a.2 holds a ?",
            "statement a.2 uses :nobody,",
            "statement a.2 uses the result of later,",
            "statement later uses :somebody,",
            "the weights of all transactions are 0;",
        ] {
            assert_eq!(found.iter().filter(|fault| fault.contains(part)).count(), 1, "{part}: {found:#?}");
        }
        assert_eq!(found.len(), 20, "{found:#?}");
    }

    #[test]
    fn a_replay_takes_the_place_of_transactions() {
        let replay = |more: Value| {
            let mut sql = json!({"replay": {"file": "f", "format": "general-log"}});
            sql.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            faults(sql)
        };
        assert_eq!(replay(json!({"order": "in-order"})), [""; 0]);
        let found = replay(json!({
            "transactions": [{"statements": [{"sql": "DO 1"}]}],
            "replay": {"file": "", "format": "postgresql-csv", "times": 0}
        }));
        for part in [
            "replay cannot be combined with transactions",
            "replay.times is 0;",
            "replay.times needs an order;",
            "replay.file is empty;",
            "replay.format is a log of another kind",
        ] {
            assert_eq!(found.iter().filter(|fault| fault.contains(part)).count(), 1, "{part}: {found:#?}");
        }
        assert_eq!(found.len(), 5, "{found:#?}");
    }

    #[test]
    fn the_name_and_the_transactions_belong_together() {
        let faults = |value| serde_json::from_value::<Workload>(value).unwrap().sql_faults(Quoting::Mysql);
        assert!(faults(json!({"name": "sql"}))[0].starts_with("workload.sql is missing;"));
        let both = json!({"name": "oltp_read_only", "sql": {"transactions": []}});
        assert!(faults(both)[0].starts_with("workload.sql is set,"));
        assert_eq!(faults(json!({"name": "oltp_read_only"})), [""; 0]);
    }
}
