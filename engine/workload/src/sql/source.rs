//! Sources of parameter values.

use std::collections::BTreeMap;
use std::sync::Arc;

use dbdyno_random::Rng;
use dbdyno_random::alphabet::Strings;
use dbdyno_random::key::Keys;
use dbdyno_schema::plan::{CsvSource, LineOrder, Literal, ParameterSource, ResultType, SequenceOrder};
use dbdyno_wire::Value;
use dbdyno_wire::scripted::Type;

use super::Columns;
use super::recent::Recent;
use crate::call::UserIndex;

/// The sources of all parameters of a workload, sorted by name.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    sources: Vec<Source>,
    /// Number of lines of each CSV file, and their order.
    files: Vec<(usize, LineOrder)>,
    /// Parameters of the sequences that number inserted rows which the user reads again.
    recent: Vec<usize>,
}

#[derive(Clone, Debug)]
enum Source {
    /// Distribution of the values, and an offset to add.
    Integer(Box<Keys>, i64),
    /// As `Integer`, over one value less: the value of the parameter with this number is left out.
    OtherThan(Box<Keys>, i64, usize),
    /// First value, number of values, and number of consecutive connections with the same value.
    Connection(i64, u64, u64),
    /// Numbers of the parameters, and their cumulative weights.
    Choice(Arc<[usize]>, Arc<[f64]>),
    /// The words, the distribution of the numbers that they write, an offset to add, and the number of digits.
    Words(Arc<[String]>, Box<Keys>, i64, usize),
    /// The number of the repetition, which the event knows.
    Repetition,
    /// First number, the number of values after which the sequence restarts (0 if it never restarts), and the distance
    /// between consecutive values, by which the sequence visits every value once.
    Sequence(i64, u64, u64),
    /// A row that the user inserted recently.
    Latest(Box<Latest>),
    Text(Box<Strings>),
    /// Values, and their cumulative weights; `None` if all weights are equal.
    OneOf(Arc<[Value]>, Option<Arc<[f64]>>),
    /// The value in each line of a CSV file, and the number of the file.
    Column(Arc<[Value]>, usize),
    /// The result of a statement.
    Result(ResultType),
}

/// The row numbers of a sequence, the latest first, and after them loaded rows.
#[derive(Clone, Debug)]
struct Latest {
    /// Which of the `recent` sequences, and its first number.
    recent: usize,
    first: i64,
    /// Distribution of the distance from the latest row.
    keys: Keys,
    /// The last loaded row.
    high: i64,
}

/// The positions of one user in sequences and files.
#[derive(Clone, Debug)]
pub(super) struct SourceState {
    user: UserIndex,
    /// How many numbers the user has taken from each sequence.
    taken: Vec<u64>,
    /// How many lines the user has taken from each file that is read in order.
    lines_taken: Vec<u64>,
    /// What the user has taken from each of `Sources::recent`.
    recent: Vec<Recent>,
}

impl Sources {
    pub(super) fn new(parameters: &BTreeMap<String, ParameterSource>, columns: &Columns) -> Self {
        let mut files: Vec<((&CsvSource, LineOrder), usize)> = Vec::new();
        let mut recent: Vec<usize> = Vec::new();
        let mut sources = Vec::with_capacity(parameters.len());
        for (name, generator) in parameters {
            sources.push(match generator {
                ParameterSource::Csv { from, order, .. } => {
                    let values = columns.get(name).cloned().unwrap_or_else(|| [Value::Null].into());
                    let key = (from, *order);
                    let number = files.iter().position(|(file, _)| *file == key).unwrap_or_else(|| {
                        files.push((key, values.len()));
                        files.len() - 1
                    });
                    Source::Column(values, number)
                }
                ParameterSource::Latest { sequence, low, high, distribution } => {
                    let parameter = parameters.keys().position(|key| key == sequence);
                    let (Some(parameter), Some(ParameterSource::Sequence { first, .. })) =
                        (parameter, parameters.get(sequence))
                    else {
                        unreachable!("Plan::problems rejects other parameters");
                    };
                    let number = recent.iter().position(|one| *one == parameter).unwrap_or_else(|| {
                        recent.push(parameter);
                        recent.len() - 1
                    });
                    let keys = Keys::new(distribution, 0, high.abs_diff(*low));
                    Source::Latest(Box::new(Latest { recent: number, first: *first, keys, high: *high }))
                }
                other => {
                    Source::new(other, &|name| parameters.keys().position(|key| key == name).unwrap_or(0))
                }
            });
        }
        let files = files.into_iter().map(|((_, order), lines)| (lines, order)).collect();
        Self { sources, files, recent }
    }

