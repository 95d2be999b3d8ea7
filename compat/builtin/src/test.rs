//! The interface of a built-in test.

use std::sync::Arc;

use dbdyno_random::Rng;
use dbdyno_sysbench::log::Level;
use dbdyno_sysbench::option_definition::OptionDefinition;
use dbdyno_sysbench::registry::Registry;
use dbdyno_sysbench::report::{TestReport, Totals};
use dbdyno_sysbench::settings::Settings;

/// A line of the log. The log adds the prefix for its level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub level: Level,
    pub text: String,
}

impl Line {
    pub fn fatal(text: impl Into<String>) -> Self {
        Self { level: Level::Fatal, text: text.into() }
    }

    pub fn warning(text: impl Into<String>) -> Self {
        Self { level: Level::Warning, text: text.into() }
    }

    pub fn notice(text: impl Into<String>) -> Self {
        Self { level: Level::Notice, text: text.into() }
    }

    pub fn info(text: impl Into<String>) -> Self {
        Self { level: Level::Info, text: text.into() }
    }
}

/// Why a command of a test fails; the exit code is 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestError {
    /// One line for standard error, without a log prefix, for example about an invalid number.
    Usage(String),
    Log(Vec<Line>),
    /// A required option is missing. The message is a fatal line, followed by the list of the test's options.
    Missing(String),
    /// The test does not have the command.
    NoCommand,
}

impl TestError {
    /// An error that consists of one fatal line.
    pub fn fatal(text: impl Into<String>) -> Self {
        TestError::Log(vec![Line::fatal(text)])
    }
}

impl From<String> for TestError {
    fn from(usage: String) -> Self {
        TestError::Usage(usage)
    }
}

impl From<Vec<Line>> for TestError {
    fn from(lines: Vec<Line>) -> Self {
        TestError::Log(lines)
    }
}

#[derive(Clone, Copy)]
pub struct Parameters<'a> {
    /// Tests read integers by names with underscores, because sysbench's messages show those names.
    pub options: &'a Registry,
    pub settings: &'a Settings,
    pub seed: u64,
}

/// A test before its options are known.
pub trait Test: Sync {
    /// The test's name on the command line.
    fn name(&self) -> &'static str;

    fn declared(&self) -> Vec<OptionDefinition>;

    fn configure(&self, parameters: Parameters<'_>) -> Result<Box<dyn ConfiguredTest>, TestError>;

    /// Creates the files of the test.
    fn prepare(&self, _parameters: Parameters<'_>, _log: &mut dyn FnMut(Line)) -> Result<(), TestError> {
        Err(TestError::NoCommand)
    }

    /// Removes the files that [`Test::prepare`] created.
    fn cleanup(&self, _parameters: Parameters<'_>, _log: &mut dyn FnMut(Line)) -> Result<(), TestError> {
        Err(TestError::NoCommand)
    }
}

/// A test whose options are known.
pub trait ConfiguredTest: Send + Sync {
    /// Lines that describe the settings, printed before a run.
    fn mode_lines(&self) -> Vec<Line> {
        Vec::new()
    }

    /// Creates the state that all threads share.
    fn open(&self) -> Result<Arc<dyn OpenTest>, Vec<Line>>;

    fn report(&self, _tally: &Totals, _work: Work) -> TestReport {
        TestReport::default()
    }
}

/// The state of a test that all threads of a run share.
pub trait OpenTest: Send + Sync {
    /// Whether `--events` limits the run; otherwise the test ends itself.
    fn counts_events(&self) -> bool {
        true
    }

    /// Called by the thread that uses the runner.
    fn runner(self: Arc<Self>, thread: u32, rng: Rng) -> Result<Box<dyn Runner>, Vec<Line>>;
}

/// The work of one thread. An error ends the run without a report.
pub trait Runner {
    /// Chooses the next event; returns false if there is none. The event's latency does not include this call.
    fn next(&mut self) -> bool {
        true
    }

    fn event(&mut self) -> Result<Work, Vec<Line>>;

    /// Completes work that is pending after the last event, such as asynchronous requests. This does not count as an
    /// event.
    fn finish(&mut self) -> Result<Work, Vec<Line>> {
        Ok(Work::default())
    }
}

/// What a thread has done: numbers of reads, writes and syncs, and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub reads: u64,
    pub writes: u64,
    /// Number of fsync and fdatasync calls.
    pub syncs: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// The text for a failed system call, in sysbench's format.
pub(crate) fn errno(error: &std::io::Error) -> String {
    let text = error.to_string();
    let message = text.split(" (os error").next().unwrap_or_default();
    format!("errno = {} ({message})", error.raw_os_error().unwrap_or(0))
}

impl std::ops::AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        let Self { reads, writes, syncs, read_bytes, written_bytes } = other;
        self.reads += reads;
        self.writes += writes;
        self.syncs += syncs;
        self.read_bytes += read_bytes;
        self.written_bytes += written_bytes;
    }
}
