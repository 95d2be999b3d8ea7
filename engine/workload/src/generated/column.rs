//! The values of one column. Each value depends only on the seed and the row number.

use std::sync::Arc;

use dbdyno_random::Rng;
use dbdyno_random::alphabet::Strings;
use dbdyno_random::key::Keys;
use dbdyno_random::permutation::RangePermutation;
use dbdyno_schema::calendar::{self, DAY_US, civil_from_days};
use dbdyno_schema::plan::{ColumnSource, GeneratedColumn, Literal, TextWord, TimeOrder};

use super::children::{Children, RowCounts, RowPlace};
use super::encode::{self, Encoding};
use crate::sql::source::{cumulative_weights, digit_count, draw_weighted, push_words};

/// A column with a generator for its values.
#[derive(Clone, Debug)]
pub(super) struct Column {
    /// Seed of the column's random streams.
    seed: u64,
    nulls: f64,
    is_ascii: bool,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Sequence(Sequence),
    /// Distribution of the values, and an offset to add.
    Integer(Box<Keys>, i64),
    /// First value, number of values, and number of consecutive rows with the same value.
    Cycle(i64, u64, u64),
    Shuffle(Shuffle),
    /// A column of the parent's row.
    Parent(Arc<Column>),
    ChildNumber,
    /// A column, a limit, the source below it, and the other one.
    Below(Box<(Arc<Column>, i64, Source, Source)>),
    /// The words, the source of the numbers that they write, and the number of digits.
    Words(Arc<[String]>, Box<Source>, usize),
    /// As `Integer`, in units of the last decimal place; the third field is the number of decimal places.
    Decimal(Box<Keys>, i64, u32),
    Time(TimeSource),
    Text {
        strings: Strings,
        /// Whether they need no escapes.
        is_plain: bool,
        word: Option<TextWord>,
        suffix: String,
    },
    /// The value of the referenced column in a random row of its table, and the parent of that table.
    Foreign(Box<Keys>, Arc<Column>, Option<Arc<Children>>),
    OneOf(Vec<Option<Literal>>, Option<Arc<[f64]>>),
}

/// An arithmetic sequence.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    first: i64,
    step: i64,
    /// Number of values after which it continues at the first; 0 if it has no end.
    count: i128,
}

/// Every value of a range, equally often in each run of rows.
#[derive(Clone, Copy, Debug)]
struct Shuffle {
    low: i64,
    /// Number of values.
    values: u64,
    /// Number of rows of a run.
    rows: u64,
}

/// Times, counted in `unit`s since 1970-01-01.
#[derive(Clone, Debug)]
struct TimeSource {
    /// Distribution of the times; `None` if values increase with the row number.
    keys: Option<Box<Keys>>,
    first: i64,
    /// Number of units from the first time to the last.
    span: u64,
    /// Number of rows of the table.
    rows: u64,
    unit: Unit,
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    Day,
    /// Fractions of a second, with this number of digits.
    Fraction(u32),
}

impl Column {
    /// A column of the table with the name and number of rows in `table`. `columns` finds other columns.
    pub(super) fn new(
        plan_seed: u64,
        table: (&str, u64),
        column: &GeneratedColumn,
        columns: &impl Columns,
    ) -> Self {
        Self {
            seed: column_seed(plan_seed, table.0, &column.name),
            nulls: column.nulls,
            is_ascii: is_ascii(&column.values, columns),
            source: Source::new(&column.values, table.1, columns),
        }
    }

    /// Whether all values are certainly ASCII.
    pub(super) fn is_ascii(&self) -> bool {
        self.is_ascii
    }

    /// Appends the value in a row.
    #[inline]
    pub(super) fn write(&self, row: RowPlace, out: &mut Vec<u8>, encoding: Encoding) {
        if let (Source::Sequence(sequence), 0.0) = (&self.source, self.nulls) {
            return push_integer(out, sequence.at(row.row));
        }
        let mut rng = Rng::new(self.seed, &[row.row]);
        if self.nulls > 0.0 && rng.unit() < self.nulls {
            return encode::push_null(out, encoding);
        }
        self.source.write(self.seed, row, &mut rng, out, encoding);
    }

    /// The value in a row of a column with integers and without nulls.
    pub(super) fn integer(&self, row: RowPlace) -> i64 {
        self.source.integer(self.seed, row, &mut Rng::new(self.seed, &[row.row]))
    }
}

impl RowCounts for Column {
    fn count(&self, parent: RowPlace) -> u64 {
        self.integer(parent) as u64
    }
}