    /// Initial values of the parameters.
    pub(super) fn initial_values(&self, user: UserIndex) -> Vec<Value> {
        let value = |source: &Source| match source {
            Source::Connection(low, count, every) => {
                Value::Int(low.wrapping_add((user.global / every % count) as i64))
            }
            _ => Value::Null,
        };
        self.sources.iter().map(value).collect()
    }

    /// Whether a parameter gets its values from [`Self::draw`].
    pub(super) fn is_drawn(&self, number: usize) -> bool {
        !matches!(self.sources[number], Source::Connection(..) | Source::Repetition | Source::Result(_))
    }

    /// Whether a parameter's value is the number of the repetition.
    pub(super) fn is_repetition(&self, number: usize) -> bool {
        matches!(self.sources[number], Source::Repetition)
    }

    /// The parameters on whose values a parameter depends.
    pub(super) fn inputs(&self, number: usize) -> &[usize] {
        match &self.sources[number] {
            Source::OtherThan(_, _, other) => std::slice::from_ref(other),
            Source::Choice(parameters, _) => parameters,
            _ => &[],
        }
    }

    pub(super) fn initial_state(&self, user: UserIndex) -> SourceState {
        SourceState {
            user,
            taken: vec![0; self.sources.len()],
            lines_taken: vec![0; self.files.len()],
            recent: self.recent.iter().copied().map(Recent::new).collect(),
        }
    }

    /// Draws a new value for parameter `number`, and to all parameters that share its CSV file.
    #[inline]
    pub(super) fn draw(&self, number: usize, rng: &mut Rng, state: &mut SourceState, values: &mut [Value]) {
        match &self.sources[number] {
            Source::Integer(keys, offset) => {
                values[number] = Value::Int(offset.wrapping_add(keys.draw(rng) as i64));
            }
            Source::Sequence(first, count, step) => {
                let nth = state.nth(state.taken[number]);
                state.taken[number] += 1;
                let nth = if *count == 0 { nth } else { scattered(nth % count, *count, *step) };
                values[number] = Value::Int(first.wrapping_add(nth as i64));
            }
            Source::Latest(latest) => {
                let row = match state.recent[latest.recent].position(latest.keys.draw(rng)) {
                    Ok(position) => latest.first.wrapping_add(state.nth(position) as i64),
                    Err(before) => latest.high - before as i64,
                };
                values[number] = Value::Int(row);
            }
            Source::Text(strings) => {
                let mut text = Vec::new();
                strings.write(rng, &mut text);
                values[number] = Value::Text(text);
            }
            Source::OneOf(all, weights) => {
                let index = match weights {
                    None => rng.below(all.len() as u64) as usize,
                    Some(weights) => draw_weighted(weights, rng),
                };
                values[number].clone_from(&all[index]);
            }
            Source::Column(_, file) => self.draw_line(*file, rng, state, values),
            Source::OtherThan(keys, offset, other) => {
                let drawn = offset.wrapping_add(keys.draw(rng) as i64);
                let is_left_out = matches!(values[*other], Value::Int(other) if drawn >= other);
                values[number] = Value::Int(drawn + i64::from(is_left_out));
            }
            Source::Choice(parameters, weights) => {
                let chosen = parameters[draw_weighted(weights, rng)];
                values[number] = values[chosen].clone();
            }
            Source::Words(words, keys, offset, digits) => {
                let mut text = Vec::new();
                push_words(&mut text, words, (offset + keys.draw(rng) as i64) as u64, *digits);
                values[number] = Value::Text(text);
            }
            Source::Connection(..) | Source::Repetition | Source::Result(_) => {}
        }
    }

