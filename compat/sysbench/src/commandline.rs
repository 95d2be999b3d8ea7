//! The command line: `sysbench [options]... [testname] [command]`, in two passes.
//!
//! The first pass takes sysbench's own options and leaves the others to the test, which declares its own when it is
//! known. A file of options is read where it is named: what follows it on the command line stands above it.

use crate::declaration::{Declared, Kind};

use super::registry::{Given, Registry, Untaken, Usage};
use super::{Compat, config_file};

/// How the files that a command line names are read.
pub trait Files {
    /// The text of a file.
    ///
    /// # Errors
    /// What the system says, such as `No such file or directory`.
    fn text(&self, path: &str) -> Result<String, String>;
}

/// An option that sysbench itself does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Name, without the hyphens before it.
    pub name: String,
    /// Its value.
    pub given: Given,
}

/// What was given, after the first pass.
#[derive(Clone, Debug)]
pub struct CommandLine {
    /// Which sysbench to be like.
    pub compat: Compat,
    /// sysbench's own options.
    pub registry: Registry,
    /// The first word: the test.
    pub test: Option<String>,
    /// The second word: the command.
    pub command: Option<String>,
    /// What the test may know.
    pub leftovers: Vec<Leftover>,
    /// What was given to options of ours; a test may declare one of the same name, and mean its own.
    ours: Vec<Leftover>,
    /// Lines for standard error; none of them ends the program.
    pub notes: Vec<String>,
}

/// The first pass over the arguments, without the program's name.
///
/// # Errors
/// A third word, or no such `--compat`.
pub fn read(arguments: &[String], files: &dyn Files) -> Result<CommandLine, Usage> {
    let compat = compat(arguments)?;
    let mut line = CommandLine {
        compat,
        registry: Registry::new(compat),
        test: None,
        command: None,
        leftovers: Vec::new(),
        ours: Vec::new(),
        notes: Vec::new(),
    };
    for argument in arguments {
        match argument.strip_prefix("--") {
            Some(option) => line.option(option, files),
            None if line.test.is_none() => line.test = Some(argument.clone()),
            None if line.command.is_none() => line.command = Some(argument.clone()),
            None => return Err(Usage(format!("Unrecognized command line argument: {argument}"))),
        }
    }
    line.move_test_option();
    Ok(line)
}

fn compat(arguments: &[String]) -> Result<Compat, Usage> {
    match arguments.iter().rev().find_map(|argument| argument.strip_prefix("--compat=")) {
        None | Some("1.0" | "1.0.20") => Ok(Compat::V10),
        Some("1.1" | "1.1.0") => Ok(Compat::V11),
        Some(other) => {
            Err(Usage(format!("Invalid value for the 'compat' option: '{other}'; it may be 1.0 or 1.1")))
        }
    }
}

impl CommandLine {
    fn option(&mut self, option: &str, files: &dyn Files) {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        if name.replace('_', "-") == "config-file" {
            return self.config_file(value.unwrap_or_default(), files);
        }
        if self.registry.is_ours(name) {
            self.ours.push(Leftover::argument(name, value));
        }
        if self.registry.set(name, value).is_err() {
            self.leftovers.push(Leftover::argument(name, value));
        }
    }

    fn config_file(&mut self, path: &str, files: &dyn Files) {
        let text = match files.text(path) {
            Ok(text) => text,
            Err(fault) => return self.notes.push(format!("{path}: {fault}")),
        };
        let (lines, fault) = config_file::read(&text);
        for line in lines {
            let given = Given::Words(line.values);
            if self.registry.give(&line.name, &given).is_err() {
                self.leftovers.push(Leftover { name: line.name, given });
            }
        }
        self.notes.extend(fault);
    }

    /// `--test=X`, from before 1.0: X is the test, and the first word the command.
    fn move_test_option(&mut self) {
        if self.compat == Compat::V11 {
            return;
        }
        let is_test = |left: &Leftover| left.name == "test" && left.text().is_some();
        let Some(at) = self.leftovers.iter().position(is_test) else { return };
        self.notes.push(
            "WARNING: the --test option is deprecated. You can pass a script name or path on the command line without \
             any options."
                .into(),
        );
        self.command = self.test.take().or(self.command.take());
        self.test = self.leftovers.remove(at).text();
    }

    /// Makes strings of the options that nobody knows: a test of 1.0 that declares no options has them all.
    pub fn adopt(&mut self) {
        let mut refused = Vec::new();
        for left in std::mem::take(&mut self.leftovers) {
            match self.registry.give(&left.name, &left.given) {
                Err(Untaken::Unknown) => {
                    let default = Some(left.text().unwrap_or_default());
                    self.registry.declare(Declared {
                        name: left.name,
                        kind: Kind::String,
                        default,
                        help: None,
                    });
                }
                Err(Untaken::NotBool) => refused.push(left),
                Ok(()) => {}
            }
        }
        self.leftovers = refused;
    }