/// Finds the columns on which another one depends.
pub(super) trait Columns {
    /// A column of a table, the table's number of rows, and its parent.
    fn foreign(&self, table: &str, column: &str) -> (Arc<Column>, u64, Option<Arc<Children>>);
    /// A column of the parent.
    fn parent(&self, column: &str) -> Arc<Column>;
    /// Another column of the same table.
    fn sibling(&self, column: &str) -> Arc<Column>;
}

impl Source {
    fn write(&self, seed: u64, row: RowPlace, rng: &mut Rng, out: &mut Vec<u8>, encoding: Encoding) {
        match self {
            Source::Sequence(_)
            | Source::Integer(..)
            | Source::Cycle(..)
            | Source::Shuffle(_)
            | Source::ChildNumber => push_integer(out, self.integer(seed, row, rng)),
            Source::Parent(column) => column.write(RowPlace::of(row.parent), out, encoding),
            Source::Below(parts) => {
                let (column, bound, then, otherwise) = &**parts;
                let source = if column.integer(row) < *bound { then } else { otherwise };
                source.write(seed, row, rng, out, encoding);
            }
            Source::Words(words, numbers, digits) => {
                let number = numbers.integer(seed, row, rng) as u64;
                let mut text = Vec::new();
                push_words(&mut text, words, number, *digits);
                encode::push_text(out, encoding, &text);
            }
            Source::Decimal(keys, low, scale) => push_decimal(out, low + keys.draw(rng) as i64, *scale),
            Source::Time(times) => {
                let at = times.draw(row.row, rng);
                encode::push_plain(out, encoding, |out| times.unit.write(at, out));
            }
            Source::Text { strings, is_plain, word, suffix } => {
                let write = |rng: &mut Rng, out: &mut Vec<u8>| {
                    let begin = out.len();
                    strings.write(rng, out);
                    if let Some(word) = word.as_ref().filter(|word| rng.unit() < word.share) {
                        let places = (out.len() - begin - word.text.len() + 1) as u64;
                        let at = begin + rng.below(places) as usize;
                        out[at..at + word.text.len()].copy_from_slice(word.text.as_bytes());
                    }
                    out.extend_from_slice(suffix.as_bytes());
                };
                if *is_plain {
                    return encode::push_plain(out, encoding, |out| write(rng, out));
                }
                let mut text = Vec::new();
                write(rng, &mut text);
                encode::push_text(out, encoding, &text);
            }
            Source::Foreign(keys, column, children) => {
                column.write(RowPlace::new(keys.draw(rng), children.as_deref()), out, encoding);
            }
            Source::OneOf(values, weights) => {
                let index = match weights {
                    _ if values.len() == 1 => 0,
                    None => rng.below(values.len() as u64) as usize,
                    Some(weights) => draw_weighted(weights, rng),
                };
                push_literal(out, encoding, values[index].as_ref());
            }
        }
    }

    /// The value in a row, of a source of integers.
    fn integer(&self, seed: u64, row: RowPlace, rng: &mut Rng) -> i64 {
        match self {
            Source::Sequence(sequence) => sequence.at(row.row),
            Source::Integer(keys, offset) => offset.wrapping_add(keys.draw(rng) as i64),
            Source::Cycle(low, values, every) => low + ((row.row - 1) / every % values) as i64,
            Source::Shuffle(shuffle) => shuffle.value(seed, row.row),
            Source::Parent(column) => column.integer(RowPlace::of(row.parent)),
            Source::ChildNumber => row.number as i64,
            _ => unreachable!("Plan::problems rejects other sources of integers"),
        }
    }

    /// The largest value, of a source of numbers that words write.
    fn largest(source: &ColumnSource) -> u64 {
        match source {
            ColumnSource::Integer { high, .. }
            | ColumnSource::Cycle { high, .. }
            | ColumnSource::Shuffle { high, .. } => *high as u64,
            _ => unreachable!("Plan::problems rejects other sources of numbers"),
        }
    }
}

impl Shuffle {
    fn value(&self, seed: u64, row: u64) -> i64 {
        let (run, place) = ((row - 1) / self.rows, (row - 1) % self.rows);
        let run_seed = Rng::new(seed, &[u64::from_be_bytes(*b"shuffle\0"), run]).bits();
        let place = RangePermutation::new(run_seed, self.rows).at(place);
        let complete = self.rows / self.values * self.values;
        let offset = match place.checked_sub(complete) {
            None => place % self.values,
            // Values at equal distances from the middle, so that the mean of a run is the mean of the range.
            Some(extra) => {
                let extras = self.rows - complete;
                let skips_middle = self.values % 2 == 1 && extras.is_multiple_of(2) && extra >= extras / 2;
                (self.values - extras) / 2 + extra + u64::from(skips_middle)
            }
        };
        self.low + offset as i64
    }
}

