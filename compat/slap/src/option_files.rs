//! Reads option files: the group `[client]` and the groups of the program in `my.cnf`. Their options become arguments that
//! precede the arguments of the command line.

use super::{Flavour, UsageError};

/// Access to files and environment variables.
pub trait Files {
    fn read(&self, path: &str) -> Result<String, String>;
    fn exists(&self, path: &str) -> bool;
    /// The paths of the option files in a folder, sorted.
    fn list(&self, path: &str) -> Vec<String>;
    fn env_var(&self, name: &str) -> Option<String>;
}

/// The files to read if `--defaults-file` is not set.
const DEFAULT_FILES: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];
/// The maximum nesting of included files.
const DEPTH_MAX: u32 = 10;

/// The options that select option files. They must precede all other options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FileOptions {
    no_files: bool,
    print: bool,
    only_file: Option<String>,
    extra_file: Option<String>,
    group_suffix: Option<String>,
}

/// The arguments from option files and from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectedArguments {
    /// The arguments from option files, followed by those of the command line.
    pub arguments: Vec<String>,
    /// Whether `--print-defaults` is present.
    pub print: bool,
}

/// Reads the option files.
///
/// # Errors
/// A file that the command line names cannot be read.
pub fn collect(
    flavour: Flavour,
    program: &str,
    arguments: &[String],
    files: &dyn Files,
) -> Result<CollectedArguments, UsageError> {
    let (file_options, program_arguments) = split_file_options(arguments);
    let groups = group_names(flavour, file_options.group_suffix.as_deref());
    let mut collected = Vec::new();
    let read = |path: &str, arguments: &mut Vec<String>, is_required: bool| match files.read(path) {
        Ok(text) => {
            add_options(&text, &groups, files, 0, arguments);
            Ok(())
        }
        Err(_) if !is_required => Ok(()),
        Err(_) => Err(read_error(flavour, program, path)),
    };
    if let Some(only) = &file_options.only_file {
        read(only, &mut collected, true)?;
    } else if !file_options.no_files {
        for path in DEFAULT_FILES {
            read(path, &mut collected, false)?;
        }
        if let Some(extra) = &file_options.extra_file {
            read(extra, &mut collected, true)?;
        }
        if let Some(home) = files.env_var("HOME") {
            read(&format!("{home}/.my.cnf"), &mut collected, false)?;
        }
    }
    collected.extend_from_slice(program_arguments);
    Ok(CollectedArguments { arguments: collected, print: file_options.print })
}

/// Splits off the leading options that select option files. `--compat`, which the clients do not have, may stand among them.
fn split_file_options(arguments: &[String]) -> (FileOptions, &[String]) {
    let mut file_options = FileOptions::default();
    for (at, argument) in arguments.iter().enumerate() {
        match argument.split_once('=') {
            None if argument == "--no-defaults" => file_options.no_files = true,
            None if argument == "--print-defaults" => file_options.print = true,
            None if argument == "--no-login-paths" => {}
            Some(("--compat", _)) => {}
            Some(("--defaults-file", path)) => file_options.only_file = Some(path.into()),
            Some(("--defaults-extra-file", path)) => file_options.extra_file = Some(path.into()),
            Some(("--defaults-group-suffix", suffix)) => file_options.group_suffix = Some(suffix.into()),
            _ => return (file_options, &arguments[at..]),
        }
    }
    (file_options, &[])
}

fn group_names(flavour: Flavour, suffix: Option<&str>) -> Vec<String> {
    let names: &[&str] = match flavour {
        Flavour::Mysql => &["mysqlslap", "client"],
        Flavour::Mariadb => &["mysqlslap", "mariadb-slap", "client", "client-server", "client-mariadb"],
    };
    let with_suffix = names.iter().filter_map(|name| suffix.map(|suffix| format!("{name}{suffix}")));
    names.iter().map(|name| (*name).to_owned()).chain(with_suffix).collect()
}

fn read_error(flavour: Flavour, program: &str, path: &str) -> UsageError {
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
fn add_options(text: &str, groups: &[String], files: &dyn Files, depth: u32, arguments: &mut Vec<String>) {
    let mut in_group = false;
    for line in text.lines().map(str::trim) {
        if let Some(path) = line.strip_prefix("!includedir ").filter(|_| depth < DEPTH_MAX) {
            for path in files.list(path.trim()) {
                let text = files.read(&path).unwrap_or_default();
                add_options(&text, groups, files, depth + 1, arguments);
            }
        } else if let Some(path) = line.strip_prefix("!include ").filter(|_| depth < DEPTH_MAX) {
            let text = files.read(path.trim()).unwrap_or_default();
            add_options(&text, groups, files, depth + 1, arguments);
        } else if line.is_empty() || line.starts_with(['#', ';', '!']) {
        } else if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            in_group = groups.iter().any(|known| known == group.trim());
        } else if in_group {
            arguments.push(to_argument(line));
        }
    }
}

/// Converts the line `name=value` to `--name=value`.
fn to_argument(line: &str) -> String {
    match line.split_once('=') {
        None => format!("--{}", remove_comment(line)),
        Some((name, value)) => format!("--{}={}", name.trim(), unquote(value.trim())),
    }
}

fn remove_comment(text: &str) -> &str {
    text.split_once(" #").map_or(text, |(before, _)| before).trim()
}

/// Removes quotes and a trailing comment, and replaces escape sequences.
fn unquote(value: &str) -> String {
    let quote = value.chars().next().filter(|first| ['"', '\''].contains(first));
    let value = match quote.and_then(|quote| value[1..].split_once(quote)) {
        Some((quoted, _)) => quoted,
        None => remove_comment(value),
    };
    let mut text = String::new();
    let mut letters = value.chars();
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

    struct TestFiles;

    impl Files for TestFiles {
        fn read(&self, path: &str) -> Result<String, String> {
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
        fn list(&self, _: &str) -> Vec<String> {
            Vec::new()
        }
        fn env_var(&self, _: &str) -> Option<String> {
            Some("/home".into())
        }
    }

    fn read(line: &str) -> Result<Vec<String>, UsageError> {
        let arguments: Vec<_> = line.split_whitespace().map(Into::into).collect();
        collect(Flavour::Mysql, "slap", &arguments, &TestFiles).map(|collected| collected.arguments)
    }

    #[test]
    fn arguments_from_files_precede_the_command_line() {
        let from_file = ["--user=me", "--password=a#b", "--no-drop", "--port=7", "-a"];
        assert_eq!(read("--defaults-file=a.cnf -a").unwrap(), from_file);
        assert_eq!(read("-a").unwrap(), ["--host=h x", "-a"]);
        assert_eq!(read("--no-defaults -a").unwrap(), ["-a"]);
        assert_eq!(read("--compat=mysql --no-defaults --compat=mysql -a").unwrap(), ["-a"]);
        let both = ["--no-drop", "--port=7", "--socket=/x", "--host=h x"];
        assert_eq!(read("--defaults-extra-file=b.cnf --defaults-group-suffix=-x").unwrap(), both);
    }

    #[test]
    fn a_file_on_the_command_line_must_exist() {
        assert_eq!(read("--defaults-file=c.cnf").unwrap_err().code, 1);
        // After another option, --defaults-file is passed on like any argument.
        assert_eq!(read("-a --defaults-file=c.cnf").unwrap().len(), 3);
    }
}
