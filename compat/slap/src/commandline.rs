//! The command line, read as MySQL's own clients read theirs: letters that stand together, values behind a letter, an
//! equal sign or a space, `--skip-`, `--loose-`, and with MariaDB's client the beginnings of names.

use std::collections::BTreeMap;

use super::options::{Kind, Row, named, of};
use super::{Flavour, Refused};

const UNKNOWN_OPTION: u8 = 2;
const AMBIGUOUS: u8 = 3;
const TAKES_NO_VALUE: u8 = 4;
const WANTS_A_VALUE: u8 = 5;
const UNKNOWN_VARIABLE: u8 = 7;
const NO_NUMBER: u8 = 9;
const NEGATIVE: u8 = 13;

/// What was given.
#[derive(Clone, Debug)]
pub struct Given {
    /// Which client to be like.
    pub flavour: Flavour,
    /// How the program is called in its messages.
    pub program: String,
    /// How often `--verbose`.
    pub verbose: u32,
    /// Lines for standard error; none of them ends the program.
    pub notes: Vec<String>,
    texts: BTreeMap<&'static str, Option<String>>,
    numbers: BTreeMap<&'static str, u64>,
    flags: BTreeMap<&'static str, bool>,
}

impl Given {
    /// The text of an option; `None` where it was not given, or given without one.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name)?.as_deref()
    }

    /// Whether an option with a text was given, with or without one.
    pub fn has(&self, name: &str) -> bool {
        self.texts.contains_key(name)
    }

    /// The number of an option.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.numbers.get(name).copied()
    }

    /// Whether a switch is on; `None` where nobody touched it.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.flags.get(name).copied()
    }

    /// Whether a switch is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.flag(name).unwrap_or(false)
    }
}

/// Reads arguments: those of the option files first, then the command line's own. What stands later counts.
///
/// # Errors
/// An option that the client does not know, or a value that it does not take.
pub fn read(flavour: Flavour, program: &str, arguments: &[String]) -> Result<Given, Refused> {
    let mut given = Given {
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
            given.long(long, &mut rest)?;
        } else if let Some(letters) = argument.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            given.letters(letters, &mut rest)?;
        }
        // Words that are no options mean nothing to the clients.
    }
    Ok(given)
}

/// The flavour that `--compat` names among the arguments, or else that of the program's name.
///
/// # Errors
/// No such client.
pub fn flavour(program: &str, arguments: &[String]) -> Result<Flavour, Refused> {
    let named = arguments.iter().rev().find_map(|argument| argument.strip_prefix("--compat="));
    match named {
        None if program.contains("mariadb") => Ok(Flavour::Mariadb),
        None | Some("mysql") => Ok(Flavour::Mysql),
        Some("mariadb") => Ok(Flavour::Mariadb),
        Some(other) => Err(Refused::new(format!(
            "{program}: no client '{other}' to be like; it may be mysql or mariadb"
        ))),
    }
}

/// What a name may begin with, and what that means.
const PREFIXES: [(&str, bool); 3] = [("skip-", false), ("disable-", false), ("enable-", true)];

