//! The options that are known, and their values as they were given.
//!
//! Values are kept as text and read by type when somebody asks: a number that is none is a fault of whoever asks for it
//! first, as in sysbench.

use dbdyno_door::option::{Declared, Kind, Value};

use super::Compat;
use super::options::{self, Row};

/// A line for standard error; the exit code is 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage(pub String);

/// Why a value was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untaken {
    /// No option of that name.
    Unknown,
    /// It is neither on nor off.
    NotBool,
}

#[derive(Clone, Debug)]
struct Entry {
    declared: Declared,
    /// Empty for no value.
    values: Vec<String>,
    /// sysbench does not know it, and its scripts are told nothing of it.
    ours: bool,
}

/// Options by name; `-` and `_` are the same in a name.
#[derive(Clone, Debug)]
pub struct Registry {
    entries: Vec<Entry>,
}

impl Registry {
    /// sysbench's own options and ours, with their defaults.
    pub fn new(compat: Compat) -> Self {
        let mut registry = Self { entries: Vec::new() };
        options::all(compat).into_iter().for_each(|row| registry.add(declared(&row), false));
        options::OURS.into_iter().for_each(|row| registry.add(declared(&row), true));
        registry
    }

    /// Adds an option with its default; one of the same name is replaced.
    pub fn declare(&mut self, declared: Declared) {
        self.add(declared, false);
    }

    fn add(&mut self, declared: Declared, ours: bool) {
        let values = declared.default.as_deref().map_or_else(Vec::new, |text| split(declared.kind, text));
        let entry = Entry { declared, values, ours };
        match self.position(&entry.declared.name) {
            Some(position) => self.entries[position] = entry,
            None => self.entries.push(entry),
        }
    }

    /// Whether that name is an option of ours that sysbench does not know, and the test neither.
    pub fn is_ours(&self, name: &str) -> bool {
        self.position(name).is_some_and(|position| self.entries[position].ours)
    }

    /// Type of an option.
    pub fn kind(&self, name: &str) -> Option<Kind> {
        self.position(name).map(|position| self.entries[position].declared.kind)
    }

    /// Gives an option a value: what stands after `=`, or `None` for the name alone.
    ///
    /// # Errors
    /// The option is not known, or the value of a boolean is none.
    pub fn set(&mut self, name: &str, text: Option<&str>) -> Result<(), Untaken> {
        let position = self.position(name).ok_or(Untaken::Unknown)?;
        let entry = &mut self.entries[position];
        entry.values = match (entry.declared.kind, text) {
            (Kind::Bool, text) => vec![switch(text.unwrap_or("on")).ok_or(Untaken::NotBool)?.to_owned()],
            (_, None | Some("")) => Vec::new(),
            // A list where sysbench takes one number.
            (Kind::Int, Some(text)) if entry.declared.name == "percentile" => split(Kind::List, text),
            (kind, Some(text)) => split(kind, text),
        };
        Ok(())
    }

    /// Whether it is on.
    pub fn bool(&self, name: &str) -> bool {
        self.first(name) == Some("on")
    }

    /// A signed 32-bit number; 0 without a value.
    ///
    /// # Errors
    /// The value is no such number.
    pub fn int(&self, name: &str) -> Result<i32, Usage> {
        let Some(text) = self.first(name) else { return Ok(0) };
        text.trim_start()
            .parse()
            .map_err(|_| Usage(format!("Invalid value for the '{name}' option: '{text}'")))
    }

    /// Bytes; 0 without a value.
    pub fn size(&self, name: &str) -> u64 {
        self.first(name).map_or(0, size)
    }

    /// A floating-point number: the longest beginning that is one; 0 without.
    pub fn double(&self, name: &str) -> f64 {
        self.first(name).map_or(0.0, double)
    }

    /// A string, where there is one.
    pub fn string(&self, name: &str) -> Option<&str> {
        self.first(name)
    }

    /// All values.
    pub fn list(&self, name: &str) -> &[String] {
        self.position(name).map_or(&[], |position| &self.entries[position].values)
    }

    /// Every option with its value, names in underscore form; files and options of ours are left out.
    ///
    /// # Errors
    /// A number is none.
    pub fn values(&self) -> Result<Vec<(String, Value)>, Usage> {
        let listed = self.entries.iter().filter(|entry| entry.declared.kind != Kind::File && !entry.ours);
        listed
            .map(|entry| {
                let name = &entry.declared.name;
                let value = match entry.declared.kind {
                    Kind::Bool => Value::Bool(self.bool(name)),
                    Kind::Int => Value::Int(self.int(name)?),
                    Kind::Size => Value::Size(self.size(name)),
                    Kind::Double => Value::Double(self.double(name)),
                    Kind::String | Kind::File => Value::String(self.string(name).map(Into::into)),
                    Kind::List => Value::List(entry.values.clone()),
                };
                Ok((name.replace('-', "_"), value))
            })
            .collect()
    }

    fn first(&self, name: &str) -> Option<&str> {
        self.list(name).first().map(String::as_str)
    }

