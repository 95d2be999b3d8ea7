//! Checks the tables of a plan whose rows dbdyno generates.

use std::collections::BTreeSet;

use super::sql_parameters_validation::{nurand_problem, words_problem};
use super::sql_validation::{range_problem, text_problems, weights_problems};
use super::{ColumnSource, GeneratedColumn, GeneratedTable, SqlWorkload, TextWord, TimeOrder, limits};
use crate::calendar;

const KEY: &str = "workload.sql.tables";
/// The largest integer up to which `f64`, and so JSON, represents all integers exactly.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

impl SqlWorkload {
    /// Problems of the tables, one sentence each.
    pub(super) fn table_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.tables.len() as u64 > u64::from(limits::TABLES) {
            let (count, most) = (self.tables.len(), limits::TABLES);
            problems.push(format!("{KEY} holds {count} tables; the maximum is {most}"));
        }
        if self.tables.is_empty() && !self.after.is_empty() {
            problems.push(
                "workload.sql.after is set, but workload.sql.tables is empty, so there are no rows after which to send \
                 its statements; move them to workload.sql.setup"
                    .into(),
            );
        }
        let mut names = BTreeSet::new();
        for (index, table) in self.tables.iter().enumerate() {
            problems.extend(name_problem("a table", &table.name));
            if !names.insert(&table.name) {
                problems.push(format!("{KEY} lists {} twice; fill each table once", table.name));
            }
            table.problems(&self.tables[..index], &mut problems);
        }
        problems
    }
}

/// dbdyno quotes names as identifiers and, in queries of MySQL's catalogue, as strings, so they cannot contain quotes.
fn name_problem(what: &str, name: &str) -> Option<String> {
    let fits = (1..=64).contains(&name.chars().count())
        && !name.chars().any(|char| char.is_control() || "`'\"\\.".contains(char));
    (!fits).then(|| {
        format!(
            "{KEY}: {what} is called {name:?}; a name must have 1 to 64 characters and none of ` ' \" \\ . (all \
             tables are in the target's database)"
        )
    })
}

impl GeneratedTable {
    /// `earlier` are the tables listed before this one.
    fn problems(&self, earlier: &[GeneratedTable], problems: &mut Vec<String>) {
        let name = &self.name;
        if !(1..=limits::TABLE_SIZE).contains(&self.rows) {
            let most = limits::TABLE_SIZE;
            problems.push(format!("{KEY}: {name} has {} rows; it must be between 1 and {most}", self.rows));
        }
        problems.extend(self.parent_problem(earlier).map(|problem| format!("{KEY}: {name} {problem}")));
        if self.columns.is_empty() {
            problems.push(format!("{KEY}: {name} has no columns; it needs at least one"));
        }
        if self.columns.len() > limits::COLUMNS {
            let (count, most) = (self.columns.len(), limits::COLUMNS);
            problems.push(format!("{KEY}: {name} has {count} columns; the maximum is {most}"));
        }
        let mut names = BTreeSet::new();
        let mut bytes = 0;
        for column in &self.columns {
            let key = format!("{KEY}: column {} of {name}", column.name);
            problems.extend(name_problem("a column", &column.name));
            if !names.insert(&column.name) {
                problems.push(format!("{key} is listed twice; each column gets its values from one source"));
            }
            if !(0.0..=1.0).contains(&column.nulls) {
                problems.push(format!("{key} has nulls {}; it must be between 0 and 1", column.nulls));
            }
            column.values.problems(&key, self.rows, problems);
            self.foreign_key_problem(column, &key, earlier, problems);
            self.reference_problems(&column.values, &key, earlier, problems);
            bytes += column.values.max_bytes();
        }
        if bytes > limits::ROW_BYTES {
            let most = limits::ROW_BYTES;
            problems.push(format!("{KEY}: a row of {name} can have {bytes} bytes; the maximum is {most}"));
        }
    }

