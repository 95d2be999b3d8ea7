//! The known options and their values.
//!
//! Values are stored as text and converted when a caller requests a type. As in sysbench, an invalid number is reported
//! to the first caller that requests it.

use crate::option_definition::{Kind, OptionDefinition, Value};

use super::Compat;
use super::options::{self, SysbenchOption};

/// Why an option rejected a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetError {
    /// No option has that name.
    Unknown,
    /// A boolean that is neither on nor off.
    NotBool,
}

/// A value before it is converted to the type of the option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawValue {
    /// A value from the command line: the text after `=`, or `None` without `=`.
    Argument(Option<String>),
    /// Values from a line in an option file.
    FileValues(Vec<String>),
}

/// Integer options that accept the suffixes K, M, G and T. Options in seconds do not, because `10m` would be taken for
/// minutes; ports, percentages and seeds do not either.
const COUNTS: [&str; 16] = [
    "threads",
    "events",
    "rate",
    "num-threads",
    "max-requests",
    "tx-rate",
    "cpu-max-prime",
    "thread-yields",
    "thread-locks",
    "mutex-num",
    "mutex-locks",
    "mutex-loops",
    "file-num",
    "file-async-backlog",
    "file-fsync-freq",
    "file-merged-requests",
];
/// An integer option in sysbench; here it accepts a list.
const PERCENTILE: &str = "percentile";

/// An option with its value.
#[derive(Clone, Debug)]
struct StoredOption {
    definition: OptionDefinition,
    /// Empty if the option has no value.
    values: Vec<String>,
    /// Whether only this drop-in has the option. If so, scripts do not see it.
    is_extension: bool,
}

/// Options by name; `-` and `_` are equal in names.
#[derive(Clone, Debug)]
pub struct Registry {
    options: Vec<StoredOption>,
}

impl Registry {
    /// sysbench's own options and this drop-in's, with their defaults.
    pub fn new(compat: Compat) -> Self {
        let mut registry = Self { options: Vec::new() };
        options::all(compat).into_iter().for_each(|option| registry.add(definition(&option), false));
        options::EXTENSIONS.into_iter().for_each(|option| registry.add(definition(&option), true));
        registry
    }

    /// Adds an option with its default, or replaces the one with the same name.
    pub fn declare(&mut self, definition: OptionDefinition) {
        self.add(definition, false);
    }

    fn add(&mut self, definition: OptionDefinition, is_extension: bool) {
        let values = match (definition.kind, definition.default.as_deref()) {
            // As in sysbench, a boolean without a default is on.
            (Kind::Bool, default) => {
                parse_bool(default.unwrap_or("on")).map(str::to_owned).into_iter().collect()
            }
            (kind, default) => default.map_or_else(Vec::new, |text| split_values(kind, text)),
        };
        let option = StoredOption { definition, values, is_extension };
        match self.position(&option.definition.name) {
            Some(position) => self.options[position] = option,
            None => self.options.push(option),
        }
    }

    /// Whether the option exists only in this drop-in, not in sysbench or the test.
    pub fn is_extension(&self, name: &str) -> bool {
        self.position(name).is_some_and(|position| self.options[position].is_extension)
    }

    pub fn kind(&self, name: &str) -> Option<Kind> {
        self.position(name).map(|position| self.options[position].definition.kind)
    }

    /// Sets an option to the text after `=`; `None` means that there is no `=`.
    pub fn set(&mut self, name: &str, text: Option<&str>) -> Result<(), SetError> {
        let position = self.position(name).ok_or(SetError::Unknown)?;
        let option = &mut self.options[position];
        option.values = match (option.definition.kind, text) {
            (Kind::Bool, text) => vec![parse_bool(text.unwrap_or("on")).ok_or(SetError::NotBool)?.to_owned()],
            (_, None | Some("")) => Vec::new(),
            (Kind::Int, Some(text)) if option.definition.name == PERCENTILE => split_values(Kind::List, text),
            (kind, Some(text)) => split_values(kind, text),
        };
        Ok(())
    }

    pub fn assign(&mut self, name: &str, value: &RawValue) -> Result<(), SetError> {
        match value {
            RawValue::Argument(text) => self.set(name, text.as_deref()),
            RawValue::FileValues(values) => self.set_from_file(name, values),
        }
    }

