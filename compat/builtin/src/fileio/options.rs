//! The options of `fileio`, and the messages that describe them before a run.

use dbdyno_sysbench::Compat;
use dbdyno_sysbench::option_definition::{Kind, OptionDefinition};
use dbdyno_sysbench::registry::Registry;

use super::checksum::TRAILER_BYTES;
use crate::test::{LogMessage, Parameters, TestError};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    SeqWrite,
    SeqRewrite,
    #[default]
    SeqRead,
    RandomRead,
    RandomWrite,
    RandomMixed,
}

impl Mode {
    pub(super) fn is_random(self) -> bool {
        matches!(self, Mode::RandomRead | Mode::RandomWrite | Mode::RandomMixed)
    }

    pub(super) fn has_writes(self) -> bool {
        !matches!(self, Mode::SeqRead | Mode::RandomRead)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum IoMode {
    #[default]
    Sync,
    Async,
    Mapped,
}

/// The value of `--file-extra-flags`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) sync: bool,
    pub(super) dsync: bool,
    pub(super) direct: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Options {
    pub(super) files: usize,
    pub(super) file_bytes: u64,
    pub(super) total_bytes: u64,
    pub(super) block_bytes: u64,
    pub(super) mode: Mode,
    pub(super) io_mode: IoMode,
    /// Maximum number of concurrent requests of a thread in I/O mode async.
    pub(super) backlog: usize,
    pub(super) flags: Flags,
    /// Number of requests between two syncs of all files; 0 for never.
    pub(super) sync_every: u64,
    /// Whether to sync a file after every write to it.
    pub(super) sync_each_write: bool,
    /// Whether every thread syncs all files when it ends.
    pub(super) sync_at_end: bool,
    /// Whether to call fdatasync instead of fsync.
    pub(super) use_fdatasync: bool,
    /// Maximum number of blocks in a sequential request; 0 and 1 both mean one block.
    pub(super) merged_blocks: u64,
    /// Number of reads per write in mode rndrw.
    pub(super) rw_ratio: f64,
    pub(super) validate: bool,
    /// The maximum number of events in the run.
    pub(super) events: u64,
    /// The first percentile that `--percentile` lists.
    pub(super) percentile: Option<f64>,
    pub(super) compat: Compat,
    pub(super) seed: u64,
}

/// Why the options are read; only a run requires a test mode.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Run,
    /// The commands `prepare` and `cleanup`.
    ManageFiles,
}

pub(super) fn option_definitions() -> Vec<OptionDefinition> {
    let option = |name, kind, default, help| OptionDefinition::new(name, kind, default, help);
    use Kind::{Bool, Double, Int, List, Size, String};
    vec![
        option("file-num", Int, Some("128"), "number of files"),
        option("file-block-size", Int, Some("16384"), "bytes per request"),
        option("file-total-size", Size, Some("2G"), "total size of the files"),
        option("file-test-mode", String, None, "operation {seqwr, seqrewr, seqrd, rndrd, rndwr, rndrw}"),
        option("file-io-mode", String, Some("sync"), "I/O mode {sync,async,mmap}"),
        option(
            "file-async-backlog",
            Int,
            Some("128"),
            "maximum concurrent requests of a thread, in I/O mode async",
        ),
        option("file-extra-flags", List, Some(""), "flags for opening the files {sync,dsync,direct}"),
        option(
            "file-fsync-freq",
            Int,
            Some("100"),
            "number of requests between two syncs of all files; 0 for never",
        ),
        option("file-fsync-all", Bool, Some("off"), "sync a file after every write to it"),
        option("file-fsync-end", Bool, Some("on"), "sync all files at the end"),
        option("file-fsync-mode", String, Some("fsync"), "function for syncing {fsync, fdatasync}"),
        option(
            "file-merged-requests",
            Int,
            Some("0"),
            "maximum number of blocks in a sequential request; 0 for no merging",
        ),
        option("file-rw-ratio", Double, Some("1.5"), "number of reads per write, in test mode rndrw"),
    ]
}

impl Options {
    /// Reads the options in the order in which sysbench checks them.
    pub(super) fn read(parameters: Parameters<'_>, purpose: Purpose) -> Result<Self, TestError> {
        let Parameters { values, settings, seed } = parameters;
        let files = values.int("file_num")?;
        if files <= 0 {
            return Err(TestError::fatal(format!("Invalid value for file-num: {files}")));
        }
        let total_bytes = values.size("file-total-size");
        if total_bytes == 0 {
            let value = values.string("file-total-size").unwrap_or("(null)");
            return Err(TestError::fatal(format!("Invalid value for file-total-size: {value}")));
        }
        let mode = if purpose == Purpose::Run {
            parse_mode(values.string("file-test-mode"))?
        } else {
            Mode::default()
        };
        let flags = parse_flags(values.list("file-extra-flags"))?;
        let io_mode = parse_io_mode(values.string("file-io-mode").unwrap_or_default())?;
        let merged_blocks = non_negative_int(values, "file-merged-requests")?;
        let block_bytes = values.size("file-block-size");
        if block_bytes == 0 || block_bytes > i32::MAX as u64 {
            return Err(TestError::fatal(format!("Invalid value for file-block-size: {block_bytes}.")));
        }
        let sync_every = non_negative_int(values, "file-fsync-freq")?;
        let use_fdatasync = match values.string("file-fsync-mode").unwrap_or_default() {
            "fsync" => false,
            "fdatasync" => true,
            other => return Err(TestError::fatal(format!("Invalid fsync mode: {other}."))),
        };
        let rw_ratio = values.double("file-rw-ratio");
        if rw_ratio < 0.0 {
            return Err(TestError::fatal(format!("Invalid value for --file-rw-ratio: {rw_ratio:.6}.")));
        }
        let backlog = values.int("file_async_backlog")?;
        if io_mode == IoMode::Async && backlog <= 0 {
            return Err(TestError::fatal(format!("Invalid value of file-async-backlog: {backlog}")));
        }
        let options = Self {
            files: files as usize,
            file_bytes: total_bytes / files as u64,
            total_bytes,
            block_bytes,
            mode,
            io_mode,
            backlog: backlog.max(0) as usize,
            flags,
            sync_every,
            sync_each_write: values.bool("file-fsync-all"),
            sync_at_end: values.bool("file-fsync-end") && !values.bool("file-fsync-all"),
            use_fdatasync,
            merged_blocks,
            rw_ratio,
            validate: settings.validate,
            events: settings.events,
            percentile: settings.percentiles.first().copied(),
            compat: settings.compat,
            seed,
        };
        options.find_conflict(purpose).map_or(Ok(options), |error| Err(TestError::fatal(error)))
    }

