//! Standard output, shared by whoever has something to tell: the log and what scripts print stay in order.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dbdyno_frontends::sysbench::log::{Level, Log};
use dbdyno_frontends::sysbench::settings::{Format, Settings};
use signal_hook::consts::SIGPIPE;

/// Standard output with its log.
#[derive(Clone)]
pub(super) struct Console {
    log: Arc<Mutex<Log>>,
    /// Reports for programs have standard output for themselves; the log then goes to standard error.
    log_apart: bool,
}

impl Console {
    pub(super) fn new(settings: &Settings) -> Self {
        let log = Arc::new(Mutex::new(Log::new(settings.verbosity)));
        Self { log, log_apart: settings.format != Format::Text }
    }

    /// Writes a line to the log, under its verbosity.
    pub(super) fn log(&self, level: Level, text: &str) {
        self.say(|log| log.line(level, text));
    }

    /// Writes what a function makes of the log.
    pub(super) fn say(&self, make: impl FnOnce(&mut Log) -> String) {
        let mut log = self.lock();
        let text = make(&mut log);
        if self.log_apart { eprint!("{text}") } else { print(&text) }
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
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush())
        && error.kind() == io::ErrorKind::BrokenPipe
    {
        let _ = signal_hook::low_level::emulate_default_handler(SIGPIPE);
    }
}