    fn draw_line(&self, file: usize, rng: &mut Rng, state: &mut SourceState, values: &mut [Value]) {
        let (lines, order) = self.files[file];
        let line = match order {
            LineOrder::Random => rng.below(lines as u64) as usize,
            LineOrder::InOrder => {
                let nth = state.nth(state.lines_taken[file]);
                state.lines_taken[file] += 1;
                (nth % lines as u64) as usize
            }
        };
        for (source, value) in self.sources.iter().zip(values) {
            if let Source::Column(column, column_file) = source
                && *column_file == file
            {
                value.clone_from(&column[line]);
            }
        }
    }

    /// Type of a parameter's values.
    pub(super) fn value_type(&self, number: usize) -> Type {
        match &self.sources[number] {
            Source::Integer(..)
            | Source::OtherThan(..)
            | Source::Connection(..)
            | Source::Choice(..)
            | Source::Repetition
            | Source::Result(ResultType::Integer)
            | Source::Latest(_)
            | Source::Sequence(..) => Type::Int,
            Source::OneOf(values, _) | Source::Column(values, _)
                if matches!(values[..], [Value::Int(_), ..]) =>
            {
                Type::Int
            }
            _ => Type::Text,
        }
    }

    /// Whether both parameters get their values from the same line of a file.
    pub(super) fn are_drawn_together(&self, one: usize, other: usize) -> bool {
        match (&self.sources[one], &self.sources[other]) {
            (Source::Column(_, file), Source::Column(_, other)) => file == other,
            _ => one == other,
        }
    }
}

impl SourceState {
    /// The user's number at a position in a sequence that all users share.
    #[inline]
    fn nth(&self, position: u64) -> u64 {
        self.user.global.wrapping_add(position.wrapping_mul(self.user.users))
    }

    /// A transaction begins, after the last one ended.
    #[inline]
    pub(super) fn begin(&mut self) {
        for recent in &mut self.recent {
            recent.begin(self.taken[recent.sequence]);
        }
    }

    /// The current transaction failed, and begins again.
    pub(super) fn restart(&mut self) {
        for recent in &mut self.recent {
            recent.restart(self.taken[recent.sequence]);
        }
    }
}

impl Source {
    /// `number` returns the number of a parameter.
    fn new(generator: &ParameterSource, number: &dyn Fn(&str) -> usize) -> Self {
        match generator {
            ParameterSource::Integer { low, high, distribution, other_than } => match other_than {
                Some(other) if low < high => {
                    let (keys, offset) = Keys::with_offset(distribution, *low, high - 1);
                    Source::OtherThan(Box::new(keys), offset, number(other))
                }
                _ => {
                    let (keys, offset) = Keys::with_offset(distribution, *low, *high);
                    Source::Integer(Box::new(keys), offset)
                }
            },
            ParameterSource::Connection { low, high, every } => {
                Source::Connection(*low, high.abs_diff(*low) + 1, *every)
            }
            ParameterSource::Repetition {} => Source::Repetition,
            ParameterSource::Choice { parameters, weights } => {
                let equal = vec![1.0; parameters.len()];
                let weights = cumulative_weights(weights.as_deref().unwrap_or(&equal));
                Source::Choice(parameters.iter().map(|name| number(name)).collect(), weights)
            }
            ParameterSource::Words { words, low, high, distribution } => {
                let (keys, offset) = Keys::with_offset(distribution, *low, *high);
                let digits = digit_count(*high as u64, words.len());
                Source::Words(words.as_slice().into(), Box::new(keys), offset, digits)
            }
            ParameterSource::Sequence { first, last, order } => {
                let count = last.map_or(0, |last| last.abs_diff(*first).saturating_add(1));
                let step = if *order == SequenceOrder::Random { scattering_step(count) } else { 1 };
                Source::Sequence(*first, count, step)
            }
            ParameterSource::OneOf { values, weights } => {
                let values = literals(values);
                Source::OneOf(values, weights.as_deref().map(cumulative_weights))
            }
            ParameterSource::Text { length, alphabet } => {
                let (low, high) = length.bounds();
                Source::Text(Box::new(Strings::new(alphabet, low, high)))
            }
            ParameterSource::Result { r#type, .. } => Source::Result(*r#type),
            ParameterSource::Csv { .. } | ParameterSource::Latest { .. } => {
                unreachable!("`Sources::new` needs other parameters or files for these")
            }
        }
    }
}

/// Value number `nth` of `count` values in steps of `step`.
#[inline]
fn scattered(nth: u64, count: u64, step: u64) -> u64 {
    match nth.checked_mul(step) {
        Some(product) => product % count,
        None => (u128::from(nth) * u128::from(step) % u128::from(count)) as u64,
    }
}

/// A step that visits each of `count` values once and scatters consecutive ones: the number next to `count` divided by the
/// golden ratio that has no common divisor with `count`.
fn scattering_step(count: u64) -> u64 {
    let ideal = (count as f64 / 1.618_033_988_749_895) as u64;
    (ideal.max(1)..).find(|step| common_divisor(*step, count) == 1).unwrap_or(1)
}

fn common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { common_divisor(other, one % other) }
}

