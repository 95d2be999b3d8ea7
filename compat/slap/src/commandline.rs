//! Parses the command line as MySQL's clients do: combined short options, values after a letter, `=` or a space, and the
//! prefixes `--skip-` and `--loose-`. MariaDB's client also accepts abbreviated option names.

use std::collections::BTreeMap;

use super::options::{self, Kind, OptionDefinition};
use super::{Flavour, UsageError};

// Exit codes of both clients.
const UNKNOWN_OPTION: u8 = 2;
const AMBIGUOUS: u8 = 3;
const TAKES_NO_VALUE: u8 = 4;
const REQUIRES_VALUE: u8 = 5;
const UNKNOWN_VARIABLE: u8 = 7;
const INVALID_NUMBER: u8 = 9;
const NEGATIVE: u8 = 13;

#[derive(Clone, Debug)]
pub struct OptionValues {
    pub flavour: Flavour,
    /// The program's name in messages.
    pub program: String,
    pub verbose: u32,
    /// Warnings for standard error.
    pub notes: Vec<String>,
    texts: BTreeMap<&'static str, Option<String>>,
    numbers: BTreeMap<&'static str, u64>,
    flags: BTreeMap<&'static str, bool>,
}

impl OptionValues {
    /// The text of an option; `None` if the option or its text is missing.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name)?.as_deref()
    }

    /// Whether the option is present, with or without a text.
    pub fn has(&self, name: &str) -> bool {
        self.texts.contains_key(name)
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.numbers.get(name).copied()
    }

    /// The value of a flag; `None` if the flag is missing.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.flags.get(name).copied()
    }

    pub fn is_on(&self, name: &str) -> bool {
        self.flag(name).unwrap_or(false)
    }
}

/// Parses the arguments from the option files, then those of the command line; later arguments override earlier ones.
///
/// # Errors
/// An unknown option or an invalid value.
pub fn read(flavour: Flavour, program: &str, arguments: &[String]) -> Result<OptionValues, UsageError> {
    let mut values = OptionValues {
        flavour,
        program: program.to_owned(),
        verbose: 0,
        notes: Vec::new(),
        texts: BTreeMap::new(),
        numbers: BTreeMap::new(),
        flags: BTreeMap::new(),
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            break;
        } else if let Some(long) = argument.strip_prefix("--") {
            values.read_long(long, &mut rest)?;
        } else if let Some(letters) = argument.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            values.read_letters(letters, &mut rest)?;
        }
        // Like MySQL's clients, ignore arguments that are not options.
    }
    Ok(values)
}

/// The client to emulate, from `--compat` or, without this option, from the program's name.
///
/// # Errors
/// An unknown client.
pub fn flavour(program: &str, arguments: &[String]) -> Result<Flavour, UsageError> {
    let compat = arguments.iter().rev().find_map(|argument| argument.strip_prefix("--compat="));
    match compat {
        None if program.contains("mariadb") => Ok(Flavour::Mariadb),
        None | Some("mysql") => Ok(Flavour::Mysql),
        Some("mariadb") => Ok(Flavour::Mariadb),
        Some(other) => {
            Err(UsageError::new(format!("{program}: --compat is '{other}'; it must be mysql or mariadb")))
        }
    }
}

/// Where the password begins in an argument such as `-pSECRET`; letters of options without a value may precede the `p`.
pub fn position_of_password(argument: &[u8]) -> Option<usize> {
    for (index, &letter) in argument.strip_prefix(b"-")?.iter().enumerate() {
        let mut options = options::all(Flavour::Mysql).chain(options::all(Flavour::Mariadb));
        let option = options.find(|option| option.letter == Some(letter.into()))?;
        if option.name == "password" {
            return Some(index + 2);
        }
        if !matches!(option.kind, Kind::Flag | Kind::Count) {
            return None;
        }
    }
    None
}

/// Prefixes of flags, each with the value that it gives to the flag.
const PREFIXES: [(&str, bool); 3] = [("skip-", false), ("disable-", false), ("enable-", true)];

