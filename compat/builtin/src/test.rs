//! The interface of a built-in test.

use std::sync::Arc;

use dbdyno_random::Rng;
use dbdyno_sysbench::log::Level;
use dbdyno_sysbench::option_definition::OptionDefinition;
use dbdyno_sysbench::registry::Registry;
use dbdyno_sysbench::report::{TestReport, Totals};
use dbdyno_sysbench::settings::Settings;

/// A message for the log, which adds the prefix of its level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogMessage {
    pub level: Level,
    pub text: String,
}

impl LogMessage {
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
    /// One line for standard error, for example about an invalid number. It does not go through the log.
    Usage(String),
    Log(Vec<LogMessage>),
    /// A required option is missing. The list of the test's options follows this fatal message.
    MissingOption(String),
    /// The test does not implement the command.
    UnsupportedCommand,
}

impl TestError {
    /// An error with one fatal message.
    pub fn fatal(text: impl Into<String>) -> Self {
        TestError::Log(vec![LogMessage::fatal(text)])
    }
}

impl From<String> for TestError {
    fn from(usage: String) -> Self {
        TestError::Usage(usage)
    }
}

impl From<Vec<LogMessage>> for TestError {
    fn from(messages: Vec<LogMessage>) -> Self {
        TestError::Log(messages)
    }
}

#[derive(Clone, Copy)]
pub struct Parameters<'a> {
    /// The values of the options. Tests read integers by names with underscores, because sysbench's messages show
    /// those names.
    pub values: &'a Registry,
    pub settings: &'a Settings,
    pub seed: u64,
}

/// A test before its options are known.
pub trait Test: Sync {
    /// The test's name on the command line.
    fn name(&self) -> &'static str;

    fn option_definitions(&self) -> Vec<OptionDefinition>;

    fn configure(&self, parameters: Parameters<'_>) -> Result<Box<dyn ConfiguredTest>, TestError>;

    /// Creates the files of the test.
    fn prepare(
        &self,
        _parameters: Parameters<'_>,
        _log: &mut dyn FnMut(LogMessage),
    ) -> Result<(), TestError> {
        Err(TestError::UnsupportedCommand)
    }

    /// Removes the files that [`Test::prepare`] created.
    fn cleanup(
        &self,
        _parameters: Parameters<'_>,
        _log: &mut dyn FnMut(LogMessage),
    ) -> Result<(), TestError> {
        Err(TestError::UnsupportedCommand)
    }
}

/// A test whose options are known.
pub trait ConfiguredTest: Send + Sync {
    /// Messages that describe the settings, printed before a run.
    fn header_lines(&self) -> Vec<LogMessage> {
        Vec::new()
    }

    fn create_shared_state(&self) -> Result<Arc<dyn SharedState>, Vec<LogMessage>>;

    fn report(&self, _totals: &Totals, _io: IoCounts) -> TestReport {
        TestReport::default()
    }
}

/// The state of a test that all threads of a run share.
pub trait SharedState: Send + Sync {
    /// Whether `--events` limits the run; otherwise the test ends itself.
    fn uses_event_limit(&self) -> bool {
        true
    }

    /// Creates the runner of a thread. That thread calls this function.
    fn create_runner(self: Arc<Self>, thread: u32, rng: Rng) -> Result<Box<dyn Runner>, Vec<LogMessage>>;
}

/// Executes the events of one thread. An error ends the run without a report.
pub trait Runner {
    /// Prepares the next event; returns false if there is none. The event's latency does not include this call.
    fn prepare_event(&mut self) -> bool {
        true
    }

    fn execute_event(&mut self) -> Result<IoCounts, Vec<LogMessage>>;

    /// Completes the requests that are pending after the last event. This does not count as an event.
    fn finish(&mut self) -> Result<IoCounts, Vec<LogMessage>> {
        Ok(IoCounts::default())
    }
}

/// The I/O of an event or of a period: numbers of calls and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounts {
    pub reads: u64,
    pub writes: u64,
    /// Number of fsync and fdatasync calls.
    pub syncs: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// The error of a failed system call, in sysbench's format.
pub(crate) fn errno_text(error: &std::io::Error) -> String {
    let error_text = error.to_string();
    let message = error_text.split(" (os error").next().unwrap_or_default();
    format!("errno = {} ({message})", error.raw_os_error().unwrap_or(0))
}

impl std::ops::AddAssign for IoCounts {
    fn add_assign(&mut self, other: Self) {
        let Self { reads, writes, syncs, read_bytes, written_bytes } = other;
        self.reads += reads;
        self.writes += writes;
        self.syncs += syncs;
        self.read_bytes += read_bytes;
        self.written_bytes += written_bytes;
    }
}