    /// Sets an option from a line of an option file. A list takes all values, another type the first. A boolean is off if
    /// the first value means off or is missing.
    fn set_from_file(&mut self, name: &str, values: &[String]) -> Result<(), SetError> {
        let position = self.position(name).ok_or(SetError::Unknown)?;
        let option = &mut self.options[position];
        let kind = if option.definition.name == PERCENTILE { Kind::List } else { option.definition.kind };
        option.values = match (kind, values.first()) {
            (Kind::List, _) => values.to_vec(),
            (Kind::Bool, Some(value)) => vec![if means_off(value) { "off" } else { "on" }.to_owned()],
            (_, first) => first.filter(|value| !value.is_empty()).cloned().into_iter().collect(),
        };
        Ok(())
    }

    pub fn bool(&self, name: &str) -> bool {
        self.first_value(name) == Some("on")
    }

    /// A signed 32-bit number; 0 without a value. Counts may have a suffix.
    ///
    /// # Errors
    /// The value is not a number.
    pub fn int(&self, name: &str) -> Result<i32, String> {
        let Some(text) = self.first_value(name) else { return Ok(0) };
        let number = text.trim_start();
        let read = number.parse().ok().or_else(|| if is_count(name) { parse_count(number) } else { None });
        read.ok_or_else(|| format!("Invalid value for the '{name}' option: '{text}'"))
    }

    /// Bytes; 0 without a value.
    pub fn size(&self, name: &str) -> u64 {
        self.first_value(name).map_or(0, parse_size)
    }

    /// The longest prefix of the value that is a floating-point number; 0 if there is none.
    pub fn double(&self, name: &str) -> f64 {
        self.first_value(name).map_or(0.0, parse_double)
    }

    pub fn string(&self, name: &str) -> Option<&str> {
        self.first_value(name)
    }

    pub fn list(&self, name: &str) -> &[String] {
        self.position(name).map_or(&[], |position| &self.options[position].values)
    }

    /// All options that scripts see, with their values; names with underscores.
    ///
    /// # Errors
    /// An invalid number.
    pub fn values(&self) -> Result<Vec<(String, Value)>, String> {
        let visible =
            self.options.iter().filter(|option| option.definition.kind != Kind::File && !option.is_extension);
        visible
            .map(|option| {
                let name = &option.definition.name;
                let value = match option.definition.kind {
                    Kind::Bool => Value::Bool(self.bool(name)),
                    Kind::Int if name == PERCENTILE => Value::Int(self.percentile()?),
                    Kind::Int => Value::Int(self.int(name)?),
                    Kind::Size => Value::Size(self.size(name)),
                    Kind::Double => Value::Double(self.double(name)),
                    Kind::String | Kind::File => Value::String(self.string(name).map(Into::into)),
                    Kind::List => Value::List(option.values.clone()),
                };
                Ok((name.replace('-', "_"), value))
            })
            .collect()
    }

    /// The percentile that scripts get: truncated to an integer, but at least 1, because 0 disables percentiles.
    fn percentile(&self) -> Result<i32, String> {
        self.int(PERCENTILE).or_else(|error| {
            let number = self.first_value(PERCENTILE).and_then(|text| text.parse::<f64>().ok());
            let percent = number.filter(|percent| (0.0..=100.0).contains(percent));
            percent.map(|percent| (percent as i32).max(1)).ok_or(error)
        })
    }

    fn first_value(&self, name: &str) -> Option<&str> {
        self.list(name).first().map(String::as_str)
    }

    fn position(&self, name: &str) -> Option<usize> {
        let same = |a: u8, b: u8| a == b || matches!((a, b), (b'-' | b'_', b'-' | b'_'));
        self.options.iter().position(|option| {
            let known = option.definition.name.as_bytes();
            known.len() == name.len() && known.iter().zip(name.bytes()).all(|(&a, b)| same(a, b))
        })
    }
}

pub fn definition(option: &SysbenchOption) -> OptionDefinition {
    OptionDefinition::new(option.name, option.kind, option.default, option.help)
}

fn split_values(kind: Kind, text: &str) -> Vec<String> {
    match kind {
        Kind::List => text.split(',').filter(|item| !item.is_empty()).map(Into::into).collect(),
        _ if text.is_empty() => Vec::new(),
        _ => vec![text.into()],
    }
}

