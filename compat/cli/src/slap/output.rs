//! Standard output and the file of CSV.

use std::fs::File;
use std::io::Write;

use dbdyno_slap::Refused;
use dbdyno_slap::report::{Of, Times};
use dbdyno_slap::settings::{Csv, Settings};

use crate::exit::FAILED;

/// Where reports go.
pub(super) enum Output {
    /// Nowhere.
    Silent,
    /// To standard output, for people.
    Text,
    /// To standard output, as CSV.
    Csv,
    /// To the end of a file, as CSV.
    File(File),
}

impl Output {
    /// What the options ask for.
    pub(super) fn open(program: &str, settings: &Settings) -> Result<Self, Refused> {
        match &settings.csv {
            Some(Csv::Output) => Ok(Output::Csv),
            Some(Csv::File(path)) => {
                let opened = File::options().append(true).create(true).open(path);
                opened.map(Output::File).map_err(|error| Refused {
                    text: format!("{program}: Could not open csv file: {path}: {error}"),
                    code: FAILED,
                })
            }
            None if settings.silent => Ok(Output::Silent),
            None => Ok(Output::Text),
        }
    }

    /// Writes the report of some times.
    pub(super) fn report(&mut self, times: &Times, of: &Of) -> std::io::Result<()> {
        match self {
            Output::Silent => Ok(()),
            Output::Text => {
                print(&times.text(of));
                Ok(())
            }
            Output::Csv => {
                print(&times.csv(of));
                Ok(())
            }
            Output::File(file) => file.write_all(times.csv(of).as_bytes()),
        }
    }
}

/// Prints a text at once.
pub(super) fn print(text: &str) {
    crate::sysbench::print(text);
}
