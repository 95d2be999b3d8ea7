//! The interface to the application that runs a script.

use dbdyno_schema::record::Warning;
use dbdyno_sysbench::log::Level;
use dbdyno_sysbench::option_definition::{OptionDefinition, Value};

/// The application that runs a script: its output, log, options and command line. Shared by all threads.
pub trait ScriptHost: Send + Sync {
    /// Writes to standard output, in order with the reports.
    fn print(&self, text: &str);

    /// Writes the output of a script, which may not be UTF-8.
    fn print_bytes(&self, bytes: &[u8]) {
        self.print(&String::from_utf8_lossy(bytes));
    }

    /// Writes one line to the log, if the log level includes `level`.
    fn log(&self, level: Level, text: &str);

    /// Prints a warning about the run.
    fn warn(&self, warning: &Warning);

    /// Reads the options of the command line, including those that the script declares. `declared` is `None` if the
    /// script declares no options; sysbench 1.0 then accepts unknown options as strings.
    ///
    /// # Errors
    /// The message to print.
    fn read_options(&self, declared: Option<&[OptionDefinition]>) -> Result<Vec<(String, Value)>, String>;

    /// Every registered option with its value, for `sysbench.opt`; the names contain underscores instead of hyphens.
    fn options(&self) -> Vec<(String, Value)>;

    /// Prints the options that a script declares, for the command `help`.
    fn print_options(&self, declared: &[OptionDefinition]);

    /// The command line; the first element is the program's name.
    fn argv(&self) -> &[String];

    /// The command, such as `run` or `prepare`.
    fn command(&self) -> Option<&str>;

    /// The script's path on the command line; `None` for standard input.
    fn script_path(&self) -> Option<&str>;
}

/// The argument of a report hook. Counts cover the time since the last report; times and latencies are in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stat {
    /// Number of users that have not finished.
    pub threads_running: u32,
    /// Length of the interval in seconds.
    pub time_interval: f64,
    /// Time since the start in seconds.
    pub time_total: f64,
    /// The latency at the first percentile of `--percentile`.
    pub latency_pct: f64,
    /// Number of events.
    pub events: u64,
    /// Number of statements that returned rows.
    pub reads: u64,
    /// Number of statements that changed rows.
    pub writes: u64,
    /// Number of other statements.
    pub other: u64,
    /// Number of ignored errors.
    pub errors: u64,
    /// Number of times a connection was reopened.
    pub reconnects: u64,
    /// In interval reports: the number of queued and the number of running events.
    pub queue: Option<(u64, u64)>,
    /// In cumulative reports: minimum, maximum, mean and sum of the latencies.
    pub latency: Option<[f64; 4]>,
}
