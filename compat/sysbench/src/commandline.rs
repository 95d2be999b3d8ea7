//! Parses the command line `sysbench [options]... [testname] [command]` in two passes.
//!
//! The first pass sets sysbench's options and keeps the others for the test, which declares its options later. An
//! option file is read at its position among the arguments, so that later arguments override it.

use crate::option_definition::{Kind, OptionDefinition};

use super::registry::{RawValue, Registry, SetError};
use super::{Compat, config_file};

/// Reads a file. The error is the system's message, such as `No such file or directory`.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// A value for an option, from an argument or from a line of an option file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Without leading hyphens.
    pub name: String,
    pub value: RawValue,
}

/// The command line after the first pass.
#[derive(Clone, Debug)]
pub struct CommandLine {
    pub compat: Compat,
    pub registry: Registry,
    /// The first argument that is not an option.
    pub test: Option<String>,
    /// The second argument that is not an option.
    pub command: Option<String>,
    /// Options that the test may declare later.
    unknown: Vec<Assignment>,
    /// Values of options that exist only in this drop-in. If a test declares an option of the same name, the test gets
    /// the value.
    extensions: Vec<Assignment>,
    /// Messages for standard error about problems that do not end the program.
    pub notes: Vec<String>,
}

/// The first pass over the arguments, which do not include the program's name.
///
/// # Errors
/// A third argument that is not an option, or an unknown `--compat`.
pub fn read(arguments: &[String], read_file: ReadFile<'_>) -> Result<CommandLine, String> {
    let compat = compat(arguments)?;
    let mut line = CommandLine {
        compat,
        registry: Registry::new(compat),
        test: None,
        command: None,
        unknown: Vec::new(),
        extensions: Vec::new(),
        notes: Vec::new(),
    };
    for argument in arguments {
        match argument.strip_prefix("--") {
            Some(option) => line.read_option(option, read_file),
            None if line.test.is_none() => line.test = Some(argument.clone()),
            None if line.command.is_none() => line.command = Some(argument.clone()),
            None => return Err(format!("Unrecognized command line argument: {argument}")),
        }
    }
    line.move_test_option();
    Ok(line)
}

fn compat(arguments: &[String]) -> Result<Compat, String> {
    match arguments.iter().rev().find_map(|argument| argument.strip_prefix("--compat=")) {
        None | Some("1.0" | "1.0.20") => Ok(Compat::V1_0),
        Some("1.1" | "1.1.0") => Ok(Compat::V1_1),
        Some(other) => Err(format!("Invalid value for the 'compat' option: '{other}'; it may be 1.0 or 1.1")),
    }
}