impl OptionValues {
    /// Reads an option in the long form, without its `--`.
    fn read_long<'a>(
        &mut self,
        long: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), UsageError> {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let normalized = name.replace('_', "-");
        let loose_name = normalized.strip_prefix("loose-");
        let full_name = loose_name.unwrap_or(&normalized);
        if let Some(option) = self.find(full_name)? {
            return self.read_value(option, &format!("--{name}"), value, rest);
        }
        for (prefix, on) in PREFIXES {
            let option = full_name.strip_prefix(prefix).and_then(|name| options::find(name, self.flavour));
            if let Some(option) = option.filter(|option| option.kind == Kind::Flag) {
                self.flags.insert(option.name, on);
                return Ok(());
            }
        }
        let (kind, argument, code) = match value {
            Some(_) => ("variable", format!("'{long}'"), UNKNOWN_VARIABLE),
            None => ("option", format!("'--{long}'"), UNKNOWN_OPTION),
        };
        if loose_name.is_some() {
            let note = match self.flavour {
                Flavour::Mariadb => format!("Warning: {}: unknown {kind} {argument}", self.program),
                Flavour::Mysql => format!("{}: [Warning] unknown {kind} {argument}.", self.program),
            };
            self.notes.push(note);
            return Ok(());
        }
        Err(self.error(&format!("unknown {kind} {argument}"), code))
    }

    /// Finds an option by name; MariaDB's client also accepts a unique prefix.
    fn find(&mut self, name: &str) -> Result<Option<&'static OptionDefinition>, UsageError> {
        if let Some(option) = options::find(name, self.flavour) {
            return Ok(Some(option));
        }
        if self.flavour == Flavour::Mysql || name.is_empty() {
            return Ok(None);
        }
        let options: Vec<_> =
            options::all(self.flavour).filter(|option| option.name.starts_with(name)).collect();
        match options[..] {
            [] => Ok(None),
            [option] => {
                self.notes.push(format!(
                    "Info: Using unique option prefix '{name}' is error-prone and can break in the future. Please use \
                     the full name '{}' instead.",
                    option.name
                ));
                Ok(Some(option))
            }
            [first, second, ..] => {
                let names = format!("{}, {}", first.name, second.name);
                Err(self.error(&format!("ambiguous option '--{name}' ({names})"), AMBIGUOUS))
            }
        }
    }

    /// Reads options in the short form, without their `-`.
    fn read_letters<'a>(
        &mut self,
        letters: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), UsageError> {
        for (index, letter) in letters.char_indices() {
            let Some(option) = options::all(self.flavour).find(|option| option.letter == Some(letter)) else {
                return Err(self.error(&format!("unknown option '-{letter}'"), UNKNOWN_OPTION));
            };
            let name = format!("-{letter}");
            if !matches!(option.kind, Kind::Flag | Kind::Count) {
                let value = Some(&letters[index + letter.len_utf8()..]).filter(|text| !text.is_empty());
                return self.read_value(option, &name, value, rest);
            }
            self.read_value(option, &name, None, rest)?;
        }
        Ok(())
    }

    /// Reads the value of `option`. `name` is the option as the user wrote it.
    fn read_value<'a>(
        &mut self,
        option: &'static OptionDefinition,
        name: &str,
        value: Option<&str>,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), UsageError> {
        let missing_value = self.error(&format!("option '{name}' requires an argument"), REQUIRES_VALUE);
        let mut required_value =
            || value.map(str::to_owned).or_else(|| rest.next().cloned()).ok_or_else(|| missing_value.clone());
        match option.kind {
            Kind::Flag => self.set_flag(option, name, value),
            Kind::Count if value.is_some() => {
                return Err(self.error(&format!("option '{name}' cannot take an argument"), TAKES_NO_VALUE));
            }
            Kind::Count => self.verbose += 1,
            Kind::OptionalText => {
                self.texts.insert(option.name, value.map(str::to_owned));
            }
            Kind::Text => {
                self.texts.insert(option.name, Some(required_value()?));
            }
            Kind::Number(min) => {
                let number = self.parse_number(option.name, &required_value()?)?;
                if number < min && self.flavour == Flavour::Mysql {
                    self.notes.push(format!(
                        "{}: [Warning] option '{}': unsigned value {number} adjusted to {min}.",
                        self.program, option.name
                    ));
                }
                self.numbers.insert(option.name, number.max(min));
            }
        }
        Ok(())
    }

    fn set_flag(&mut self, option: &'static OptionDefinition, name: &str, value: Option<&str>) {
        let on = match value.map(str::to_ascii_lowercase).as_deref() {
            None | Some("1" | "on" | "true") => true,
            Some("0" | "off" | "false") => false,
            Some(_) => {
                let warning =
                    format!("ignoring option '{name}' due to invalid value '{}'", value.unwrap_or_default());
                self.notes.push(match self.flavour {
                    Flavour::Mariadb => format!("Warning: {}: {warning}", self.program),
                    Flavour::Mysql => format!("{}: [Warning] {}: {warning}.", self.program, self.program),
                });
                return;
            }
        };
        self.flags.insert(option.name, on);
    }

    fn parse_number(&self, name: &str, text: &str) -> Result<u64, UsageError> {
        let is_negative = text.trim_start().starts_with('-');
        let digits = text.trim_start_matches('-');
        let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
        let suffix = &digits[end..];
        let power = match suffix.to_ascii_uppercase().as_str() {
            "" => Some(0),
            letter => ["K", "M", "G", "T", "P", "E"]
                .iter()
                .position(|known| *known == letter)
                .map(|index| index + 1),
        };
        let invalid_value = |first_line: String, code| {
            let second_line = format!("Error while setting value '{text}' to '{name}'");
            let UsageError { text: second_line, .. } = self.error(&second_line, code);
            UsageError { text: format!("{first_line}\n{second_line}"), code }
        };
        if is_negative && self.flavour == Flavour::Mariadb {
            return Err(invalid_value(format!("Incorrect unsigned value: '{text}' for {name}"), NEGATIVE));
        }
        if is_negative {
            return Ok(0);
        }
        let Some(power) = power else {
            let letter = suffix.chars().next().unwrap_or_default();
            let message = format!("Unknown suffix '{letter}' used for variable '{name}' (value '{text}').");
            return Err(invalid_value(
                match self.flavour {
                    Flavour::Mariadb => format!("{message} Legal suffix characters are: K, M, G, T, P, E"),
                    Flavour::Mysql => format!("{}: [ERROR] {message}", self.program),
                },
                INVALID_NUMBER,
            ));
        };
        let number = digits[..end].parse::<u64>().unwrap_or(if end == 0 { 0 } else { u64::MAX });
        Ok(number.saturating_mul(1u64 << (10 * power)))
    }

    /// An error in the format of the emulated client.
    fn error(&self, text: &str, code: u8) -> UsageError {
        let program = &self.program;
        let is_about_value = [REQUIRES_VALUE, TAKES_NO_VALUE, INVALID_NUMBER].contains(&code);
        let text = match self.flavour {
            Flavour::Mariadb => format!("{program}: {text}"),
            Flavour::Mysql
                if is_about_value || text.starts_with("unknown option '-") && !text.contains("'--") =>
            {
                format!("{program}: [ERROR] {program}: {text}.")
            }
            Flavour::Mysql => format!("{program}: [ERROR] {text}."),
        };
        UsageError { text, code }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(flavour: Flavour, line: &str) -> Result<OptionValues, UsageError> {
        let arguments: Vec<_> = line.split_whitespace().map(Into::into).collect();
        read(flavour, "slap", &arguments)
    }

    fn usage_error(flavour: Flavour, line: &str) -> (String, u8) {
        let error = parse(flavour, line).unwrap_err();
        (error.text, error.code)
    }

    #[test]
    fn values_follow_letters_equal_signs_and_spaces() {
        let read = parse(Flavour::Mysql, "-avvc 5 -i2 --engine=a,b -uroot -psecret --number-of_queries 3k x")
            .unwrap();
        assert!(read.is_on("auto-generate-sql"));
        assert_eq!(
            (read.verbose, read.text("concurrency"), read.number("iterations")),
            (2, Some("5"), Some(2))
        );
        assert_eq!((read.text("user"), read.text("password")), (Some("root"), Some("secret")));
        assert_eq!((read.text("engine"), read.number("number-of-queries")), (Some("a,b"), Some(3072)));
        let read = parse(Flavour::Mysql, "-p --csv --skip-no-drop --silent=off").unwrap();
        assert!(read.has("password") && read.text("password").is_none());
        assert!(read.has("csv") && !read.is_on("no-drop") && !read.is_on("silent"));
    }

    #[test]
    fn errors_are_those_of_the_emulated_client() {
        let both = |line| (usage_error(Flavour::Mysql, line), usage_error(Flavour::Mariadb, line));
        let (mysql, mariadb) = both("--foo");
        assert_eq!(mysql, ("slap: [ERROR] unknown option '--foo'.".into(), 2));
        assert_eq!(mariadb, ("slap: unknown option '--foo'".into(), 2));
        assert_eq!(both("--foo=1").1, ("slap: unknown variable 'foo=1'".into(), 7));
        assert_eq!(both("-x").0, ("slap: [ERROR] slap: option '-x' requires an argument.".into(), 5));
        assert_eq!(usage_error(Flavour::Mariadb, "--verbose=2").1, 4);
        assert_eq!(usage_error(Flavour::Mariadb, "--iterations=abc").1, 9);
        assert_eq!(usage_error(Flavour::Mariadb, "-i -1").1, 13);
        assert_eq!(parse(Flavour::Mysql, "-i -1").unwrap().number("iterations"), Some(1));
    }

    #[test]
    fn mariadbs_client_accepts_abbreviated_names() {
        let read = parse(Flavour::Mariadb, "--no-d").unwrap();
        assert!(
            read.is_on("no-drop") && read.notes[0].starts_with("Info: Using unique option prefix 'no-d'")
        );
        assert_eq!(usage_error(Flavour::Mariadb, "--ver").1, 3);
        assert_eq!(usage_error(Flavour::Mysql, "--no-d").1, 2);
    }

    #[test]
    fn compat_overrides_the_program_name() {
        assert_eq!(flavour("mariadb-slap", &[]), Ok(Flavour::Mariadb));
        assert_eq!(flavour("mysqlslap", &["--compat=mariadb".into()]), Ok(Flavour::Mariadb));
        assert!(flavour("mysqlslap", &["--compat=x".into()]).is_err());
    }
}