/// The value of a boolean as it is stored; `None` if the text is not a boolean.
pub fn parse_bool(text: &str) -> Option<&'static str> {
    match text {
        "on" | "true" | "1" => Some("on"),
        "off" | "false" | "0" => Some("off"),
        _ => None,
    }
}

/// Whether a value in an option file means off. In sysbench, every value means on.
fn means_off(value: &str) -> bool {
    ["off", "false", "0", "no"].contains(&value)
}

/// Parses digits and an optional suffix K, M, G or T (powers of 1024). Text after the suffix is ignored; an invalid
/// size is 0.
fn parse_size(text: &str) -> u64 {
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

/// The power of 1024 that a suffix means: K, M, G or T, optionally followed by `B` or `iB`.
fn suffix_power(suffix: &str) -> Option<u32> {
    let suffix = suffix.to_ascii_lowercase();
    let unit = suffix.strip_suffix("ib").or(suffix.strip_suffix('b')).unwrap_or(&suffix);
    Some("kmgt".find(unit).filter(|_| unit.len() == 1)? as u32 + 1)
}

fn is_count(name: &str) -> bool {
    COUNTS.contains(&name.replace('_', "-").as_str())
}

/// Parses digits and an optional suffix; `None` if the text is invalid or the number exceeds 32 bits.
fn parse_count(text: &str) -> Option<i32> {
    let (digits, suffix) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit())?);
    let number = digits.parse::<i64>().ok()?.checked_mul(1 << (10 * suffix_power(suffix)?))?;
    number.try_into().ok()
}

