//! Standard output, shared by the log, the reports and scripts. A lock keeps their lines in order.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use dbdyno_schema::record::Warning;
use dbdyno_sysbench::commandline::CommandLine;
use dbdyno_sysbench::log::{Level, Log};
use dbdyno_sysbench::option_definition::OptionDefinition;
use dbdyno_sysbench::settings::Settings;
use signal_hook::consts::SIGPIPE;

use crate::output;

/// Standard output, once [`reserve_output`] has reserved it for machine-readable reports.
static REPORTS: OnceLock<File> = OnceLock::new();

/// Reserves standard output for [`report`]; everything else goes to standard error.
pub(super) fn reserve_output() -> io::Result<()> {
    let _ = REPORTS.set(output::take()?);
    Ok(())
}

pub(super) fn report(text: &str) {
    match REPORTS.get() {
        Some(mut output) => check_pipe(output.write_all(text.as_bytes())),
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
        self.write(|log| log.line(level, text));
    }

    /// Calls `write` with the log and prints the text that it returns.
    pub(super) fn write(&self, write: impl FnOnce(&mut Log) -> String) {
        let mut log = self.lock();
        print(&write(&mut log));
    }

    /// Prints a warning that sysbench does not have to standard error, unless the log level hides warnings.
    pub(super) fn warn(&self, warning: &Warning) {
        if self.lock().shows(Level::Warning) {
            eprintln!("{}\n  {}", warning.text, warning.fix);
        }
    }

    /// Writes to standard output at any log level.
    pub(super) fn print(&self, text: &str) {
        let _lock = self.lock();
        print(text);
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Prints and flushes. On a closed pipe the process dies of SIGPIPE, which Rust ignores by default.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    check_pipe(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

fn check_pipe(result: io::Result<()>) {
    if result.is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        let _ = signal_hook::low_level::emulate_default_handler(SIGPIPE);
    }
}

/// Declares the options of a test, and prints the notes that this adds to the command line.
pub(super) fn declare(line: &mut CommandLine, declared: &[OptionDefinition]) -> Result<(), String> {
    let printed = line.notes.len();
    line.declare(declared)?;
    line.notes[printed..].iter().for_each(|note| eprintln!("{note}"));
    Ok(())
}
