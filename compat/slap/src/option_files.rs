//! Option files: reads `[client]` and the program's groups from `my.cnf`, as arguments that precede those of the
//! command line.

use super::{Flavour, UsageError};

/// Access to files and environment variables.
pub trait Files {
    fn text(&self, path: &str) -> Result<String, String>;
    fn exists(&self, path: &str) -> bool;
    /// The paths of the option files in a folder, sorted.
    fn folder(&self, path: &str) -> Vec<String>;
    fn env_var(&self, name: &str) -> Option<String>;
}

/// The files to read unless `--defaults-file` names another one.
const DEFAULT: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];
/// The maximum nesting of included files.
const DEPTH_MAX: u32 = 10;

/// The options that select option files; they must come first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Defaults {
    none: bool,
    print: bool,
    only: Option<String>,
    extra: Option<String>,
    suffix: Option<String>,
}

/// The result of reading the option files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// The arguments from option files, followed by those of the command line.
    pub arguments: Vec<String>,
    /// Whether `--print-defaults` is present.
    pub print: bool,
}

/// # Errors
/// A file that an option names cannot be read.
pub fn collect(
    flavour: Flavour,
    program: &str,
    arguments: &[String],
    files: &dyn Files,
) -> Result<Collected, UsageError> {
    let (defaults, own) = leading(arguments);
    let groups = groups(flavour, defaults.suffix.as_deref());
    let mut collected = Vec::new();
    let read = |path: &str, into: &mut Vec<String>, required: bool| match files.text(path) {
        Ok(text) => {
            options(&text, &groups, files, 0, into);
            Ok(())
        }
        Err(_) if !required => Ok(()),
        Err(_) => Err(unreadable(flavour, program, path)),
    };
    if let Some(only) = &defaults.only {
        read(only, &mut collected, true)?;
    } else if !defaults.none {
        for path in DEFAULT {
            read(path, &mut collected, false)?;
        }
        if let Some(extra) = &defaults.extra {
            read(extra, &mut collected, true)?;
        }
        if let Some(home) = files.env_var("HOME") {
            read(&format!("{home}/.my.cnf"), &mut collected, false)?;
        }
    }
    collected.extend_from_slice(own);
    Ok(Collected { arguments: collected, print: defaults.print })
}

/// Splits off the leading options that select option files.
fn leading(arguments: &[String]) -> (Defaults, &[String]) {
    let mut defaults = Defaults::default();
    for (at, argument) in arguments.iter().enumerate() {
        match argument.split_once('=') {
            None if argument == "--no-defaults" => defaults.none = true,
            None if argument == "--print-defaults" => defaults.print = true,
            None if argument == "--no-login-paths" => {}
            Some(("--defaults-file", path)) => defaults.only = Some(path.into()),
            Some(("--defaults-extra-file", path)) => defaults.extra = Some(path.into()),
            Some(("--defaults-group-suffix", suffix)) => defaults.suffix = Some(suffix.into()),
            _ => return (defaults, &arguments[at..]),
        }
    }
    (defaults, &[])
}

fn groups(flavour: Flavour, suffix: Option<&str>) -> Vec<String> {
    let names: &[&str] = match flavour {
        Flavour::Mysql => &["mysqlslap", "client"],
        Flavour::Mariadb => &["mysqlslap", "mariadb-slap", "client", "client-server", "client-mariadb"],
    };
    let with = names.iter().filter_map(|name| suffix.map(|suffix| format!("{name}{suffix}")));
    names.iter().map(|name| (*name).to_owned()).chain(with).collect()
}

fn unreadable(flavour: Flavour, program: &str, path: &str) -> UsageError {
    UsageError::new(match flavour {
        Flavour::Mariadb => format!(
            "Could not open required defaults file: {path}\nFatal error in defaults handling. Program aborted"
        ),
        Flavour::Mysql => format!(
            "{program}: [ERROR] Failed to open required defaults file: {path}\n{program}: [ERROR] Fatal error in \
             defaults handling. Program aborted!"
        ),
    })
}