impl Sequence {
    /// The value in row `row`, counted from 1.
    #[inline]
    fn at(&self, row: u64) -> i64 {
        if self.count == 0 {
            return self.first + self.step * (row - 1) as i64;
        }
        let distance = i128::from(self.step) * i128::from(row - 1);
        self.first + distance.rem_euclid(self.count) as i64
    }
}

/// Whether all values of such a column are certainly ASCII.
fn is_ascii(source: &ColumnSource, columns: &impl Columns) -> bool {
    let has_ascii = |value: &Literal| !matches!(value, Literal::Text(text) if !text.is_ascii());
    match source {
        ColumnSource::Text { alphabet, suffix, .. } => alphabet.is_ascii() && suffix.is_ascii(),
        ColumnSource::OneOf { values, .. } => values.iter().flatten().all(has_ascii),
        ColumnSource::Constant { value } => has_ascii(value),
        ColumnSource::ForeignKey { table, column, .. } => columns.foreign(table, column).0.is_ascii,
        ColumnSource::Parent { column } => columns.parent(column).is_ascii,
        ColumnSource::Words { words, .. } => words.iter().all(|word| word.is_ascii()),
        ColumnSource::Below { then, otherwise, .. } => {
            is_ascii(then, columns) && is_ascii(otherwise, columns)
        }
        _ => true,
    }
}

/// The seed of a column, from its name and the name of its table.
fn column_seed(seed: u64, table: &str, column: &str) -> u64 {
    let names = [table.as_bytes(), b"\0", column.as_bytes()].concat();
    let path: Vec<u64> = names
        .chunks(8)
        .map(|chunk| {
            let mut step = [0; 8];
            step[..chunk.len()].copy_from_slice(chunk);
            u64::from_be_bytes(step)
        })
        .collect();
    Rng::new(seed, &path).bits()
}

impl Source {
    fn new(source: &ColumnSource, rows: u64, columns: &impl Columns) -> Self {
        let from_zero = |distribution, span| Box::new(Keys::new(distribution, 0, span));
        match source {
            ColumnSource::Sequence { first, step, last } => {
                let count = last.map_or(0, |last| i128::from(last) - i128::from(*first) + 1);
                Source::Sequence(Sequence { first: *first, step: *step, count })
            }
            ColumnSource::Integer { low, high, distribution } => {
                let (keys, offset) = Keys::with_offset(distribution, *low, *high);
                Source::Integer(Box::new(keys), offset)
            }
            ColumnSource::Cycle { low, high, every } => Source::Cycle(*low, high.abs_diff(*low) + 1, *every),
            ColumnSource::Shuffle { low, high, of } => {
                Source::Shuffle(Shuffle { low: *low, values: high.abs_diff(*low) + 1, rows: *of })
            }
            ColumnSource::Parent { column } => Source::Parent(columns.parent(column)),
            ColumnSource::ChildNumber {} => Source::ChildNumber,
            ColumnSource::Below { column, bound, then, otherwise } => {
                let [then, otherwise] = [then, otherwise].map(|source| Source::new(source, rows, columns));
                Source::Below(Box::new((columns.sibling(column), *bound, then, otherwise)))
            }
            ColumnSource::Words { words, numbers } => {
                let digits = digit_count(Self::largest(numbers), words.len());
                Source::Words(words.as_slice().into(), Box::new(Source::new(numbers, rows, columns)), digits)
            }
            ColumnSource::Decimal { low, high, scale, distribution } => {
                let units = |bound: f64| (bound * 10f64.powi(*scale as i32)).round() as i64;
                let (low, high) = (units(*low), units(*high));
                Source::Decimal(from_zero(distribution, high.abs_diff(low)), low, *scale)
            }
            ColumnSource::Timestamp { from, to, digits, order, distribution } => {
                let unit = 10i64.pow(6 - digits);
                let units = |text: &str| valid_time(calendar::parse_instant(text)).div_euclid(unit);
                let (first, last) = (units(from), units(to));
                let span = last.abs_diff(first);
                let keys = (*order == TimeOrder::Random).then(|| from_zero(distribution, span));
                Source::Time(TimeSource { keys, first, span, rows, unit: Unit::Fraction(*digits) })
            }
            ColumnSource::Date { from, to, order, distribution } => {
                let (first, last) =
                    (valid_time(calendar::parse_day(from)), valid_time(calendar::parse_day(to)));
                let span = last.abs_diff(first);
                let keys = (*order == TimeOrder::Random).then(|| from_zero(distribution, span));
                Source::Time(TimeSource { keys, first, span, rows, unit: Unit::Day })
            }
            ColumnSource::Text { length, alphabet, word, suffix } => {
                Self::text(length.bounds(), alphabet, word.as_ref(), suffix)
            }
            ColumnSource::ForeignKey { table, column, distribution } => {
                let (column, rows, children) = columns.foreign(table, column);
                Source::Foreign(Box::new(Keys::new(distribution, 1, rows)), column, children)
            }
            ColumnSource::OneOf { values, weights } => {
                Source::OneOf(values.clone(), weights.as_deref().map(cumulative_weights))
            }
            ColumnSource::Constant { value } => Source::OneOf(vec![Some(value.clone())], None),
        }
    }