/// Parses a number like strtod, but accepts the suffix of a size: `1M` rows are 1,048,576, not 1.
fn parse_double(text: &str) -> f64 {
    let text = text.trim_start();
    let longest = (1..=text.len())
        .rev()
        .filter(|&end| text.is_char_boundary(end))
        .find_map(|end| text[..end].parse::<f64>().ok().map(|number| (number, end)));
    let Some((number, end)) = longest else { return 0.0 };
    number * 1024f64.powi(suffix_power(&text[end..]).unwrap_or(0) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyphens_and_underscores_are_the_same() {
        let mut registry = Registry::new(Compat::V1_0);
        registry.set("report_interval", Some("7")).unwrap();
        assert_eq!(registry.int("report-interval"), Ok(7));
        assert_eq!(registry.set("report interval", Some("7")), Err(SetError::Unknown));
    }

    #[test]
    fn numbers_are_parsed_on_request() {
        let mut registry = Registry::new(Compat::V1_0);
        for (given, read) in [("+5", Some(5)), (" 5", Some(5)), ("-3", Some(-3)), ("", Some(0))] {
            registry.set("threads", Some(given)).unwrap();
            assert_eq!(registry.int("threads").ok(), read, "{given}");
        }
        for given in ["abc", "1.5", "10s", "5 ", "99999999999"] {
            registry.set("threads", Some(given)).unwrap();
            let message = format!("Invalid value for the 'threads' option: '{given}'");
            assert_eq!(registry.int("threads"), Err(message));
        }
    }

    #[test]
    fn sizes_have_suffixes() {
        let read = ["16384", "64K", "16KB", "16kib", "2g", "1T", "5x", "-1", ""].map(parse_size);
        assert_eq!(read, [16384, 65536, 16384, 16384, 2 << 30, 1 << 40, 0, 0, 0]);
        assert_eq!(parse_size("99999999999999999999"), 0, "more than 64 bits");
        assert_eq!(parse_size("9999999999T"), u64::MAX);
    }

    #[test]
    fn doubles_accept_a_suffix_and_ignore_trailing_text() {
        let read = ["1000", "0.5", "1M", "2k", "1e3", "3abc", "abc", "1MB", "2kib", "1mm"].map(parse_double);
        assert_eq!(read, [1000.0, 0.5, 1_048_576.0, 2048.0, 1000.0, 3.0, 0.0, 1_048_576.0, 2048.0, 1.0]);
    }

    #[test]
    fn counts_accept_a_suffix_and_seconds_do_not() {
        let mut registry = Registry::new(Compat::V1_0);
        let mut read = |name: &str, text: &str| {
            registry.set(name, Some(text)).unwrap();
            registry.int(name).ok()
        };
        let events = ["1k", "2M", "1KiB", "7", "2G", "k", "1x", "-1k", "1é", "9999999999999999T"];
        let numbers = [Some(1024), Some(2 << 20), Some(1024), Some(7), None, None, None, None, None, None];
        assert_eq!(events.map(|text| read("events", text)), numbers);
        assert_eq!(read("max_requests", "1k"), Some(1024));
        assert_eq!(
            (read("time", "10m"), read("report-interval", "1k"), read("rand-seed", "1k")),
            (None, None, None)
        );
    }

    #[test]
    fn scripts_see_integer_percentiles() {
        let known = |given: &str| {
            let mut registry = Registry::new(Compat::V1_0);
            registry.set("percentile", Some(given)).unwrap();
            let values = registry.values()?;
            Ok::<_, String>(values.into_iter().find(|(name, _)| name == "percentile").unwrap().1)
        };
        for (given, read) in
            [("95", 95), ("99.9", 99), ("99.9,50", 99), ("50,99.9", 50), ("0.5", 1), ("0", 0)]
        {
            assert_eq!(known(given), Ok(Value::Int(read)), "{given}");
        }
        let message = "Invalid value for the 'percentile' option: 'many'";
        assert_eq!(known("many"), Err(message.into()));
    }

    #[test]
    fn booleans_and_lists() {
        let mut registry = Registry::new(Compat::V1_0);
        for (given, on) in [(None, true), (Some("0"), false), (Some("true"), true), (Some("off"), false)] {
            registry.set("histogram", given).unwrap();
            assert_eq!(registry.bool("histogram"), on, "{given:?}");
        }
        assert_eq!(registry.set("histogram", Some("yes")), Err(SetError::NotBool));
        registry.set("mysql-host", Some("a,,b")).unwrap();
        assert_eq!(registry.list("mysql-host"), ["a", "b"]);
        registry.set("mysql-host", Some("")).unwrap();
        assert!(registry.list("mysql-host").is_empty());
    }

    #[test]
    fn values_of_an_option_file() {
        let mut registry = Registry::new(Compat::V1_0);
        let mut give = |name: &str, words: &[&str]| {
            let words = words.iter().map(|&word| word.to_owned()).collect();
            registry.assign(name, &RawValue::FileValues(words)).unwrap();
            registry.list(name).to_vec()
        };
        assert_eq!(give("threads", &["2", "4"]), ["2"]);
        assert_eq!(give("mysql-user", &["a,b"]), ["a,b"]);
        assert_eq!(give("mysql-user", &[]), [""; 0]);
        assert_eq!(give("mysql-host", &["a,b", "c"]), ["a,b", "c"]);
        assert_eq!(give("percentile", &["50", "99"]), ["50", "99"]);
        for (word, value) in [("yes", "on"), ("on", "on"), ("off", "off"), ("no", "off"), ("0", "off")] {
            assert_eq!(give("histogram", &[word]), [value], "{word}");
        }
        assert_eq!(give("histogram", &[]), [""; 0]);
    }

    #[test]
    fn declared_booleans_have_the_defaults_of_sysbench() {
        for (default, on) in [
            (None, true),
            (Some("true"), true),
            (Some("1"), true),
            (Some("on"), true),
            (Some("off"), false),
            (Some("0"), false),
        ] {
            let mut registry = Registry::new(Compat::V1_0);
            registry.declare(OptionDefinition::new("flag", Kind::Bool, default, ""));
            assert_eq!(registry.bool("flag"), on, "{default:?}");
            registry.set("flag", Some("off")).unwrap();
            assert!(!registry.bool("flag"));
        }
    }

    #[test]
    fn redeclared_options_get_the_new_default() {
        let mut registry = Registry::new(Compat::V1_0);
        registry.set("threads", Some("8")).unwrap();
        registry.declare(OptionDefinition::new("threads", Kind::Int, Some("3"), ""));
        assert_eq!(registry.int("threads"), Ok(3));
        assert_eq!(registry.values().unwrap().iter().filter(|(name, _)| name == "threads").count(), 1);
    }
}
