//! Checks the parameters of a plan's own SQL.

use std::collections::BTreeMap;

use super::sql_validation::{range_problem, text_problems, weights_problems};
use super::{Distribution, ParameterSource, SequenceOrder};

type Parameters = BTreeMap<String, ParameterSource>;

impl ParameterSource {
    /// Adds the problems of the parameter at `key`; `all` are all parameters of the workload.
    pub(super) fn problems(&self, key: &str, all: &Parameters, problems: &mut Vec<String>) {
        let mut add = |text: String| problems.push(format!("{key} {text}"));
        match self {
            ParameterSource::Integer { low, high, distribution, other_than } => {
                problems.extend(integer_problems(key, "integer", *low, *high, distribution));
                problems.extend(
                    other_than.as_ref().and_then(|other| other_than_problem(key, other, (*low, *high), all)),
                );
            }
            ParameterSource::Words { words, low, high, distribution } => {
                problems.extend(integer_problems(key, "words", *low, *high, distribution));
                problems.extend(words_problem(key, words, *low));
            }
            ParameterSource::Connection { low, high, every } => {
                range_problem(*low, *high).into_iter().for_each(&mut add);
                if *every == 0 {
                    add("has every 0; it must be 1 or more".into());
                }
            }
            ParameterSource::Choice { parameters, weights } => {
                weights_problems(parameters.len(), weights.as_deref()).into_iter().for_each(&mut add);
                for name in
                    parameters.iter().filter(|name| !all.get(*name).is_some_and(Self::is_plain_integer))
                {
                    add(format!(
                        "chooses {name}, which is no parameter of the kind integer, sequence or connection; \
                         define it as one of these"
                    ));
                }
            }
            ParameterSource::Sequence { first, last: Some(last), .. } if last < first => {
                add(format!("goes from {first} to {last}; last must not be before first"));
            }
            ParameterSource::Sequence { last: None, order: SequenceOrder::Random, .. } => {
                add("has a random order but no last number; set last".into());
            }
            ParameterSource::Sequence { .. } | ParameterSource::Repetition {} => {}
            ParameterSource::Latest { low, high, distribution, .. } => {
                problems.extend(integer_problems(key, "latest", *low, *high, distribution));
            }
            ParameterSource::Text { length, alphabet } => {
                text_problems(*length, alphabet).into_iter().for_each(add);
            }
            ParameterSource::OneOf { values, weights } => {
                weights_problems(values.len(), weights.as_deref()).into_iter().for_each(add);
            }
            ParameterSource::Csv { column, .. } => {
                if column.is_empty() {
                    add("has an empty column name".into());
                }
            }
            ParameterSource::Result { column, .. } => {
                if !(1..=4096).contains(column) {
                    add(format!("has column {column}; it must be between 1 and 4096"));
                }
            }
        }
    }

    /// Whether the values are integers that do not depend on other parameters, except that one may be left out.
    fn is_plain_integer(&self) -> bool {
        matches!(
            self,
            ParameterSource::Integer { .. }
                | ParameterSource::Sequence { .. }
                | ParameterSource::Connection { .. }
        )
    }
}

/// Problems of random integers from `low` to `high`.
fn integer_problems(key: &str, kind: &str, low: i64, high: i64, distribution: &Distribution) -> Vec<String> {
    let range = range_problem(low, high).map(|problem| format!("{key} {problem}"));
    let distribution_problem = distribution.problem(&format!("{key}.{kind}.distribution"));
    let mut problems: Vec<String> = range.into_iter().chain(distribution_problem).collect();
    problems.extend(nurand_problem(low, distribution).map(|problem| format!("{key} {problem}")));
    problems
}

/// The problem of a range that begins below 0 with `nurand`, if any.
pub(super) fn nurand_problem(low: i64, distribution: &Distribution) -> Option<String> {
    let is_wrong = low < 0 && matches!(distribution, Distribution::Nurand { .. });
    is_wrong.then(|| format!("begins at {low}; with nurand the smallest value must be 0 or more"))
}

/// The problem of a list of words and the smallest number that they write, if any.
pub(super) fn words_problem(key: &str, words: &[String], low: i64) -> Option<String> {
    if !(2..=256).contains(&words.len()) || words.iter().any(|word| word.len() > 100 || word.contains('\0')) {
        return Some(format!("{key} needs 2 to 256 words of at most 100 bytes, none of them with NUL"));
    }
    (low < 0).then(|| format!("{key} begins at {low}; words are for numbers from 0"))
}

fn other_than_problem(key: &str, other: &str, (low, high): (i64, i64), all: &Parameters) -> Option<String> {
    let bounds = match all.get(other) {
        Some(ParameterSource::Connection { low, high, .. }) => Some((*low, *high)),
        Some(ParameterSource::Integer { low, high, other_than: None, .. }) => Some((*low, *high)),
        _ => None,
    };
    if bounds.is_some_and(|bounds| low <= bounds.0 && bounds.1 <= high) {
        return None;
    }
    Some(format!(
        "{key} leaves out {other}, which is no parameter of the kind integer or connection with values from {low} to {high}; \
         define it as one of these"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(parameters: serde_json::Value) -> Vec<String> {
        let all: Parameters = serde_json::from_value(parameters).unwrap();
        let mut problems = Vec::new();
        all.iter().for_each(|(name, source)| source.problems(name, &all, &mut problems));
        problems
    }

    #[test]
    fn parameters_may_depend_on_others() {
        let found = problems(json!({
            "home": {"connection": {"high": 9, "every": 2}},
            "other": {"integer": {"low": 1, "high": 9, "other_than": "home"}},
            "supply": {"choice": {"parameters": ["home", "other"], "weights": [99, 1]}},
            "line": {"repetition": {}},
            "name": {"words": {"words": ["A", "B"], "high": 7, "distribution": {"nurand": {"a": 3, "c": 3}}}},
            "id": {"result": {"statement": "s", "type": "integer"}}
        }));
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn wrong_references_and_ranges_are_reported() {
        let found = problems(json!({
            "a_home": {"connection": {"low": 2, "high": 1, "every": 0}},
            "b_other": {"integer": {"low": 1, "high": 9, "other_than": "c_wide"}},
            "c_wide": {"integer": {"low": 0, "high": 9}},
            "d_choice": {"choice": {"parameters": ["g_words", "nobody"], "weights": [1]}},
            "e_nurand": {"integer": {"low": -1, "high": 9, "distribution": {"nurand": {"a": 1, "c": 2}}}},
            "f_words": {"words": {"words": ["A"], "high": 7}},
            "g_words": {"words": {"words": ["A", "B"], "low": -1, "high": 7}},
        }));
        for part in [
            "a_home goes from 2 to 1;",
            "a_home has every 0;",
            "b_other leaves out c_wide,",
            "d_choice has 2 values and 1 weights;",
            "d_choice chooses g_words,",
            "d_choice chooses nobody,",
            "e_nurand.integer.distribution.a is 1 and c 2;",
            "e_nurand begins at -1;",
            "f_words needs 2 to 256 words",
            "g_words begins at -1;",
        ] {
            assert_eq!(found.iter().filter(|one| one.contains(part)).count(), 1, "{part}: {found:#?}");
        }
        assert_eq!(found.len(), 10, "{found:#?}");
    }
}