impl CommandLine {
    fn read_option(&mut self, option: &str, read_file: ReadFile<'_>) {
        let (name, value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        if name.replace('_', "-") == "config-file" {
            return self.read_config_file(value.unwrap_or_default(), read_file);
        }
        let assignment = Assignment { name: name.into(), value: RawValue::Argument(value.map(Into::into)) };
        if self.registry.is_extension(name) {
            self.extensions.push(assignment.clone());
        }
        if self.registry.set(name, value).is_err() {
            self.unknown.push(assignment);
        }
    }

    fn read_config_file(&mut self, path: &str, read_file: ReadFile<'_>) {
        let text = match read_file(path) {
            Ok(text) => text,
            Err(error) => return self.notes.push(format!("{path}: {error}")),
        };
        let (lines, error) = config_file::read(&text);
        for (name, values) in lines {
            let value = RawValue::FileValues(values);
            if self.registry.assign(&name, &value).is_err() {
                self.unknown.push(Assignment { name, value });
            }
        }
        self.notes.extend(error);
    }

    /// Handles `--test=X` of sysbench 0.5: X becomes the test, and the first argument becomes the command.
    fn move_test_option(&mut self) {
        if self.compat == Compat::V1_1 {
            return;
        }
        let is_test = |option: &Assignment| option.name == "test" && option.text().is_some();
        let Some(at) = self.unknown.iter().position(is_test) else { return };
        self.notes.push(
            "WARNING: the --test option is deprecated. You can pass a script name or path on the command line without \
             any options."
                .into(),
        );
        self.command = self.test.take().or(self.command.take());
        self.test = self.unknown.remove(at).text();
    }

    /// Declares unknown options as strings. In 1.0, a test that declares no options accepts any option.
    pub fn declare_unknown(&mut self) {
        for option in &self.unknown {
            if self.registry.kind(&option.name).is_none() {
                let default = Some(option.text().unwrap_or_default());
                let (name, kind) = (option.name.clone(), Kind::String);
                self.registry.declare(OptionDefinition { name, kind, default, help: None });
            }
        }
        self.unknown.retain(|option| self.registry.assign(&option.name, &option.value).is_err());
    }

    /// The second pass: declares the test's options and assigns the remaining values. An unknown name is an error if it
    /// is on the command line, and a note if it is in an option file.
    ///
    /// # Errors
    /// An unknown option, or a boolean that is neither on nor off.
    pub fn declare(&mut self, definitions: &[OptionDefinition]) -> Result<(), String> {
        definitions.iter().for_each(|option| self.registry.declare(option.clone()));
        let mut options = self.extensions.clone();
        options.retain(|option| !self.registry.is_extension(&option.name));
        options.append(&mut self.unknown);
        for option in options {
            let Err(error) = self.registry.assign(&option.name, &option.value) else { continue };
            if matches!(option.value, RawValue::FileValues(_)) && error == SetError::Unknown {
                self.notes.push(format!("WARNING: unknown option '{}' in the option file", option.name));
                continue;
            }
            let value = option.text().map(|value| format!("={value}")).unwrap_or_default();
            return Err(format!("invalid option: --{}{value}", option.name));
        }
        Ok(())
    }
}

impl Assignment {
    /// The text after `=`; for a line of an option file, the first value.
    fn text(&self) -> Option<String> {
        match &self.value {
            RawValue::Argument(text) => text.clone(),
            RawValue::FileValues(values) => values.first().cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::option_definition::Value;

    use super::*;

    fn parse(line: &str, file: &'static str) -> Result<CommandLine, String> {
        let arguments: Vec<_> = line.split_whitespace().map(Into::into).collect();
        read(&arguments, &|path| match path {
            "there" => Ok(file.into()),
            _ => Err("No such file or directory".into()),
        })
    }

    #[test]
    fn options_and_positional_arguments_in_any_order() {
        let line = parse("--threads=2 cpu --time=3 run --threads=4", "").unwrap();
        assert_eq!((line.test.as_deref(), line.command.as_deref()), (Some("cpu"), Some("run")));
        assert_eq!((line.registry.int("threads"), line.registry.int("time")), (Ok(4), Ok(3)));
        let third = parse("cpu run extra", "").unwrap_err();
        assert_eq!(third, "Unrecognized command line argument: extra");
        assert_eq!(parse("-x run", "").unwrap().test.as_deref(), Some("-x"));
    }

    #[test]
    fn later_arguments_override_the_option_file() {
        let file = "threads=7\ntime=7\nhistogram=off\ntable-size=70\nbogus=1\n";
        let mut line = parse("--time=1 --config-file=there --threads=2 oltp run", file).unwrap();
        assert_eq!((line.registry.int("threads"), line.registry.int("time")), (Ok(2), Ok(7)));
        assert!(!line.registry.bool("histogram"), "off in a file means off");
        line.declare(&[OptionDefinition::new("table_size", Kind::Double, Some("10000"), "")]).unwrap();
        assert_eq!(line.registry.double("table-size"), 70.0);
        assert_eq!(line.notes, ["WARNING: unknown option 'bogus' in the option file"]);
        let missing = parse("--config-file=nowhere cpu run", file).unwrap();
        assert_eq!(missing.notes, ["nowhere: No such file or directory"]);
    }

    #[test]
    fn unknown_options_are_reported_verbatim() {
        for option in ["--bogus", "--bogus=1", "--validate=yes", "--"] {
            let mut line = parse(&format!("cpu run {option}"), "").unwrap();
            assert_eq!(line.declare(&[]).unwrap_err(), format!("invalid option: {option}"));
        }
    }

    #[test]
    fn test_can_redeclare_an_extension_option() {
        let mut line = parse("test.lua run --workers=8 --compat=1.0", "").unwrap();
        line.declare(&[OptionDefinition::new("workers", Kind::Double, Some("2"), "")]).unwrap();
        let values = line.registry.values().unwrap();
        let value =
            |name: &str| values.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        assert_eq!(value("workers"), Some(Value::Double(8.0)));
        assert_eq!(value("compat"), None, "scripts do not see extensions");
    }

    #[test]
    fn undeclared_options_become_strings() {
        let mut line = parse("test.lua run --bogus=1 --switch --validate=maybe", "").unwrap();
        line.declare_unknown();
        assert_eq!((line.registry.string("bogus"), line.registry.string("switch")), (Some("1"), None));
        assert_eq!(line.declare(&[]).unwrap_err(), "invalid option: --validate=maybe");
    }

    #[test]
    fn the_old_test_option_moves_the_positional_arguments() {
        let line = parse("--test=cpu run --threads=2", "").unwrap();
        assert_eq!((line.test.as_deref(), line.command.as_deref()), (Some("cpu"), Some("run")));
        assert_eq!(line.notes.len(), 1);
        let mut newer = parse("--compat=1.1 --test=cpu run", "").unwrap();
        assert!(newer.declare(&[]).is_err());
    }
}