    fn foreign_key_problem(
        &self,
        column: &GeneratedColumn,
        key: &str,
        earlier: &[GeneratedTable],
        problems: &mut Vec<String>,
    ) {
        let ColumnSource::ForeignKey { table, column: referenced, .. } = &column.values else { return };
        let refers_to_itself = *table == self.name;
        let parent = if refers_to_itself {
            Some(self)
        } else {
            earlier.iter().find(|candidate| candidate.name == *table)
        };
        let Some(parent) = parent else {
            problems.push(format!(
                "{key} refers to {table}, which {KEY} does not list before it; put that table first"
            ));
            return;
        };
        match parent.columns.iter().find(|column| column.name == *referenced) {
            None => problems.push(format!(
                "{key} refers to the column {referenced} of {table}, which {KEY} does not define; add it"
            )),
            Some(found) if found.nulls > 0.0 => {
                problems.push(format!(
                    "{key} refers to {table}.{referenced}, which can be NULL; refer to a column without nulls"
                ));
            }
            Some(found) if refers_to_itself && matches!(found.values, ColumnSource::ForeignKey { .. }) => {
                problems.push(format!(
                    "{key} refers to another foreign key of its own table; refer to the column to which that key refers"
                ));
            }
            Some(_) => {}
        }
    }
}

/// The problem of a sequence without end in a table of `rows` rows, if any.
fn sequence_problem(first: i64, step: i64, rows: u64) -> Option<String> {
    let last = i128::from(first) + i128::from(step) * i128::from(rows.max(1) - 1);
    let fits = i64::try_from(last).is_ok();
    (!fits).then(|| format!("ends at {last}; the values of a sequence must fit 64 bits"))
}

/// The problem of a range of decimals, if any.
fn decimal_problem(low: f64, high: f64, scale: u32) -> Option<String> {
    let most = MAX_EXACT_INTEGER / 10f64.powi(scale.min(30) as i32);
    if scale > 15 {
        Some(format!("has scale {scale}; the maximum is 15"))
    } else if !(low.abs() <= most && high.abs() <= most) {
        Some(format!("goes from {low} to {high}; with scale {scale} the maximum is {most:e}"))
    } else {
        (low > high).then(|| format!("goes from {low} to {high}; low must not be above high"))
    }
}

/// The problem of the word and the suffix of random strings of at least `low` characters, if any.
fn word_problem(low: u32, alphabet: &str, word: Option<&TextWord>, suffix: &str) -> Option<String> {
    let is_valid = |word: &TextWord| {
        word.text.is_ascii() && word.text.len() <= low as usize && (0.0..=1.0).contains(&word.share)
    };
    let is_wrong =
        suffix.contains('\0') || !word.is_none_or(is_valid) || (word.is_some() && !alphabet.is_ascii());
    is_wrong.then(|| {
        "has an invalid word or suffix; a word and the alphabet around it must be ASCII, the word not longer than the \
         shortest text, its share between 0 and 1, and a suffix without NUL"
            .into()
    })
}

/// Problems of a source that writes numbers as words.
fn words_problems(
    key: &str,
    words: &[String],
    numbers: &ColumnSource,
    rows: u64,
    problems: &mut Vec<String>,
) {
    let low = match numbers {
        ColumnSource::Integer { low, .. }
        | ColumnSource::Cycle { low, .. }
        | ColumnSource::Shuffle { low, .. } => *low,
        _ => i64::MIN,
    };
    problems.extend(words_problem(key, words, low));
    numbers.problems(key, rows, problems);
}

