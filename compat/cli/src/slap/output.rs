//! Writes reports to standard output or to the CSV file.

use std::fs::File;
use std::io::Write;

use dbdyno_slap::UsageError;
use dbdyno_slap::report::{Labels, Times};
use dbdyno_slap::settings::{Csv, Settings};

use crate::system::FAILED;

/// The destination of reports.
pub(super) enum Output {
    Silent,
    /// Text on standard output.
    Text,
    /// CSV on standard output.
    Csv,
    /// CSV, appended to a file.
    File(File),
}

impl Output {
    pub(super) fn open(program: &str, settings: &Settings) -> Result<Self, UsageError> {
        match &settings.csv {
            Some(Csv::Output) => Ok(Output::Csv),
            Some(Csv::File(path)) => {
                let opened = File::options().append(true).create(true).open(path);
                opened.map(Output::File).map_err(|error| UsageError {
                    text: format!("{program}: Could not open csv file: {path}: {error}"),
                    code: FAILED,
                })
            }
            None if settings.silent => Ok(Output::Silent),
            None => Ok(Output::Text),
        }
    }

    pub(super) fn report(&mut self, times: &Times, labels: &Labels<'_>) -> std::io::Result<()> {
        match self {
            Output::Silent => Ok(()),
            Output::Text => {
                print(&times.text(labels));
                Ok(())
            }
            Output::Csv => {
                print(&times.csv(labels));
                Ok(())
            }
            Output::File(file) => file.write_all(times.csv(labels).as_bytes()),
        }
    }
}

pub(super) use crate::sysbench::print;
