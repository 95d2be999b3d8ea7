//! Standard output, shared by the log, the reports and scripts. A lock keeps their lines in order.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use dbdyno_schema::record::Warning;
use dbdyno_sysbench::commandline::CommandLine;
use dbdyno_sysbench::log::{Level, Log};
use dbdyno_sysbench::option_definition::OptionDefinition;
use dbdyno_sysbench::settings::Settings;

use crate::output;

/// Standard output, after [`reserve_output`] has reserved it for machine-readable reports.
static REPORT_OUTPUT: OnceLock<File> = OnceLock::new();

/// Reserves standard output for [`print_report`]; all other output goes to standard error.
pub(super) fn reserve_output() -> io::Result<()> {
    let _ = REPORT_OUTPUT.set(output::reserve()?);
    Ok(())
}

pub(super) fn print_report(text: &str) {
    match REPORT_OUTPUT.get() {
        Some(mut output) => output::check(output.write_all(text.as_bytes())),
        None => print(text),
    }
}

#[derive(Clone)]
pub(super) struct Console {
    log: Arc<Mutex<Log>>,
}

impl Console {
    pub(super) fn new(settings: &Settings) -> Self {
        Self { log: Arc::new(Mutex::new(Log::new(settings.verbosity))) }
    }

    pub(super) fn log(&self, level: Level, text: &str) {
        self.write(|log| log.format(level, text));
    }

    /// Calls `format` with the log and prints the text that `format` returns.
    pub(super) fn write(&self, format: impl FnOnce(&mut Log) -> String) {
        let mut log = self.lock();
        print(&format(&mut log));
    }

    /// Prints a warning of dbdyno to standard error, unless the log level hides warnings.
    pub(super) fn warn(&self, warning: &Warning) {
        if self.lock().is_enabled(Level::Warning) {
            eprintln!("{}\n  {}", warning.text, warning.fix);
        }
    }

    /// Prints to standard output, whatever the log level is.
    pub(super) fn print(&self, text: &str) {
        let _lock = self.lock();
        print(text);
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Prints and flushes.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    output::check(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Adds the options of a test to the command line, and prints the notes that this causes.
pub(super) fn declare(command_line: &mut CommandLine, options: &[OptionDefinition]) -> Result<(), String> {
    let printed = command_line.notes.len();
    command_line.declare(options)?;
    command_line.notes[printed..].iter().for_each(|note| eprintln!("{note}"));
    Ok(())
}