/// Adds the options of `text` that belong to one of the groups.
fn options(text: &str, groups: &[String], files: &dyn Files, depth: u32, into: &mut Vec<String>) {
    let mut in_group = false;
    for line in text.lines().map(str::trim) {
        if let Some(path) = line.strip_prefix("!includedir ").filter(|_| depth < DEPTH_MAX) {
            for path in files.folder(path.trim()) {
                let text = files.text(&path).unwrap_or_default();
                options(&text, groups, files, depth + 1, into);
            }
        } else if let Some(path) = line.strip_prefix("!include ").filter(|_| depth < DEPTH_MAX) {
            let text = files.text(path.trim()).unwrap_or_default();
            options(&text, groups, files, depth + 1, into);
        } else if line.is_empty() || line.starts_with(['#', ';', '!']) {
        } else if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            in_group = groups.iter().any(|known| known == group.trim());
        } else if in_group {
            into.push(option(line));
        }
    }
}

fn option(line: &str) -> String {
    match line.split_once('=') {
        None => format!("--{}", without_comment(line)),
        Some((name, value)) => format!("--{}={}", name.trim(), unquoted(value.trim())),
    }
}

fn without_comment(text: &str) -> &str {
    text.split_once(" #").map_or(text, |(before, _)| before).trim()
}

/// Removes quotes and a trailing comment, and replaces escape sequences.
fn unquoted(value: &str) -> String {
    let quote = value.chars().next().filter(|first| ['"', '\''].contains(first));
    let bare = match quote.and_then(|quote| value[1..].split_once(quote)) {
        Some((inside, _)) => inside,
        None => without_comment(value),
    };
    let mut text = String::new();
    let mut letters = bare.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('b') => text.push('\u{8}'),
            Some('s') => text.push(' '),
            Some(known @ ('"' | '\'' | '\\')) => text.push(known),
            Some(other) => text.extend(['\\', other]),
            None => text.push('\\'),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Two;

    impl Files for Two {
        fn text(&self, path: &str) -> Result<String, String> {
            match path {
                "a.cnf" => Ok(
                    "[client]\nuser = me # the account\npassword='a#b'\n!include b.cnf\n[mysqld]\nport=9\n"
                        .into(),
                ),
                "b.cnf" => Ok("[mysqlslap]\nno-drop\nport=7\n[client-x]\nsocket=/x".into()),
                "/home/.my.cnf" => Ok("[client]\nhost=\"h\\sx\"".into()),
                _ => Err("no".into()),
            }
        }
        fn exists(&self, _: &str) -> bool {
            false
        }
        fn folder(&self, _: &str) -> Vec<String> {
            Vec::new()
        }
        fn env_var(&self, _: &str) -> Option<String> {
            Some("/home".into())
        }
    }

    fn read(line: &str) -> Result<Vec<String>, UsageError> {
        let arguments: Vec<_> = line.split_whitespace().map(Into::into).collect();
        collect(Flavour::Mysql, "slap", &arguments, &Two).map(|collected| collected.arguments)
    }

    #[test]
    fn files_come_before_the_command_line() {
        let from_file = ["--user=me", "--password=a#b", "--no-drop", "--port=7", "-a"];
        assert_eq!(read("--defaults-file=a.cnf -a").unwrap(), from_file);
        assert_eq!(read("-a").unwrap(), ["--host=h x", "-a"]);
        assert_eq!(read("--no-defaults -a").unwrap(), ["-a"]);
        let both = ["--no-drop", "--port=7", "--socket=/x", "--host=h x"];
        assert_eq!(read("--defaults-extra-file=b.cnf --defaults-group-suffix=-x").unwrap(), both);
    }

    #[test]
    fn a_file_that_is_named_must_be_there() {
        assert_eq!(read("--defaults-file=c.cnf").unwrap_err().code, 1);
        // Later on the command line it is an option like others, which nobody knows.
        assert_eq!(read("-a --defaults-file=c.cnf").unwrap().len(), 3);
    }
}
