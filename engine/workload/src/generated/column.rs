//! The values of one column. Each value depends only on the seed and the row number.

use std::sync::Arc;

use dbdyno_random::Rng;
use dbdyno_random::alphabet::Strings;
use dbdyno_random::key::Keys;
use dbdyno_schema::calendar::{self, DAY_US, civil_from_days};
use dbdyno_schema::plan::{ColumnSource, GeneratedColumn, Literal, TimeOrder};

use super::encode::{self, Encoding};
use crate::sql::source::{cumulative_weights, draw_weighted};

/// A column with a generator for its values.
#[derive(Clone, Debug)]
pub(super) struct Column {
    /// Seed of the column's random streams.
    seed: u64,
    nulls: f64,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Sequence(Sequence),
    /// Distribution of the offset from the minimum, and the minimum.
    Integer(Box<Keys>, i64),
    /// As `Integer`, in units of the last decimal place; the third field is the number of decimal places.
    Decimal(Box<Keys>, i64, u32),
    Time(TimeSource),
    /// The strings, and whether they need no escapes.
    Text(Strings, bool),
    /// The value of the referenced column in a random row of its table.
    Foreign(Box<Keys>, Arc<Column>),
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
    /// A column of the table with the name and number of rows in `table`. `parent` returns the column that a foreign
    /// key references, and the number of rows in that column's table.
    pub(super) fn new(
        plan_seed: u64,
        table: (&str, u64),
        column: &GeneratedColumn,
        parent: impl Fn(&str, &str) -> (Arc<Column>, u64),
    ) -> Self {
        Self {
            seed: column_seed(plan_seed, table.0, &column.name),
            nulls: column.nulls,
            source: Source::new(&column.values, table.1, parent),
        }
    }

    /// Appends the value in row `row`, counted from 1.
    #[inline]
    pub(super) fn write(&self, row: u64, out: &mut Vec<u8>, encoding: Encoding) {
        if let (Source::Sequence(sequence), 0.0) = (&self.source, self.nulls) {
            return push_integer(out, sequence.at(row));
        }
        let mut rng = Rng::new(self.seed, &[row]);
        if self.nulls > 0.0 && rng.unit() < self.nulls {
            return encode::push_null(out, encoding);
        }
        match &self.source {
            Source::Sequence(sequence) => push_integer(out, sequence.at(row)),
            Source::Integer(keys, low) => push_integer(out, low.wrapping_add(keys.draw(&mut rng) as i64)),
            Source::Decimal(keys, low, scale) => push_decimal(out, low + keys.draw(&mut rng) as i64, *scale),
            Source::Time(times) => {
                let at = times.draw(row, &mut rng);
                encode::push_plain(out, encoding, |out| times.unit.write(at, out));
            }
            Source::Text(strings, true) => {
                encode::push_plain(out, encoding, |out| strings.write(&mut rng, out));
            }
            Source::Text(strings, false) => {
                let mut text = Vec::new();
                strings.write(&mut rng, &mut text);
                encode::push_text(out, encoding, &text);
            }
            Source::Foreign(keys, column) => column.write(keys.draw(&mut rng), out, encoding),
            Source::OneOf(values, weights) => {
                let index = match weights {
                    _ if values.len() == 1 => 0,
                    None => rng.below(values.len() as u64) as usize,
                    Some(weights) => draw_weighted(weights, &mut rng),
                };
                push_literal(out, encoding, values[index].as_ref());
            }
        }
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
pub(super) fn is_ascii(source: &ColumnSource) -> bool {
    let has_ascii = |value: &Literal| !matches!(value, Literal::Text(text) if !text.is_ascii());
    match source {
        ColumnSource::Text { alphabet, .. } => alphabet.is_ascii(),
        ColumnSource::OneOf { values, .. } => values.iter().flatten().all(has_ascii),
        ColumnSource::Constant { value } => has_ascii(value),
        ColumnSource::ForeignKey { .. } => false, // The values depend on the parent column.
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
    fn new(source: &ColumnSource, rows: u64, parent: impl Fn(&str, &str) -> (Arc<Column>, u64)) -> Self {
        let from_zero = |distribution, span| Box::new(Keys::new(distribution, 0, span));
        match source {
            ColumnSource::Sequence { first, step, last } => {
                let count = last.map_or(0, |last| i128::from(last) - i128::from(*first) + 1);
                Source::Sequence(Sequence { first: *first, step: *step, count })
            }
            ColumnSource::Integer { low, high, distribution } => {
                Source::Integer(from_zero(distribution, high.abs_diff(*low)), *low)
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
            ColumnSource::Text { length, alphabet } => {
                let (low, high) = length.bounds();
                Source::Text(Strings::new(alphabet, low, high), encode::is_plain(alphabet))
            }
            ColumnSource::ForeignKey { table, column, distribution } => {
                let (column, rows) = parent(table, column);
                Source::Foreign(Box::new(Keys::new(distribution, 1, rows)), column)
            }
            ColumnSource::OneOf { values, weights } => {
                Source::OneOf(values.clone(), weights.as_deref().map(cumulative_weights))
            }
            ColumnSource::Constant { value } => Source::OneOf(vec![Some(value.clone())], None),
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
