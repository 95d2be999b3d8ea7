//! The words that all tests share.

use std::sync::Arc;

use dbdyno_random::Rng;
use dbdyno_schema::plan::Distribution;
use dbdyno_sysbench::declaration::Declared;

/// How important a line is, as the log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The command ends.
    Fatal,
    /// Something looks wrong.
    Warning,
    /// What everybody sees.
    Notice,
    /// Details.
    Info,
}

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// How important it is.
    pub level: Level,
    /// What it says, without its level's name.
    pub text: String,
}

impl Line {
    /// A line that ends the command.
    pub fn fatal(text: impl Into<String>) -> Self {
        Self { level: Level::Fatal, text: text.into() }
    }

    /// A line that says what may be wrong.
    pub fn warning(text: impl Into<String>) -> Self {
        Self { level: Level::Warning, text: text.into() }
    }

    /// A line that everybody sees.
    pub fn notice(text: impl Into<String>) -> Self {
        Self { level: Level::Notice, text: text.into() }
    }

    /// A line for those who want details.
    pub fn info(text: impl Into<String>) -> Self {
        Self { level: Level::Info, text: text.into() }
    }
}

/// Why a test cannot do what it is asked for; the exit code is 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A line for standard error: an option is no number.
    Usage(String),
    /// Lines for the log.
    Said(Vec<Line>),
    /// A line for the log, and the list of the test's options under it: one that is needed is missing.
    Missing(String),
    /// The test has no such command.
    NoCommand,
}

impl Fault {
    /// One fatal line.
    pub fn fatal(text: impl Into<String>) -> Self {
        Fault::Said(vec![Line::fatal(text)])
    }
}

/// Values of options, by name and by the type in which they are asked for.
pub trait Given {
    /// Whether it is on.
    fn bool(&self, name: &str) -> bool;
    /// A signed 32-bit number; 0 without a value.
    ///
    /// # Errors
    /// The value is none.
    fn int(&self, name: &str) -> Result<i32, Fault>;
    /// Bytes; 0 without a value.
    fn size(&self, name: &str) -> u64;
    /// A floating-point number; 0 without a value.
    fn double(&self, name: &str) -> f64;
    /// A string, where there is one.
    fn string(&self, name: &str) -> Option<&str>;
    /// All values.
    fn list(&self, name: &str) -> &[String];
}

/// What sysbench's own options mean to a test.
#[derive(Clone, Debug, PartialEq)]
pub struct General {
    /// Threads.
    pub threads: u32,
    /// Limit of events as it was given; 0 for none.
    pub events: u64,
    /// Seeds what is drawn outside a run.
    pub seed: u64,
    /// Whether what is read is checked.
    pub validate: bool,
    /// Whether it is to be like sysbench 1.1, and not like 1.0.
    pub newer: bool,
    /// How places are drawn where the newer one asks its options for that.
    pub keys: Distribution,
}

/// A test, before its options are known.
pub trait Test: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Its options.
    fn declared(&self) -> Vec<Declared>;

    /// The test with these options.
    ///
    /// # Errors
    /// An option's value cannot be used.
    fn configure(&self, given: &dyn Given, general: General) -> Result<Box<dyn Configured>, Fault>;

    /// Makes what the test works on.
    ///
    /// # Errors
    /// Its options cannot be used, or it cannot be made; or there is nothing to make.
    fn prepare(&self, given: &dyn Given, general: General, say: &mut dyn FnMut(Line)) -> Result<(), Fault> {
        let _ = (given, general, say);
        Err(Fault::NoCommand)
    }

    /// Removes what [`Test::prepare`] has made.
    ///
    /// # Errors
    /// As there.
    fn cleanup(&self, given: &dyn Given, general: General, say: &mut dyn FnMut(Line)) -> Result<(), Fault> {
        let _ = (given, general, say);
        Err(Fault::NoCommand)
    }
}

/// A test whose options are known: what it does and what is told of it.
pub trait Configured: Send + Sync {
    /// Lines that say what is about to be done.
    fn mode_lines(&self) -> Vec<Line> {
        Vec::new()
    }

    /// Opens what all threads share.
    ///
    /// # Errors
    /// It is not there, or not as it should be.
    fn open(&self) -> Result<Arc<dyn Bench>, Vec<Line>>;

    /// An interval's figures in place of the usual ones, without the time before them.
    fn interval(&self, part: &Part) -> Option<String> {
        let _ = part;
        None
    }

    /// Lines before the general part of a full report.
    fn total(&self, part: &Part) -> Vec<String> {
        let _ = part;
        Vec::new()
    }

    /// Whether those lines stand in place of the general part and of the threads' fairness.
    fn stands_for_general(&self) -> bool {
        false
    }

    /// The same figures by name, for reports that programs read: always the same names in the same order.
    fn figures(&self, part: &Part) -> Vec<(&'static str, f64)> {
        let _ = part;
        Vec::new()
    }
}

/// What all threads of a run share.
pub trait Bench: Send + Sync {
    /// Whether the run's limit of events holds; otherwise the test knows by itself when it is done.
    fn counts_events(&self) -> bool {
        true
    }

    /// What thread `number` does. Called on that thread.
    ///
    /// # Errors
    /// It cannot begin.
    fn runner(&self, number: u32, rng: Rng) -> Result<Box<dyn Runner>, Vec<Line>>;
}

/// What one thread does.
pub trait Runner {
    /// Chooses what the next event is; false where there is none any more. This is no part of an event's latency.
    fn next(&mut self) -> bool {
        true
    }

    /// Does it.
    ///
    /// # Errors
    /// It failed: the run is over, without a report.
    fn event(&mut self) -> Result<Work, Vec<Line>>;

    /// Does what is left to be done after the last event. It counts as work, but is no event.
    ///
    /// # Errors
    /// As in [`Runner::event`].
    fn finish(&mut self) -> Result<Work, Vec<Line>> {
        Ok(Work::default())
    }
}

/// What was read, written and synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Calls that write to the disk what the system holds back.
    pub syncs: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
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

/// What was counted in a part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    /// Its length.
    pub seconds: f64,
    /// Events that ended.
    pub events: u64,
    /// What they did.
    pub work: Work,
    /// The first percentile that was asked for, and its value in milliseconds; `None` where none was.
    pub percentile: Option<(f64, f64)>,
}

impl Part {
    /// So many a second; 0 where no time has passed.
    pub fn rate(&self, count: f64) -> f64 {
        if self.seconds > 0.0 { count / self.seconds } else { 0.0 }
    }
}