/// Values of a list, all with the same type, because a parameter's type must not change between executions.
fn literals(values: &[Option<Literal>]) -> Arc<[Value]> {
    let integers = values.iter().all(|value| matches!(value, Some(Literal::Integer(_))));
    let value = |value: &Option<Literal>| match value {
        None => Value::Null,
        Some(Literal::Integer(number)) if integers => Value::Int(*number),
        Some(Literal::Integer(number)) => Value::Text(number.to_string().into_bytes()),
        Some(Literal::Number(number)) => Value::Text(number.to_string().into_bytes()),
        Some(Literal::Text(text)) => Value::Text(text.clone().into_bytes()),
    };
    values.iter().map(value).collect()
}

/// Number of digits of `number` in the given base.
pub(crate) fn digit_count(number: u64, base: usize) -> usize {
    number.checked_ilog(base as u64).map_or(1, |log| log as usize + 1)
}

/// Appends the words that the digits of `number` select.
pub(crate) fn push_words(out: &mut Vec<u8>, words: &[String], number: u64, digits: usize) {
    let base = words.len() as u64;
    for place in (0..digits as u32).rev() {
        let digit = number / base.pow(place) % base;
        out.extend_from_slice(words[digit as usize].as_bytes());
    }
}

pub(crate) fn cumulative_weights(weights: &[f64]) -> Arc<[f64]> {
    let mut sum = 0.0;
    let add = |weight: &f64| {
        sum += weight;
        sum
    };
    weights.iter().map(add).collect()
}

/// Draws an index with the probabilities that the cumulative weights define.
#[inline]
pub(crate) fn draw_weighted(cumulative: &[f64], rng: &mut Rng) -> usize {
    let at = rng.unit() * cumulative.last().copied().unwrap_or(0.0);
    cumulative.partition_point(|&sum| sum <= at).min(cumulative.len() - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_scattered_sequence_has_each_value_once() {
        for count in [1, 2, 3, 4, 6, 97, 1000, 20_000, 65_536] {
            let step = scattering_step(count);
            let visited: HashSet<u64> = (0..count).map(|nth| scattered(nth, count, step)).collect();
            assert_eq!(visited.len() as u64, count);
            // The first hundred of many are in all tenths of the range.
            if count >= 1000 {
                let tenths: HashSet<u64> =
                    (0..100).map(|nth| scattered(nth, count, step) * 10 / count).collect();
                assert_eq!(tenths.len(), 10, "{count}");
            }
        }
    }

    #[test]
    fn a_scattered_sequence_covers_the_largest_range() {
        let count = 1 << 63;
        let step = scattering_step(count);
        assert_eq!(common_divisor(step, count), 1);
        assert!(scattered(count - 1, count, step) < count);
    }
}