    fn position(&self, name: &str) -> Option<usize> {
        let same = |a: u8, b: u8| a == b || matches!((a, b), (b'-' | b'_', b'-' | b'_'));
        self.entries.iter().position(|entry| {
            let known = entry.declared.name.as_bytes();
            known.len() == name.len() && known.iter().zip(name.bytes()).all(|(&a, b)| same(a, b))
        })
    }
}

/// An option of the tables as something declared.
pub fn declared(row: &Row) -> Declared {
    Declared::new(row.name, row.kind, row.default, row.help)
}

fn split(kind: Kind, text: &str) -> Vec<String> {
    match kind {
        Kind::List => text.split(',').filter(|item| !item.is_empty()).map(Into::into).collect(),
        _ if text.is_empty() => Vec::new(),
        _ => vec![text.into()],
    }
}

fn switch(text: &str) -> Option<&'static str> {
    match text {
        "on" | "true" | "1" => Some("on"),
        "off" | "false" | "0" => Some("off"),
        _ => None,
    }
}

/// Digits and one suffix of 1024's powers; what follows the suffix does not count, and what is no size is 0.
fn size(text: &str) -> u64 {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let Ok(number) = text[..digits].parse::<u64>() else { return 0 };
    let power = match text[digits..].bytes().next().map(|suffix| suffix.to_ascii_lowercase()) {
        None => 0,
        Some(b'k') => 1,
        Some(b'm') => 2,
        Some(b'g') => 3,
        Some(b't') => 4,
        Some(_) => return 0,
    };
    number.saturating_mul(1 << (10 * power))
}

/// As strtod reads it, with a size's suffix beside: `1M` rows are a million and some, not one.
fn double(text: &str) -> f64 {
    let text = text.trim_start();
    let longest = (1..=text.len())
        .rev()
        .filter(|&end| text.is_char_boundary(end))
        .find_map(|end| text[..end].parse::<f64>().ok().map(|number| (number, end)));
    let Some((number, end)) = longest else { return 0.0 };
    let rest = &text[end..];
    let power = match rest.as_bytes() {
        [suffix] => "kmgt".find(suffix.to_ascii_lowercase() as char).map_or(0, |position| position + 1),
        _ => 0,
    };
    number * 1024f64.powi(power as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyphens_and_underscores_are_the_same() {
        let mut registry = Registry::new(Compat::V10);
        registry.set("report_interval", Some("7")).unwrap();
        assert_eq!(registry.int("report-interval"), Ok(7));
        assert_eq!(registry.set("report interval", Some("7")), Err(Untaken::Unknown));
    }

    #[test]
    fn numbers_are_read_when_asked_for() {
        let mut registry = Registry::new(Compat::V10);
        for (given, read) in [("+5", Some(5)), (" 5", Some(5)), ("-3", Some(-3)), ("", Some(0))] {
            registry.set("threads", Some(given)).unwrap();
            assert_eq!(registry.int("threads").ok(), read, "{given}");
        }
        for given in ["abc", "1.5", "10s", "5 ", "99999999999"] {
            registry.set("threads", Some(given)).unwrap();
            let said = format!("Invalid value for the 'threads' option: '{given}'");
            assert_eq!(registry.int("threads"), Err(Usage(said)));
        }
    }

    #[test]
    fn sizes_have_suffixes() {
        let read = ["16384", "64K", "16KB", "16kib", "2g", "1T", "5x", "-1", ""].map(size);
        assert_eq!(read, [16384, 65536, 16384, 16384, 2 << 30, 1 << 40, 0, 0, 0]);
        assert_eq!(size("99999999999999999999"), 0, "more than 64 bits");
        assert_eq!(size("9999999999T"), u64::MAX);
    }

    #[test]
    fn doubles_take_a_suffix_and_leave_junk() {
        let read = ["1000", "0.5", "1M", "2k", "1e3", "3abc", "abc", "1MB"].map(double);
        assert_eq!(read, [1000.0, 0.5, 1_048_576.0, 2048.0, 1000.0, 3.0, 0.0, 1.0]);
    }

    #[test]
    fn booleans_and_lists() {
        let mut registry = Registry::new(Compat::V10);
        for (given, on) in [(None, true), (Some("0"), false), (Some("true"), true), (Some("off"), false)] {
            registry.set("histogram", given).unwrap();
            assert_eq!(registry.bool("histogram"), on, "{given:?}");
        }
        assert_eq!(registry.set("histogram", Some("yes")), Err(Untaken::NotBool));
        registry.set("mysql-host", Some("a,,b")).unwrap();
        assert_eq!(registry.list("mysql-host"), ["a", "b"]);
        registry.set("mysql-host", Some("")).unwrap();
        assert!(registry.list("mysql-host").is_empty());
    }

    #[test]
    fn what_is_declared_again_begins_anew() {
        let mut registry = Registry::new(Compat::V10);
        registry.set("threads", Some("8")).unwrap();
        registry.declare(Declared::new("threads", Kind::Int, Some("3"), ""));
        assert_eq!(registry.int("threads"), Ok(3));
        assert_eq!(registry.values().unwrap().iter().filter(|(name, _)| name == "threads").count(), 1);
    }
}