impl ColumnSource {
    fn problems(&self, key: &str, rows: u64, problems: &mut Vec<String>) {
        let mut add = |text: String| problems.push(format!("{key} {text}"));
        match self {
            ColumnSource::Sequence { first, last: Some(last), .. } => {
                range_problem(*first, *last).into_iter().for_each(add);
            }
            ColumnSource::Sequence { first, step, last: None } => {
                sequence_problem(*first, *step, rows).into_iter().for_each(add);
            }
            ColumnSource::Integer { low, high, distribution } => {
                range_problem(*low, *high).into_iter().for_each(&mut add);
                nurand_problem(*low, distribution).into_iter().for_each(add);
            }
            ColumnSource::Cycle { low, high, every: runs }
            | ColumnSource::Shuffle { low, high, of: runs } => {
                range_problem(*low, *high).into_iter().for_each(&mut add);
                if !(1..=limits::TABLE_SIZE).contains(runs) {
                    let most = limits::TABLE_SIZE;
                    add(format!("has runs of {runs} rows; a run must have between 1 and {most} rows"));
                }
            }
            ColumnSource::Below { then, otherwise, .. } => {
                then.problems(key, rows, problems);
                otherwise.problems(key, rows, problems);
            }
            ColumnSource::Words { words, numbers } => words_problems(key, words, numbers, rows, problems),
            ColumnSource::Decimal { low, high, scale, .. } => {
                decimal_problem(*low, *high, *scale).into_iter().for_each(add)
            }
            ColumnSource::Timestamp { from, to, digits, .. } => {
                if *digits > 6 {
                    add(format!("has {digits} fractional digits; the maximum is 6"));
                }
                add_time_problems(
                    calendar::parse_instant,
                    "a time such as 2024-06-30 12:00:00",
                    (from, to),
                    &mut add,
                );
            }
            ColumnSource::Date { from, to, .. } => {
                add_time_problems(calendar::parse_day, "a date such as 2024-06-30", (from, to), &mut add);
            }
            ColumnSource::Text { length, alphabet, word, suffix } => {
                let problem = word_problem(length.bounds().0, alphabet, word.as_ref(), suffix);
                problem.into_iter().chain(text_problems(*length, alphabet)).for_each(add);
            }
            ColumnSource::OneOf { values, weights } => {
                weights_problems(values.len(), weights.as_deref()).into_iter().for_each(add);
            }
            ColumnSource::ForeignKey { .. }
            | ColumnSource::Parent { .. }
            | ColumnSource::ChildNumber {}
            | ColumnSource::Constant { .. } => {}
        }
        self.distribution_problems(key, problems);
    }

    fn distribution_problems(&self, key: &str, problems: &mut Vec<String>) {
        match self {
            ColumnSource::Timestamp { order: TimeOrder::Rising, distribution, .. }
            | ColumnSource::Date { order: TimeOrder::Rising, distribution, .. }
                if *distribution != super::Distribution::Uniform =>
            {
                problems
                    .push(format!("{key} has both order rising and a distribution; leave one of them out"));
            }
            ColumnSource::Integer { distribution, .. }
            | ColumnSource::Decimal { distribution, .. }
            | ColumnSource::Timestamp { distribution, .. }
            | ColumnSource::Date { distribution, .. }
            | ColumnSource::ForeignKey { distribution, .. } => {
                problems.extend(distribution.problem(&format!("{key}: distribution")));
            }
            _ => {}
        }
    }

    /// Approximate bytes of the longest value.
    fn max_bytes(&self) -> u64 {
        match self {
            ColumnSource::Text { length, alphabet, suffix, .. } => {
                let widest = alphabet.chars().map(char::len_utf8).max().unwrap_or(1);
                u64::from(length.bounds().1) * widest as u64 + suffix.len() as u64
            }
            ColumnSource::Below { then, otherwise, .. } => then.max_bytes().max(otherwise.max_bytes()),
            ColumnSource::Words { words, .. } => {
                // At most 63 digits, in base 2.
                63 * words.iter().map(String::len).max().unwrap_or(0) as u64
            }
            ColumnSource::OneOf { values, .. } => {
                values.iter().flatten().map(super::Literal::max_bytes).max().unwrap_or(0)
            }
            ColumnSource::Constant { value } => value.max_bytes(),
            _ => 32,
        }
    }
}

