//! Checks the user's own SQL in a plan: transactions, parameters and replays.

use std::collections::BTreeSet;

use super::{
    LogFormat, ParameterSource, SqlStatement, SqlWorkload, StatementMode, TextLength, TransactionOrder,
    Workload, WorkloadName, limits,
};
use crate::placeholders::{Fragment, Quoting, fragments};

const KEY: &str = "workload.sql";

impl Workload {
    /// Problems of `workload.sql`, one sentence each.
    pub(super) fn sql_problems(&self, quoting: Quoting) -> Vec<String> {
        match (self.name, &self.sql) {
            (WorkloadName::Sql, Some(sql)) => sql.problems(self.statements, quoting),
            (WorkloadName::Sql, None) => {
                vec![format!("{KEY} is missing; workload.name is sql, so define its transactions")]
            }
            (_, Some(_)) => {
                vec![format!("{KEY} is set, but workload.name is not sql; leave one of them out")]
            }
            (_, None) => Vec::new(),
        }
    }
}

impl SqlWorkload {
    fn problems(&self, mode: StatementMode, quoting: Quoting) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, generator) in &self.parameters {
            let key = format!("{KEY}.parameters.{name}");
            if fragments(&format!(":{name}"), Quoting::Mysql) != [Fragment::Parameter(name)] {
                problems.push(format!(
                    "{key} is not a valid parameter name; use letters, digits and _, and do not begin with a digit"
                ));
            }
            generator.problems(&key, &self.parameters, &mut problems);
            self.latest_problem(&key, generator, &mut problems);
        }
        problems.extend(self.table_problems());
        self.replay_problems(quoting, &mut problems);
        for (key, list) in [
            ("setup", &self.setup),
            ("after", &self.after),
            ("cleanup", &self.cleanup),
            ("session", &self.session),
            ("teardown", &self.teardown),
        ] {
            if list.iter().any(|sql| sql.trim().is_empty()) {
                problems.push(format!("{KEY}.{key} contains an empty statement; leave it out"));
            }
        }
        if self.each == Some(0) {
            problems.push(format!("{KEY}.each is 0; it must be 1 or more"));
        }
        let mut statements = 0u64;
        let mut names = BTreeSet::new();
        for (index, transaction) in self.transactions.iter().enumerate() {
            let name = self.transaction_name(index);
            if !(transaction.weight.is_finite() && transaction.weight >= 0.0) {
                problems
                    .push(format!("the weight of {name} is {}; it must be 0 or more", transaction.weight));
            }
            if transaction.statements.is_empty() {
                problems.push(format!("{name} has no statements; leave it out or add some"));
            }
            if !names.insert(name.clone()) {
                problems.push(format!("two transactions are named {name}; rename one"));
            }
            statements +=
                transaction.statements.iter().map(|statement| u64::from(statement.repeat)).sum::<u64>();
            self.loop_problems(index, &mut problems);
            self.statement_problems(index, (mode, quoting), &mut problems);
        }
        let weights: f64 = self.transactions.iter().map(|transaction| transaction.weight.max(0.0)).sum();
        if !self.transactions.is_empty() && weights <= 0.0 {
            problems.push("the weights of all transactions are 0; at least one must be above 0".into());
        }
        if statements > limits::SQL_STATEMENTS {
            let most = limits::SQL_STATEMENTS;
            problems.push(format!("{KEY} has {statements} statements; the maximum is {most}"));
        }
        problems
    }

    fn replay_problems(&self, quoting: Quoting, problems: &mut Vec<String>) {
        let Some(replay) = &self.replay else {
            if self.transactions.is_empty() {
                problems.push(format!(
                    "{KEY}.transactions is empty; a workload needs at least one, or {KEY}.replay"
                ));
            }
            return;
        };
        if !(self.transactions.is_empty() && self.parameters.is_empty()) {
            problems.push(format!(
                "{KEY}.replay cannot be combined with transactions or parameters; leave out either"
            ));
        }
        if replay.times == Some(0) {
            problems.push(format!("{KEY}.replay.times is 0; it must be 1 or more"));
        }
        if replay.times.is_some() && self.order == TransactionOrder::Weighted {
            problems.push(format!(
                "{KEY}.replay.times is set, but {KEY}.order is weighted; set it to in-order or each-in-order"
            ));
        }
        if replay.file.is_empty() {
            problems.push(format!("{KEY}.replay.file is empty; set the path of the file"));
        }
        let postgresql = matches!(replay.format, LogFormat::PostgresqlLog | LogFormat::PostgresqlCsv);
        if replay.format != LogFormat::Queries && postgresql != (quoting == Quoting::Postgresql) {
            problems.push(format!(
                "{KEY}.replay.format is a log of another kind of server than the target; replay a log of the target's \
                 kind, or convert the statements to the format queries"
            ));
        }
    }

    /// Adds the problem of a `latest` whose sequence does not number rows, if any.
    fn latest_problem(&self, key: &str, generator: &ParameterSource, problems: &mut Vec<String>) {
        let ParameterSource::Latest { sequence, .. } = generator else { return };
        if !matches!(self.parameters.get(sequence), Some(ParameterSource::Sequence { last: None, .. })) {
            problems.push(format!("{key} names {sequence}, which is not a sequence without last"));
        }
    }

    /// Adds the problems of the statements of one transaction.
    fn statement_problems(
        &self,
        transaction: usize,
        (mode, quoting): (StatementMode, Quoting),
        problems: &mut Vec<String>,
    ) {
        let mut earlier: Vec<String> = Vec::new();
        let statements = &self.transactions[transaction].statements;
        for (index, statement) in statements.iter().enumerate() {
            let name = self.statement_name(transaction, index);
            let mut add = |text: String| problems.push(format!("statement {name} {text}"));
            if statement.sql.trim().is_empty() {
                add("is empty".into());
            }
            if statement.sql.len() > limits::SQL_BYTES {
                add(format!("has {} bytes; the maximum is {}", statement.sql.len(), limits::SQL_BYTES));
            }
            if statement.repeat == 0 {
                add("has repeat 0; it must be 1 or more".into());
            }
            if let Some(parameter) = &statement.rows_parameter {
                let is_used = fragments(&statement.sql, quoting).contains(&Fragment::Parameter(parameter));
                let is_integer =
                    matches!(self.parameters.get(parameter), Some(ParameterSource::Integer { .. }));
                if statement.rows.is_some() || !is_used || !is_integer {
                    add(format!(
                        "has rows_parameter {parameter}; it must be a parameter of the kind integer that the statement \
                         uses, and rows must not be set"
                    ));
                }
            }
            for used in self.used_by(statement, quoting) {
                match used {
                    Used::QuestionMark if statement.mode.unwrap_or(mode) == StatementMode::Prepared => {
                        add("contains a ? as a placeholder; write :name and define name in parameters".into());
                    }
                    Used::QuestionMark => {}
                    Used::Unknown(name) => add(format!(
                        "uses :{name}, which {KEY}.parameters does not define; define it, or put the colon in quotes"
                    )),
                    Used::Result(source) if !earlier.contains(source) => add(format!(
                        "uses the result of {source}, which is not an earlier statement of its transaction"
                    )),
                    Used::Result(source) if earlier.iter().filter(|name| *name == source).count() > 1 => {
                        add(format!(
                            "uses the result of {source}, which is the name of two earlier statements; rename one"
                        ));
                    }
                    Used::Result(_) => {}
                }
            }
            earlier.push(name);
        }
    }

    /// The placeholders of a statement that need a check.
    fn used_by<'a>(&'a self, statement: &'a SqlStatement, quoting: Quoting) -> Vec<Used<'a>> {
        let look_up = |name| match self.parameters.get(name) {
            None => Some(Used::Unknown(name)),
            Some(ParameterSource::Result { statement, .. }) => Some(Used::Result(statement)),
            Some(_) => None,
        };
        let in_text = fragments(&statement.sql, quoting).into_iter().filter_map(|fragment| match fragment {
            Fragment::Text(_) => None,
            // PostgreSQL has operators with a `?`.
            Fragment::QuestionMark => (quoting == Quoting::Mysql).then_some(Used::QuestionMark),
            Fragment::Parameter(name) => look_up(name),
        });
        let redrawn = statement.draw.iter().filter_map(|name| look_up(name));
        in_text.chain(redrawn).collect()
    }
}

