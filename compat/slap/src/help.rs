//! The texts of `--help` and `--version`.

use std::fmt::Write as _;

use super::Flavour;
use super::options::{Kind, all};

pub fn text(flavour: Flavour, program: &str) -> String {
    let mut text = format!(
        "{}\n\nRuns queries repeatedly against a server from concurrent clients.\n\nUsage: {program} [OPTIONS]\n\n",
        version(flavour, program).trim_end()
    );
    for option in all(flavour) {
        let letter = option.letter.map_or("    ".to_owned(), |letter| format!("-{letter}, "));
        let value = match option.kind {
            Kind::Flag | Kind::Count => "",
            Kind::Number(_) => "=#",
            Kind::Text => "=name",
            Kind::OptionalText => "[=name]",
        };
        let _ = writeln!(text, "  {letter}--{}{value}\n                      {}", option.name, option.help);
    }
    text
}

pub fn version(flavour: Flavour, program: &str) -> String {
    let emulated = match flavour {
        Flavour::Mysql => "mysqlslap of MySQL 9.7",
        Flavour::Mariadb => "mariadb-slap of MariaDB 10.11",
    };
    format!("{program}  Ver 1.0 (dbdyno {}, with the options of {emulated})\n", env!("CARGO_PKG_VERSION"))
}
