//! Checks the loops and pauses of the transactions in a plan's own SQL.

use super::{LoopTimes, ParameterSource, Plan, ResultType, SqlWorkload, limits};

impl SqlWorkload {
    /// Adds the problems of the loops and pauses of one transaction.
    pub(super) fn loop_problems(&self, transaction: usize, problems: &mut Vec<String>) {
        let name = self.transaction_name(transaction);
        let statements = 0..self.transactions[transaction].statements.len();
        let names: Vec<String> = statements.map(|index| self.statement_name(transaction, index)).collect();
        let mut add = |text: String| problems.push(format!("{name} {text}"));
        let transaction = &self.transactions[transaction];
        let (mut end, count) = (0, transaction.statements.len() as u32);
        for one in &transaction.loops {
            let (first, last) = (one.first, one.last);
            if first <= end || last < first || last > count {
                add(format!(
                    "has a loop over the statements {first} to {last} of {count}; loops must follow each other and have at \
                     least one statement"
                ));
            }
            end = last;
            if let LoopTimes::Parameter(name) = &one.times
                && let Some(ParameterSource::Result { statement, .. }) = self.parameters.get(name)
                && !names.iter().take(first.saturating_sub(1) as usize).any(|before| before == statement)
            {
                add(format!(
                    "has a loop that is repeated as often as a result of {statement}, which is no statement before the loop"
                ));
            }
            match &one.times {
                LoopTimes::Number(times) if !(1..=100_000).contains(times) => {
                    add(format!("has a loop of {times} repetitions; it must be between 1 and 100000"));
                }
                LoopTimes::Parameter(name) if !self.parameters.get(name).is_some_and(has_integers) => {
                    add(format!(
                        "has a loop that is repeated {name} times, which is no parameter with integers; define it as one of \
                         integer, one_of, connection, choice or result with the type integer"
                    ));
                }
                _ => {}
            }
        }
        for (key, us) in [("keying_us", transaction.keying_us), ("think_us", transaction.think_us)] {
            if us > limits::DURATION_US {
                add(format!("has {key} {us}; the maximum is {}", limits::DURATION_US));
            }
        }
    }

    /// Whether users pause before or after a transaction.
    pub fn has_pauses(&self) -> bool {
        self.transactions.iter().any(|transaction| transaction.keying_us > 0 || transaction.think_us > 0)
    }
}

impl Plan {
    /// The problem of transactions with pauses in a load that has none, or its own, if any.
    pub(super) fn pauses_problem(&self) -> Option<String> {
        let has_pauses = self.workload.custom_sql().is_some_and(SqlWorkload::has_pauses);
        let is_closed = !self.load.shape.is_open() && self.load.slices().is_none();
        (has_pauses && !(is_closed && self.load.think_time.is_none())).then(|| {
            "the transactions have keying_us or think_us, which need a closed loop without slices and without \
             load.think_time; leave out either"
                .into()
        })
    }
}

fn has_integers(source: &ParameterSource) -> bool {
    match source {
        ParameterSource::Integer { .. }
        | ParameterSource::Connection { .. }
        | ParameterSource::Choice { .. }
        | ParameterSource::Result { r#type: ResultType::Integer, .. } => true,
        ParameterSource::OneOf { values, .. } => {
            values.iter().all(|value| matches!(value, Some(super::Literal::Integer(_))))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn plan(loops: Value, load: Value) -> Plan {
        serde_json::from_value(json!({
            "schema": 1, "target": {"protocol": "null"}, "seed": 1,
            "workload": {"name": "sql", "sql": {
                "parameters": {"n": {"integer": {"low": 5, "high": 15}}, "text": {"one_of": {"values": ["a"]}}},
                "transactions": [{
                    "name": "t", "statements": [{"sql": "A"}, {"sql": "B"}, {"sql": "C"}], "loops": loops, "keying_us": 1
                }]
            }},
            "load": load, "phases": {"measure_us": 1000}
        }))
        .unwrap()
    }

    #[test]
    fn loops_follow_each_other() {
        let loops = json!([{"first": 1, "last": 2, "times": "n"}, {"first": 3, "last": 3, "times": 10}]);
        assert_eq!(plan(loops, json!({"connections": 1})).problems(), [""; 0]);
        let wrong = json!([
            {"first": 2, "last": 3, "times": 0}, {"first": 3, "last": 4, "times": "text"}, {"first": 0, "last": 0, "times": "x"}
        ]);
        let found = plan(wrong, json!({"connections": 1})).problems();
        let parts =
            ["of 0 repetitions", "3 to 4 of 3;", "repeated text times", "0 to 0 of 3;", "repeated x times"];
        for part in parts {
            assert_eq!(found.iter().filter(|one| one.contains(part)).count(), 1, "{part}: {found:#?}");
        }
        assert_eq!(found.len(), parts.len(), "{found:#?}");
    }

    #[test]
    fn pauses_need_a_closed_loop_without_a_think_time() {
        for load in [
            json!({"connections": 1, "shape": {"poisson": {"rate_per_s": 5}}}),
            json!({"connections": 1, "think_time": {"constant": {"us": 5}}}),
        ] {
            let found = plan(json!([]), load).problems();
            assert!(found.len() == 1 && found[0].contains("keying_us or think_us"), "{found:?}");
        }
    }
}