/// Checks the range `from` to `to`. `example` describes the format that `parse` accepts.
fn add_time_problems(
    parse: fn(&str) -> Option<i64>,
    example: &str,
    (from, to): (&str, &str),
    add: &mut impl FnMut(String),
) {
    let ends = [from, to].map(|text| {
        let parsed = parse(text);
        if parsed.is_none() {
            add(format!("has {text:?}, which is not {example}"));
        }
        parsed
    });
    if let [Some(first), Some(last)] = ends
        && first > last
    {
        add(format!("goes from {from} to {to}; from must not be after to"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems(tables: Value) -> Vec<String> {
        let sql: SqlWorkload = serde_json::from_value(json!({"tables": tables, "transactions": []})).unwrap();
        sql.table_problems()
    }

    #[test]
    fn only_the_invalid_reference_is_a_problem() {
        let found = problems(json!([
            {"name": "customer", "rows": 10, "columns": [
                {"name": "id", "values": {"sequence": {}}},
                {"name": "born", "values": {"date": {"from": "1950-01-01", "to": "1950-01-01"}}},
                {"name": "boss", "values": {"foreign_key": {"table": "customer", "column": "id"}}, "nulls": 0.5}]},
            {"name": "order", "rows": 1_000_000_000u64, "columns": [
                {"name": "id", "values": {"sequence": {"first": -5, "step": -2}}},
                {"name": "owner", "values": {"foreign_key": {"table": "customer", "column": "boss_of"}}},
                {"name": "at", "values": {"timestamp": {"from": "2024-01-01", "to": "2024-12-31 23:59:59", "order": "rising"}}},
                {"name": "price", "values": {"decimal": {"low": -0.5, "high": 99.5}}},
                {"name": "n", "values": {"integer": {"high": 5, "distribution": {"zipfian": {"exponent": 0.9}}}}},
                {"name": "note", "values": {"text": {"length": {"low": 0, "high": 9}}}},
                {"name": "code", "values": {"text": {"length": 4, "alphabet": "é"}}},
                {"name": "state", "values": {"one_of": {"values": ["a", 1, null], "weights": [1, 2, 3]}}},
                {"name": "kind", "values": {"constant": {"value": "x"}}}]}
        ]));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].contains("refers to the column boss_of of customer"), "{found:#?}");
    }

    #[test]
    fn all_problems_are_reported_together() {
        let found = problems(json!([
            {"name": "a.b", "rows": 0, "columns": []},
            {"name": "t", "rows": 10, "columns": [
                {"name": "s", "values": {"sequence": {"first": i64::MAX}}, "nulls": 2},
                {"name": "s", "values": {"integer": {"low": 3, "high": 2, "distribution": {"zipfian": {"exponent": -1.0}}}}},
                {"name": "d", "values": {"decimal": {"low": 0, "high": 1e15}}},
                {"name": "e", "values": {"decimal": {"low": 2, "high": 1, "scale": 16}}},
                {"name": "f", "values": {"decimal": {"low": 2, "high": 1}}},
                {"name": "w", "values": {"timestamp": {"from": "2024-13-01", "to": "x", "digits": 7}}},
                {"name": "v", "values": {"date": {"from": "2024-02-01", "to": "2024-01-01", "order": "rising",
                    "distribution": {"pareto": {}}}}},
                {"name": "x", "values": {"text": {"length": {"low": 2, "high": 1}, "alphabet": ""}}},
                {"name": "y", "values": {"foreign_key": {"table": "u", "column": "id"}}},
                {"name": "z", "values": {"one_of": {"values": [1], "weights": [1, 2]}}},
                {"name": "k", "values": {"foreign_key": {"table": "t", "column": "s"}}},
                {"name": "l", "values": {"foreign_key": {"table": "t", "column": "k"}}}]},
            {"name": "t", "rows": 1, "columns": [{"name": "big", "values": {"text": {"length": 1_000_000, "alphabet": "𝄞𝄡"}}},
                {"name": "big2", "values": {"text": {"length": 1_000_001, "alphabet": "𝄞𝄡"}}},
                {"name": "big3", "values": {"text": {"length": 500_000, "alphabet": "𝄞𝄡"}}}]}
        ]));
        for part in [
            "a table is called \"a.b\"",
            "a.b has 0 rows;",
            "a.b has no columns;",
            "s of t has nulls 2;",
            "s of t ends at",
            "s of t is listed twice;",
            "s of t goes from 3 to 2;",
            "s of t: distribution.exponent is -1;",
            "d of t goes from 0 to",
            "e of t has scale 16;",
            "f of t goes from 2 to 1;",
            "w of t has 7 fractional digits",
            "w of t has \"2024-13-01\", which is not a time",
            "w of t has \"x\"",
            "v of t goes from 2024-02-01 to 2024-01-01;",
            "v of t has both order rising and a distribution;",
            "x of t has 2 to 1 characters;",
            "x of t has an invalid alphabet;",
            "y of t refers to u, which",
            "z of t has 1 values and 2 weights;",
            "k of t refers to t.s, which can be NULL;",
            "l of t refers to another foreign key",
            "workload.sql.tables lists t twice;",
            "big2 of t has 1000001 to 1000001 characters;",
            "a row of t can have 10000004 bytes;",
        ] {
            assert_eq!(
                found.iter().filter(|problem| problem.contains(part)).count(),
                1,
                "{part}: {found:#?}"
            );
        }
        assert_eq!(found.len(), 25, "{found:#?}");
    }
}