    /// The second pass: what the test declares, and then what was left for it. A name in a file that nobody knows is a
    /// note; on the command line it is an error.
    ///
    /// # Errors
    /// An option that nobody knows, or a boolean that is neither on nor off.
    pub fn declare(&mut self, declared: &[Declared]) -> Result<(), Usage> {
        declared.iter().for_each(|option| self.registry.declare(option.clone()));
        let again = self.ours.iter().filter(|left| !self.registry.is_ours(&left.name)).cloned();
        let left_over = again.collect::<Vec<_>>().into_iter().chain(std::mem::take(&mut self.leftovers));
        for left in left_over {
            let Err(untaken) = self.registry.give(&left.name, &left.given) else { continue };
            if matches!(left.given, Given::Words(_)) && untaken == Untaken::Unknown {
                self.notes.push(format!("WARNING: nobody knows the option '{}' of the file", left.name));
                continue;
            }
            return Err(Usage(format!("invalid option: {}", left.written())));
        }
        Ok(())
    }
}

impl Leftover {
    fn argument(name: &str, value: Option<&str>) -> Self {
        Self { name: name.into(), given: Given::Argument(value.map(Into::into)) }
    }

    /// What stands after the `=`, of a file's words the first.
    fn text(&self) -> Option<String> {
        match &self.given {
            Given::Argument(text) => text.clone(),
            Given::Words(words) => words.first().cloned(),
        }
    }

    fn written(&self) -> String {
        match self.text() {
            Some(value) => format!("--{}={value}", self.name),
            None => format!("--{}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::declaration::Value;

    use super::*;

    struct One(&'static str);

    impl Files for One {
        fn text(&self, path: &str) -> Result<String, String> {
            if path == "there" { Ok(self.0.into()) } else { Err("No such file or directory".into()) }
        }
    }

    fn given(line: &str, file: &'static str) -> Result<CommandLine, Usage> {
        let arguments: Vec<_> = line.split_whitespace().map(Into::into).collect();
        read(&arguments, &One(file))
    }

    #[test]
    fn options_and_words_in_any_order() {
        let line = given("--threads=2 cpu --time=3 run --threads=4", "").unwrap();
        assert_eq!((line.test.as_deref(), line.command.as_deref()), (Some("cpu"), Some("run")));
        assert_eq!((line.registry.int("threads"), line.registry.int("time")), (Ok(4), Ok(3)));
        let third = given("cpu run extra", "").unwrap_err();
        assert_eq!(third.0, "Unrecognized command line argument: extra");
        assert_eq!(given("-x run", "").unwrap().test.as_deref(), Some("-x"));
    }

    #[test]
    fn a_file_stands_below_what_follows_it() {
        let file = "threads=7\ntime=7\nhistogram=off\ntable-size=70\nbogus=1\n";
        let mut line = given("--time=1 --config-file=there --threads=2 oltp run", file).unwrap();
        assert_eq!((line.registry.int("threads"), line.registry.int("time")), (Ok(2), Ok(7)));
        assert!(!line.registry.bool("histogram"), "off is off, in a file too");
        line.declare(&[Declared::new("table_size", Kind::Double, Some("10000"), "")]).unwrap();
        assert_eq!(line.registry.double("table-size"), 70.0);
        assert_eq!(line.notes, ["WARNING: nobody knows the option 'bogus' of the file"]);
        let missing = given("--config-file=nowhere cpu run", file).unwrap();
        assert_eq!(missing.notes, ["nowhere: No such file or directory"]);
    }

    #[test]
    fn what_nobody_knows_is_told_as_it_was_written() {
        for option in ["--bogus", "--bogus=1", "--validate=yes", "--"] {
            let mut line = given(&format!("cpu run {option}"), "").unwrap();
            assert_eq!(line.declare(&[]).unwrap_err().0, format!("invalid option: {option}"));
        }
    }

    #[test]
    fn a_test_may_have_an_option_of_the_name_of_one_of_ours() {
        let mut line = given("test.lua run --workers=8 --compat=1.0", "").unwrap();
        line.declare(&[Declared::new("workers", Kind::Double, Some("2"), "")]).unwrap();
        let values = line.registry.values().unwrap();
        let value =
            |name: &str| values.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        assert_eq!(value("workers"), Some(Value::Double(8.0)));
        assert_eq!(value("compat"), None, "scripts are told nothing of ours");
    }

    #[test]
    fn what_nobody_knows_becomes_a_string_where_nothing_is_declared() {
        let mut line = given("test.lua run --bogus=1 --switch --validate=maybe", "").unwrap();
        line.adopt();
        assert_eq!((line.registry.string("bogus"), line.registry.string("switch")), (Some("1"), None));
        assert_eq!(line.declare(&[]).unwrap_err().0, "invalid option: --validate=maybe");
    }

    #[test]
    fn the_old_test_option_moves_the_words() {
        let line = given("--test=cpu run --threads=2", "").unwrap();
        assert_eq!((line.test.as_deref(), line.command.as_deref()), (Some("cpu"), Some("run")));
        assert_eq!(line.notes.len(), 1);
        let mut newer = given("--compat=1.1 --test=cpu run", "").unwrap();
        assert!(newer.declare(&[]).is_err());
    }
}