/// A placeholder in a statement.
enum Used<'a> {
    /// A `?`.
    QuestionMark,
    /// A parameter that the plan does not define.
    Unknown(&'a str),
    /// A parameter that takes its value from the result of the statement with this name.
    Result(&'a String),
}

/// The problem of a range of integers, if any.
pub(super) fn range_problem(low: i64, high: i64) -> Option<String> {
    if low > high {
        Some(format!("goes from {low} to {high}; low must not be above high"))
    } else if high.abs_diff(low) >= 1 << 62 {
        Some(format!("goes from {low} to {high}; the maximum is 2^62 values"))
    } else {
        None
    }
}

/// Problems of random strings.
pub(super) fn text_problems(length: TextLength, alphabet: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let (low, high) = length.bounds();
    if low > high || high > limits::TEXT_LENGTH {
        let most = limits::TEXT_LENGTH;
        problems.push(format!(
            "has {low} to {high} characters; the minimum must not exceed the maximum, and the limit is {most}"
        ));
    }
    let most = limits::ALPHABET;
    if !(1..=most).contains(&alphabet.chars().count()) || alphabet.contains('\0') {
        problems.push(format!("has an invalid alphabet; it needs 1 to {most} characters, none of them NUL"));
    }
    problems
}

/// Problems of `values` values and their weights.
pub(super) fn weights_problems(values: usize, weights: Option<&[f64]>) -> Vec<String> {
    let mut problems = Vec::new();
    if values == 0 {
        problems.push("has no values; it needs at least one".into());
    }
    let Some(weights) = weights else { return problems };
    if weights.len() != values {
        problems
            .push(format!("has {values} values and {} weights; each value needs one weight", weights.len()));
    } else if !weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0)
        || weights.iter().sum::<f64>() <= 0.0
    {
        problems
            .push("has an invalid weight; no weight may be below 0, and at least one must be above 0".into());
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems(sql: Value) -> Vec<String> {
        let workload: Workload = serde_json::from_value(json!({"name": "sql", "sql": sql})).unwrap();
        workload.sql_problems(Quoting::Mysql)
    }

    #[test]
    fn a_valid_workload_has_no_problems() {
        let found = problems(json!({
            "parameters": {
                "id": {"integer": {"low": -5, "high": 10}},
                "next": {"sequence": {}},
                "word": {"one_of": {"values": ["a", 1, null, 1.5], "weights": [1, 2, 0, 1]}},
                "user": {"csv": {"from": {"path": "users.csv"}, "column": "name"}},
                "last": {"latest": {"sequence": "next", "high": 9}},
                "text": {"text": {"length": 4}},
                "got": {"result": {"statement": "look"}}
            },
            "transactions": [
                {"statements": [
                    {"sql": "BEGIN"},
                    {"sql": "SELECT a FROM t WHERE id=:id AND w=:word AND u=:user", "name": "look", "rows": 1},
                    {"sql": "SELECT a FROM t WHERE n=:last AND u=:text LIMIT :id", "rows_parameter": "id"},
                    {"sql": "UPDATE t SET n=:next WHERE a=:got", "draw": ["id"], "repeat": 3}
                ]},
                {"weight": 0.5, "statements": [{"sql": "SELECT '?', '::', ':no'"}]}
            ]
        }));
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn all_problems_are_reported_together() {
        let found = problems(json!({
            "parameters": {
                "id": {"integer": {"low": 5, "high": 1}},
                "far": {"integer": {"low": i64::MIN, "high": i64::MAX}},
                "hot": {"integer": {"high": 9, "distribution": {"zipfian": {"exponent": -1.0}}}},
                "1x": {"sequence": {"first": 2, "last": 1}},
                "w": {"one_of": {"values": [], "weights": [1]}},
                "scattered": {"sequence": {"order": "random"}},
                "last": {"latest": {"sequence": "1x", "low": 3, "high": 2}},
                "t": {"text": {"length": {"low": 3, "high": 2}, "alphabet": ""}},
                "got": {"result": {"statement": "later", "column": 0}}
            },
            "session": [" "], "each": 0,
            "transactions": [
                {"weight": -1, "name": "a", "statements": [
                    {"sql": " ", "repeat": 0},
                    {"sql": "SELECT ?, :nobody, :got"},
                    {"sql": "DO 1", "name": "later", "draw": ["somebody"], "rows_parameter": "id"}
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
            "parameters.scattered has a random order but no last number;",
            "parameters.last names 1x, which is not a sequence without last",
            "parameters.last goes from 3 to 2;",
            "parameters.t has 3 to 2 characters;",
            "parameters.t has an invalid alphabet;",
            "statement later has rows_parameter id;",
            "parameters.w has no values;",
            "parameters.w has 0 values and 1 weights;",
            "parameters.got has column 0;",
            "session contains an empty statement;",
            "each is 0;",
            "the weight of a is -1;",
            "two transactions are named a;",
            "a has no statements;",
            "statement a.1 is empty",
            "statement a.1 has repeat 0;",
            "statement a.2 contains a ?",
            "statement a.2 uses :nobody,",
            "statement a.2 uses the result of later,",
            "statement later uses :somebody,",
            "the weights of all transactions are 0;",
        ] {
            assert_eq!(
                found.iter().filter(|problem| problem.contains(part)).count(),
                1,
                "{part}: {found:#?}"
            );
        }
        assert_eq!(found.len(), 26, "{found:#?}");
    }

    #[test]
    fn a_replay_replaces_transactions() {
        let replay = |more: Value| {
            let mut sql = json!({"replay": {"file": "f", "format": "general-log"}});
            sql.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            problems(sql)
        };
        assert_eq!(replay(json!({"order": "in-order"})), [""; 0]);
        let found = replay(json!({
            "transactions": [{"statements": [{"sql": "DO 1"}]}],
            "replay": {"file": "", "format": "postgresql-csv", "times": 0}
        }));
        for part in [
            "replay cannot be combined with transactions",
            "replay.times is 0;",
            "replay.times is set, but workload.sql.order is weighted;",
            "replay.file is empty;",
            "replay.format is a log of another kind",
        ] {
            assert_eq!(
                found.iter().filter(|problem| problem.contains(part)).count(),
                1,
                "{part}: {found:#?}"
            );
        }
        assert_eq!(found.len(), 5, "{found:#?}");
    }

    #[test]
    fn a_workload_has_sql_exactly_if_its_name_is_sql() {
        let problems =
            |value| serde_json::from_value::<Workload>(value).unwrap().sql_problems(Quoting::Mysql);
        assert!(problems(json!({"name": "sql"}))[0].starts_with("workload.sql is missing;"));
        let both = json!({"name": "oltp_read_only", "sql": {"transactions": []}});
        assert!(problems(both)[0].starts_with("workload.sql is set,"));
        assert_eq!(problems(json!({"name": "oltp_read_only"})), [""; 0]);
    }
}