    fn text(
        (min_length, max_length): (u32, u32),
        alphabet: &str,
        word: Option<&TextWord>,
        suffix: &str,
    ) -> Self {
        let mut parts = [alphabet, suffix].into_iter().chain(word.map(|word| word.text.as_str()));
        Source::Text {
            strings: Strings::new(alphabet, min_length, max_length),
            is_plain: parts.all(encode::is_plain),
            word: word.cloned(),
            suffix: suffix.to_owned(),
        }
    }
}

fn valid_time(time: Option<i64>) -> i64 {
    time.expect("Plan::problems rejects invalid times")
}

impl TimeSource {
    #[inline]
    fn draw(&self, row: u64, rng: &mut Rng) -> i64 {
        let units = match &self.keys {
            Some(keys) => keys.draw(rng),
            None => {
                let steps = u128::from(self.rows - 1).max(1);
                (u128::from(self.span) * u128::from(row - 1) / steps) as u64
            }
        };
        self.first + units as i64
    }
}

impl Unit {
    /// Appends a time.
    fn write(self, at: i64, out: &mut Vec<u8>) {
        let Unit::Fraction(digits) = self else { return push_date(out, at) };
        let second = 10i64.pow(digits);
        let day_units = DAY_US / 1_000_000 * second;
        push_date(out, at.div_euclid(day_units));
        let time_of_day = at.rem_euclid(day_units);
        let (seconds, fraction) = ((time_of_day / second) as u32, time_of_day % second);
        for (before, part) in [(b' ', seconds / 3600), (b':', seconds / 60 % 60), (b':', seconds % 60)] {
            out.push(before);
            push_two_digits(out, part);
        }
        if digits > 0 {
            out.push(b'.');
            push_padded(out, fraction as u64, digits as usize);
        }
    }
}

fn push_date(out: &mut Vec<u8>, days: i64) {
    let (year, month, day) = civil_from_days(days);
    push_two_digits(out, (year / 100) as u32);
    push_two_digits(out, (year % 100) as u32);
    for part in [month, day] {
        out.push(b'-');
        push_two_digits(out, part);
    }
}

#[inline]
fn push_two_digits(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&[b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]);
}

#[inline]
fn push_integer(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a decimal number; `units` is the number times 10^`scale`.
#[inline]
fn push_decimal(out: &mut Vec<u8>, units: i64, scale: u32) {
    if scale == 0 {
        return push_integer(out, units);
    }
    if units < 0 {
        out.push(b'-');
    }
    let (units, one) = (units.unsigned_abs(), 10u64.pow(scale));
    out.extend_from_slice(itoa::Buffer::new().format(units / one).as_bytes());
    out.push(b'.');
    push_padded(out, units % one, scale as usize);
}

#[inline]
fn push_padded(out: &mut Vec<u8>, number: u64, digits: usize) {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(number).as_bytes();
    out.extend_from_slice(&b"000000000000000"[..digits - text.len()]);
    out.extend_from_slice(text);
}

fn push_literal(out: &mut Vec<u8>, encoding: Encoding, value: Option<&Literal>) {
    match value {
        None => encode::push_null(out, encoding),
        Some(Literal::Integer(number)) => push_integer(out, *number),
        Some(Literal::Number(number)) => out.extend_from_slice(number.to_string().as_bytes()),
        Some(Literal::Text(text)) => encode::push_text(out, encoding, text.as_bytes()),
    }
}