    /// Returns the error of options that sysbench accepts together although the run then fails with a less clear message.
    fn find_conflict(&self, purpose: Purpose) -> Option<String> {
        let Self { file_bytes, block_bytes, files, total_bytes, .. } = *self;
        if purpose == Purpose::Run && file_bytes == 0 {
            return Some(format!(
                "Invalid value for file-total-size: {total_bytes} bytes are less than one byte for each of {files} files"
            ));
        }
        if !self.validate {
            return None;
        }
        if block_bytes <= TRAILER_BYTES as u64 {
            return Some(format!(
                "Invalid value for file-block-size: {block_bytes}; --validate needs more than {TRAILER_BYTES} bytes in a block"
            ));
        }
        (file_bytes % block_bytes != 0).then(|| {
            format!(
                "Invalid value for file-total-size: a file has {file_bytes} bytes, and --validate needs whole blocks of \
                 {block_bytes}"
            )
        })
    }

    /// Maximum number of bytes in a request.
    pub(super) fn request_bytes(&self) -> usize {
        self.block_bytes.saturating_mul(self.merged_blocks.max(1)).min(self.file_bytes.max(self.block_bytes))
            as usize
    }

    /// The message that lists the flags, with the trailing space that sysbench prints.
    pub(super) fn flags_message(&self) -> LogMessage {
        let Flags { sync, dsync, direct } = self.flags;
        let names = [(sync, "sync "), (dsync, "dsync "), (direct, "directio")];
        let text: String = names.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| *name).collect();
        let text = if text.is_empty() { "(none)".into() } else { text };
        LogMessage::notice(format!("Extra file open flags: {text}"))
    }

    pub(super) fn header_lines(&self) -> Vec<LogMessage> {
        let mut lines = vec![
            format!("{} files, {} each", self.files, format_size(self.file_bytes)),
            // May be less than --file-total-size.
            format!("{} total file size", format_size(self.file_bytes * self.files as u64)),
            format!("Block size {}", format_size(self.block_bytes)),
        ];
        if self.merged_blocks > 0 {
            let merged = format_size(self.block_bytes * self.merged_blocks);
            lines.push(format!("Merging requests up to {merged} for sequential IO."));
        }
        if self.mode.is_random() {
            lines.push(format!("Number of IO requests: {}", self.events));
            lines.push(format!("Read/Write ratio for combined random IO test: {:2.2}", self.rw_ratio));
        }
        if self.sync_each_write {
            lines.push("Calling fsync() after each write operation.".into());
        } else if self.sync_every > 0 {
            lines.push(format!("Periodic FSYNC enabled, calling fsync() each {} requests.", self.sync_every));
        }
        if self.sync_at_end {
            lines.push("Calling fsync() at the end of test, Enabled.".into());
        }
        lines.push(match self.io_mode {
            IoMode::Sync => "Using synchronous I/O mode".into(),
            IoMode::Async => "Using asynchronous I/O mode".into(),
            IoMode::Mapped => "Using fast mmaped I/O mode".into(),
        });
        if self.validate {
            lines.push("Using checksums validation.".into());
        }
        let name = match self.mode {
            Mode::SeqWrite => "sequential write (creation)",
            Mode::SeqRewrite => "sequential rewrite",
            Mode::SeqRead => "sequential read",
            Mode::RandomRead => "random read",
            Mode::RandomWrite => "random write",
            Mode::RandomMixed => "random r/w",
        };
        lines.push(format!("Doing {name} test"));
        std::iter::once(self.flags_message()).chain(lines.into_iter().map(LogMessage::notice)).collect()
    }
}

