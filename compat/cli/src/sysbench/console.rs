//! Standard output, shared by whoever has something to tell: the log and what scripts print stay in order.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use dbdyno_schema::record::Warning;
use dbdyno_sysbench::log::{Level, Log};
use dbdyno_sysbench::settings::Settings;
use signal_hook::consts::SIGPIPE;

use crate::output;

/// The standard output that was there at the start, where reports for programs have it for themselves.
static REPORTS: OnceLock<File> = OnceLock::new();

/// Gives standard output to reports for programs alone.
///
/// # Errors
/// The system's refusal.
pub(super) fn keep_output_for_reports() -> io::Result<()> {
    let _ = REPORTS.set(output::take()?);
    Ok(())
}

/// Writes a report for programs.
pub(super) fn report(text: &str) {
    match REPORTS.get() {
        Some(mut output) => written(output.write_all(text.as_bytes())),
        None => print(text),
    }
}

/// Standard output with its log.
#[derive(Clone)]
pub(super) struct Console {
    log: Arc<Mutex<Log>>,
}

impl Console {
    pub(super) fn new(settings: &Settings) -> Self {
        Self { log: Arc::new(Mutex::new(Log::new(settings.verbosity))) }
    }

    /// Writes a line to the log, under its verbosity.
    pub(super) fn log(&self, level: Level, text: &str) {
        self.say(|log| log.line(level, text));
    }

    /// Writes what a function makes of the log.
    pub(super) fn say(&self, make: impl FnOnce(&mut Log) -> String) {
        let mut log = self.lock();
        print(&make(&mut log));
    }

    /// Writes to standard error what the original never says, unless warnings are unwanted.
    pub(super) fn warn(&self, warning: &Warning) {
        if self.lock().shows(Level::Warning) {
            eprintln!("{}\n  {}", warning.text, warning.hint);
        }
    }

    /// Writes to standard output, whatever the verbosity.
    pub(super) fn print(&self, text: &str) {
        let _in_order = self.lock();
        print(text);
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Prints a text at once. Where nobody reads any more the process ends as programs do that know nothing of it.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

fn written(done: io::Result<()>) {
    if done.is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        let _ = signal_hook::low_level::emulate_default_handler(SIGPIPE);
    }
}
