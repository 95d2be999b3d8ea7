//! What a script needs from whoever runs it.

use dbdyno_schema::record::Warning;
use dbdyno_sysbench::declaration::{Declared, Value};

/// How important a line of the log is, in sysbench's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The run ends.
    Fatal,
    /// Something failed.
    Alert,
    /// Something looks wrong.
    Warning,
    /// What everybody sees.
    Notice,
    /// Details.
    Info,
    /// For those who look for errors.
    Debug,
}

/// The way back from a script to the front end that runs it. Shared by all threads.
pub trait Front: Send + Sync {
    /// Writes to standard output, at once and in order with the reports.
    fn print(&self, text: &str);

    /// The same for what a script prints, which need not be UTF-8.
    fn print_bytes(&self, bytes: &[u8]) {
        self.print(&String::from_utf8_lossy(bytes));
    }

    /// Writes one line to the log, under its verbosity.
    fn log(&self, level: Level, text: &str);

    /// Tells of what makes a command slower than it had to be.
    fn warn(&self, warning: &Warning);

    /// Reads the options that a script declares, and whatever else was given. `None` where the script declares none at
    /// all: then 1.0 takes unknown options as strings.
    ///
    /// # Errors
    /// The line to tell the user.
    fn read_options(&self, declared: Option<&[Declared]>) -> Result<Vec<(String, Value)>, String>;

    /// Every registered option with its value, for `sysbench.opt`; names in underscore form.
    fn options(&self) -> Vec<(String, Value)>;

    /// Lists the options that a script declares, as `help` does.
    fn print_options(&self, declared: &[Declared]);

    /// The command line; the first is the program's name.
    fn argv(&self) -> &[String];

    /// The command: `run`, `prepare` and so on.
    fn command(&self) -> Option<&str>;

    /// The script as it was given; none for one from standard input.
    fn script_path(&self) -> Option<&str>;
}

/// What a report hook is told: counts since the last report, times in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stat {
    /// Users that have not ended.
    pub threads_running: u32,
    /// Length of the interval, in seconds.
    pub time_interval: f64,
    /// Time since the start, in seconds.
    pub time_total: f64,
    /// The latency percentile asked for, in seconds.
    pub latency_pct: f64,
    /// Events.
    pub events: u64,
    /// Statements that returned rows.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    /// Other statements.
    pub other: u64,
    /// Ignored errors.
    pub errors: u64,
    /// Connections opened again.
    pub reconnects: u64,
    /// Only in interval reports: events that wait, and that are under way.
    pub queue: Option<(u64, u64)>,
    /// Only in cumulative reports: minimum, maximum, mean and sum of the latencies, in seconds.
    pub latency: Option<[f64; 4]>,
}