fn parse_mode(name: Option<&str>) -> Result<Mode, TestError> {
    match name {
        Some("seqwr") => Ok(Mode::SeqWrite),
        Some("seqrewr") => Ok(Mode::SeqRewrite),
        Some("seqrd") => Ok(Mode::SeqRead),
        Some("rndrd") => Ok(Mode::RandomRead),
        Some("rndwr") => Ok(Mode::RandomWrite),
        Some("rndrw") => Ok(Mode::RandomMixed),
        Some(other) => Err(TestError::fatal(format!("Invalid IO operations mode: {other}."))),
        None => Err(TestError::MissingOption("Missing required argument: --file-test-mode".into())),
    }
}

fn parse_io_mode(name: &str) -> Result<IoMode, TestError> {
    match name {
        "sync" => Ok(IoMode::Sync),
        "async" => Ok(IoMode::Async),
        "mmap" => Ok(IoMode::Mapped),
        other => Err(TestError::fatal(format!("unknown I/O mode: {other}"))),
    }
}

fn parse_flags(names: &[String]) -> Result<Flags, TestError> {
    let mut flags = Flags::default();
    for name in names {
        match name.as_str() {
            "sync" => flags.sync = true,
            "dsync" => flags.dsync = true,
            "direct" => flags.direct = true,
            _ => return Err(TestError::fatal(format!("Invalid value for file-extra-flags: {name}"))),
        }
    }
    Ok(flags)
}

fn non_negative_int(values: &Registry, name: &str) -> Result<u64, TestError> {
    let number = values.int(&name.replace('-', "_"))?;
    u64::try_from(number).map_err(|_| TestError::fatal(format!("Invalid value for {name}: {number}.")))
}

/// Formats a size with at most five significant digits, in the largest unit in which the value is at least 1.
pub(super) fn format_size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (1..units.len()).rev().find(|&power| bytes >= 1 << (10 * power)).unwrap_or(0);
    let value = bytes as f64 / 1024f64.powi(power as i32);
    let integer_digits = value.log10().max(0.0) as usize + 1;
    let text = format!("{value:.*}", 5usize.saturating_sub(integer_digits));
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{}", units[power])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are those of sysbench 1.0.20.
    #[test]
    fn sizes_have_at_most_five_digits() {
        let printed = [
            (0, "0B"),
            (16 << 10, "16KiB"),
            (60_000, "58.594KiB"),
            (120_000, "117.19KiB"),
            (5000, "4.8828KiB"),
            (1 << 20, "1MiB"),
            (20_000, "19.531KiB"),
            (2 << 30, "2GiB"),
            (1023, "1023B"),
        ];
        for (bytes, text) in printed {
            assert_eq!(format_size(bytes), text);
        }
    }

    #[test]
    fn messages_before_a_run() {
        let options = Options {
            files: 2,
            file_bytes: 64 << 10,
            total_bytes: 128 << 10,
            block_bytes: 16 << 10,
            mode: Mode::RandomMixed,
            flags: Flags { sync: true, direct: true, dsync: false },
            sync_every: 100,
            sync_at_end: true,
            rw_ratio: 1.5,
            events: 3,
            ..Options::default()
        };
        let lines: Vec<_> = options.header_lines().into_iter().map(|line| line.text).collect();
        assert_eq!(
            lines,
            [
                "Extra file open flags: sync directio",
                "2 files, 64KiB each",
                "128KiB total file size",
                "Block size 16KiB",
                "Number of IO requests: 3",
                "Read/Write ratio for combined random IO test: 1.50",
                "Periodic FSYNC enabled, calling fsync() each 100 requests.",
                "Calling fsync() at the end of test, Enabled.",
                "Using synchronous I/O mode",
                "Doing random r/w test",
            ]
        );
    }
}
