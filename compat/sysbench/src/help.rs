//! The help texts.

use std::fmt::Write;

use crate::option_definition::{Kind, OptionDefinition};

use super::options::{self, SysbenchOption};
use super::{Compat, registry};

/// The built-in tests, in the order of `--help`.
pub const BUILT_IN: [(&str, &str); 5] = [
    ("fileio", "File I/O test"),
    ("cpu", "CPU performance test"),
    ("memory", "Memory functions speed test"),
    ("threads", "Threads subsystem performance test"),
    ("mutex", "Mutex performance test"),
];

/// The text of `--help`.
pub fn general(compat: Compat) -> String {
    let mut text = String::from(
        "Usage:\n  sysbench [options]... [testname] [command]\n\nCommands implemented by most tests: prepare run cleanup \
         help\n\n",
    );
    let mut group = |title: &str, options: &[SysbenchOption], end: &str| {
        text += title;
        text +=
            &format_options(&options::select(options, compat).map(registry::definition).collect::<Vec<_>>());
        text += end;
    };
    group("General options:\n", &options::GENERAL, "\n");
    group("Pseudo-Random Numbers Generator options:\n", &options::RANDOM, "\n");
    group("Log options:\n", &options::VERBOSITY, "\n");
    group("", &options::LATENCY, "\n");
    group("General database options:\n\n", &options::DATABASE, "\n\n");
    group(
        "Compiled-in database drivers:\n  mysql - MySQL driver\n  pgsql - PostgreSQL driver\n\nmysql options:\n",
        &options::MYSQL,
        "\n",
    );
    group("pgsql options:\n", &options::PGSQL, "\nCompiled-in tests:\n");
    for (name, title) in BUILT_IN {
        let _ = writeln!(text, "  {name} - {title}");
    }
    text + "\nSee 'sysbench <testname> help' for a list of options for each test.\n\n"
}

/// The text of `TEST help`, after the header.
pub fn test_options(name: &str, definitions: &[OptionDefinition]) -> String {
    format!("{name} options:\n{}\n", format_options(definitions))
}

/// Formats one line per option. The descriptions are aligned.
pub fn format_options(definitions: &[OptionDefinition]) -> String {
    let names: Vec<_> =
        definitions.iter().map(|option| format!("--{}{}", option.name, suffix(option.kind))).collect();
    let width = names.iter().map(String::len).max().unwrap_or_default();
    let mut text = String::new();
    for (name, option) in names.iter().zip(definitions) {
        let _ = write!(text, "  {name:width$} {}", option.help.as_deref().unwrap_or_default());
        if let Some(default) = &option.default {
            let _ = write!(text, " [{default}]");
        }
        text.push('\n');
    }
    text
}

fn suffix(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "[=on|off]",
        Kind::Int | Kind::Double => "=N",
        Kind::Size => "=SIZE",
        Kind::String => "=STRING",
        Kind::List => "=[LIST,...]",
        Kind::File => "=FILENAME",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lines_are_aligned_and_end_with_the_default() {
        let options = [
            OptionDefinition::new("tables", Kind::Double, Some("1"), "Tables"),
            OptionDefinition::new("skip_trx", Kind::Bool, Some("off"), "No BEGIN"),
            OptionDefinition::new("variant", Kind::String, None, "Which"),
            OptionDefinition::new("extra", Kind::List, Some(""), "More"),
        ];
        assert_eq!(
            test_options("mine", &options),
            "mine options:\n  --tables=N          Tables [1]\n  --skip_trx[=on|off] No BEGIN [off]\n  \
             --variant=STRING    Which\n  --extra=[LIST,...]  More []\n\n"
        );
    }

    #[test]
    fn every_option_is_listed_once_and_extensions_are_not() {
        for compat in [Compat::V1_0, Compat::V1_1] {
            let text = general(compat);
            for option in options::all(compat) {
                let head = format!("  --{}{}", option.name, suffix(option.kind));
                let listed = text.lines().filter(|line| line.split(' ').nth(2) == Some(head.trim())).count();
                let is_extension = options::EXTENSIONS.iter().any(|extension| extension.name == option.name);
                assert_eq!(listed, usize::from(!is_extension), "{}", option.name);
            }
        }
        assert!(!general(Compat::V1_1).contains("--num-threads"));
    }
}