impl Given {
    fn long<'a>(&mut self, long: &str, rest: &mut impl Iterator<Item = &'a String>) -> Result<(), Refused> {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let plain = name.replace('_', "-");
        let loose = plain.strip_prefix("loose-");
        let wanted = loose.unwrap_or(&plain);
        if let Some(row) = self.find(wanted)? {
            return self.take(row, &format!("--{name}"), value, rest);
        }
        for (prefix, on) in PREFIXES {
            let row = wanted.strip_prefix(prefix).and_then(|bare| named(bare, self.flavour));
            if let Some(row) = row.filter(|row| row.kind == Kind::Flag) {
                self.flags.insert(row.name, on);
                return Ok(());
            }
        }
        let (what, shown, code) = match value {
            Some(_) => ("variable", format!("'{long}'"), UNKNOWN_VARIABLE),
            None => ("option", format!("'--{long}'"), UNKNOWN_OPTION),
        };
        if loose.is_some() {
            let note = match self.flavour {
                Flavour::Mariadb => format!("Warning: {}: unknown {what} {shown}", self.program),
                Flavour::Mysql => format!("{}: [Warning] unknown {what} {shown}.", self.program),
            };
            self.notes.push(note);
            return Ok(());
        }
        Err(self.refused(&format!("unknown {what} {shown}"), code))
    }

    /// The option of this name; where MariaDB's client is the model, also by its beginning.
    fn find(&mut self, name: &str) -> Result<Option<&'static Row>, Refused> {
        if let Some(row) = named(name, self.flavour) {
            return Ok(Some(row));
        }
        if self.flavour == Flavour::Mysql || name.is_empty() {
            return Ok(None);
        }
        let found: Vec<_> = of(self.flavour).filter(|row| row.name.starts_with(name)).collect();
        match found[..] {
            [] => Ok(None),
            [row] => {
                self.notes.push(format!(
                    "Info: Using unique option prefix '{name}' is error-prone and can break in the future. Please use \
                     the full name '{}' instead.",
                    row.name
                ));
                Ok(Some(row))
            }
            [first, second, ..] => {
                let names = format!("{}, {}", first.name, second.name);
                Err(self.refused(&format!("ambiguous option '--{name}' ({names})"), AMBIGUOUS))
            }
        }
    }

    fn letters<'a>(
        &mut self,
        letters: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), Refused> {
        for (at, letter) in letters.char_indices() {
            let Some(row) = of(self.flavour).find(|row| row.short == Some(letter)) else {
                return Err(self.refused(&format!("unknown option '-{letter}'"), UNKNOWN_OPTION));
            };
            let behind = &letters[at + letter.len_utf8()..];
            let takes = !matches!(row.kind, Kind::Flag | Kind::Count);
            if !takes {
                self.take(row, &format!("-{letter}"), None, rest)?;
                continue;
            }
            let value = Some(behind).filter(|text| !text.is_empty());
            return self.take(row, &format!("-{letter}"), value, rest);
        }
        Ok(())
    }

    fn take<'a>(
        &mut self,
        row: &'static Row,
        written: &str,
        value: Option<&str>,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), Refused> {
        let mut wanted = || match value {
            Some(value) => Some(value.to_owned()),
            None => rest.next().cloned(),
        };
        let missing =
            |given: &Given| given.refused(&format!("option '{written}' requires an argument"), WANTS_A_VALUE);
        match row.kind {
            Kind::Flag => self.switch(row, written, value),
            Kind::Count if value.is_some() => {
                return Err(
                    self.refused(&format!("option '{written}' cannot take an argument"), TAKES_NO_VALUE)
                );
            }
            Kind::Count => self.verbose += 1,
            Kind::MaybeText => {
                self.texts.insert(row.name, value.map(str::to_owned));
            }
            Kind::Text => {
                let text = wanted().ok_or_else(|| missing(self))?;
                self.texts.insert(row.name, Some(text));
            }
            Kind::Number(least) => {
                let text = wanted().ok_or_else(|| missing(self))?;
                let number = self.number_of(row.name, &text)?;
                if number < least && self.flavour == Flavour::Mysql {
                    self.notes.push(format!(
                        "{}: [Warning] option '{}': unsigned value {number} adjusted to {least}.",
                        self.program, row.name
                    ));
                }
                self.numbers.insert(row.name, number.max(least));
            }
        }
        Ok(())
    }

    fn switch(&mut self, row: &'static Row, written: &str, value: Option<&str>) {
        let on = match value.map(str::to_ascii_lowercase).as_deref() {
            None | Some("1" | "on" | "true") => true,
            Some("0" | "off" | "false") => false,
            Some(_) => {
                let what = format!(
                    "ignoring option '{written}' due to invalid value '{}'",
                    value.unwrap_or_default()
                );
                self.notes.push(match self.flavour {
                    Flavour::Mariadb => format!("Warning: {}: {what}", self.program),
                    Flavour::Mysql => format!("{}: [Warning] {}: {what}.", self.program, self.program),
                });
                return;
            }
        };
        self.flags.insert(row.name, on);
    }

    fn number_of(&self, name: &str, text: &str) -> Result<u64, Refused> {
        let negative = text.trim_start().starts_with('-');
        let digits = text.trim_start_matches('-');
        let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
        let suffix = &digits[end..];
        let power = match suffix.to_ascii_uppercase().as_str() {
            "" => Some(0),
            letter => {
                ["K", "M", "G", "T", "P", "E"].iter().position(|known| *known == letter).map(|at| at + 1)
            }
        };
        let refused = |first: String, code| {
            let second = format!("Error while setting value '{text}' to '{name}'");
            let Refused { text: second, .. } = self.refused(&second, code);
            Refused { text: format!("{first}\n{second}"), code }
        };
        if negative && self.flavour == Flavour::Mariadb {
            return Err(refused(format!("Incorrect unsigned value: '{text}' for {name}"), NEGATIVE));
        }
        if negative {
            return Ok(0);
        }
        let Some(power) = power else {
            let letter = suffix.chars().next().unwrap_or_default();
            let said = format!("Unknown suffix '{letter}' used for variable '{name}' (value '{text}').");
            return Err(refused(
                match self.flavour {
                    Flavour::Mariadb => format!("{said} Legal suffix characters are: K, M, G, T, P, E"),
                    Flavour::Mysql => format!("{}: [ERROR] {said}", self.program),
                },
                NO_NUMBER,
            ));
        };
        let number = digits[..end].parse::<u64>().unwrap_or(if end == 0 { 0 } else { u64::MAX });
        Ok(number.saturating_mul(1u64 << (10 * power)))
    }

    /// A message in the client's form.
    fn refused(&self, text: &str, code: u8) -> Refused {
        let program = &self.program;
        let about_a_value = [WANTS_A_VALUE, TAKES_NO_VALUE, NO_NUMBER].contains(&code);
        let text = match self.flavour {
            Flavour::Mariadb => format!("{program}: {text}"),
            Flavour::Mysql
                if about_a_value || text.starts_with("unknown option '-") && !text.contains("'--") =>
            {
                format!("{program}: [ERROR] {program}: {text}.")
            }
            Flavour::Mysql => format!("{program}: [ERROR] {text}."),
        };
        Refused { text, code }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(flavour: Flavour, line: &str) -> Result<Given, Refused> {
        let arguments: Vec<_> = line.split_whitespace().map(Into::into).collect();
        read(flavour, "slap", &arguments)
    }

    fn refusal(flavour: Flavour, line: &str) -> (String, u8) {
        let refused = given(flavour, line).unwrap_err();
        (refused.text, refused.code)
    }

    #[test]
    fn values_stand_where_the_clients_look_for_them() {
        let read = given(Flavour::Mysql, "-avvc 5 -i2 --engine=a,b -uroot -psecret --number-of_queries 3k x")
            .unwrap();
        assert!(read.is_on("auto-generate-sql"));
        assert_eq!(
            (read.verbose, read.text("concurrency"), read.number("iterations")),
            (2, Some("5"), Some(2))
        );
        assert_eq!((read.text("user"), read.text("password")), (Some("root"), Some("secret")));
        assert_eq!((read.text("engine"), read.number("number-of-queries")), (Some("a,b"), Some(3072)));
        let asked = given(Flavour::Mysql, "-p --csv --skip-no-drop --silent=off").unwrap();
        assert!(asked.has("password") && asked.text("password").is_none());
        assert!(asked.has("csv") && !asked.is_on("no-drop") && !asked.is_on("silent"));
    }

    #[test]
    fn faults_are_told_in_the_words_of_either_client() {
        let both = |line| (refusal(Flavour::Mysql, line), refusal(Flavour::Mariadb, line));
        let (mysql, mariadb) = both("--foo");
        assert_eq!(mysql, ("slap: [ERROR] unknown option '--foo'.".into(), 2));
        assert_eq!(mariadb, ("slap: unknown option '--foo'".into(), 2));
        assert_eq!(both("--foo=1").1, ("slap: unknown variable 'foo=1'".into(), 7));
        assert_eq!(both("-x").0, ("slap: [ERROR] slap: option '-x' requires an argument.".into(), 5));
        assert_eq!(refusal(Flavour::Mariadb, "--verbose=2").1, 4);
        assert_eq!(refusal(Flavour::Mariadb, "--iterations=abc").1, 9);
        assert_eq!(refusal(Flavour::Mariadb, "-i -1").1, 13);
        assert_eq!(given(Flavour::Mysql, "-i -1").unwrap().number("iterations"), Some(1));
    }

    #[test]
    fn mariadbs_client_takes_the_beginning_of_a_name() {
        let read = given(Flavour::Mariadb, "--no-d").unwrap();
        assert!(
            read.is_on("no-drop") && read.notes[0].starts_with("Info: Using unique option prefix 'no-d'")
        );
        assert_eq!(refusal(Flavour::Mariadb, "--ver").1, 3);
        assert_eq!(refusal(Flavour::Mysql, "--no-d").1, 2);
    }

    #[test]
    fn the_program_tells_the_flavour_unless_it_is_named() {
        assert_eq!(flavour("mariadb-slap", &[]), Ok(Flavour::Mariadb));
        assert_eq!(flavour("mysqlslap", &["--compat=mariadb".into()]), Ok(Flavour::Mariadb));
        assert!(flavour("mysqlslap", &["--compat=x".into()]).is_err());
    }
}
