//! `fileio`: files read and written, sequentially or at random.
//!
//! # Layout
//! - [`FileIo`]: the test. `options`: what is asked for, and what is told of it.
//! - `requests`: which request comes next. `player`: how a thread does it. `aio`, `mapped`: ways beside plain calls.
//! - `files`: made, opened and removed; `opened`: what threads share of them. `buffer`, `checksum`: what is in them.

mod aio;
mod buffer;
mod checksum;
mod files;
mod mapped;
mod opened;
mod options;
mod player;
mod requests;

use std::sync::Arc;

use dbdyno_random::Rng;
use dbdyno_sysbench::declaration::Declared;

use crate::test::{Bench, Configured, Fault, General, Given, Line, Part, Runner, Test, Work};
use opened::Opened;
use options::{For, Options};
use player::Player;

const MIB: f64 = 1_048_576.0;
const MB: f64 = 1_000_000.0;

/// The test.
pub struct FileIo;

impl Test for FileIo {
    fn name(&self) -> &'static str {
        "fileio"
    }

    fn declared(&self) -> Vec<Declared> {
        options::declared()
    }

    fn configure(&self, given: &dyn Given, general: General) -> Result<Box<dyn Configured>, Fault> {
        Ok(Box::new(Options::read(given, general, For::Run)?))
    }

    fn prepare(&self, given: &dyn Given, general: General, say: &mut dyn FnMut(Line)) -> Result<(), Fault> {
        files::prepare(&Options::read(given, general, For::Files)?, say)
    }

    fn cleanup(&self, given: &dyn Given, general: General, say: &mut dyn FnMut(Line)) -> Result<(), Fault> {
        files::cleanup(&Options::read(given, general, For::Files)?, say)
    }
}

impl Configured for Options {
    fn mode_lines(&self) -> Vec<Line> {
        Options::mode_lines(self)
    }

    fn open(&self) -> Result<Arc<dyn Bench>, Vec<Line>> {
        Ok(Arc::new(Files(Arc::new(Opened::new(*self)?))))
    }

    fn interval(&self, part: &Part) -> Option<String> {
        let Part { work, .. } = part;
        let mib = |bytes: u64| part.rate(bytes as f64 / MIB);
        let (percent, value_ms) = part.percentile.unwrap_or_default();
        Some(format!(
            "reads: {:.2} MiB/s writes: {:.2} MiB/s fsyncs: {:.2}/s latency (ms,{percent}%): {value_ms:.3}",
            mib(work.read_bytes),
            mib(work.written_bytes),
            part.rate(work.syncs as f64),
        ))
    }

    fn total(&self, part: &Part) -> Vec<String> {
        let Work { reads, writes, syncs, read_bytes, written_bytes } = part.work;
        let [reads, writes, syncs] = [reads, writes, syncs].map(|count| part.rate(count as f64));
        let [read, written] = [read_bytes, written_bytes].map(|bytes| part.rate(bytes as f64));
        if self.newer {
            let row = |name: &str, rate: f64, bytes: f64| {
                let (mib, mb) = (bytes / MIB, bytes / MB);
                format!("{name:>14}  IOPS={rate:.2} {mib:.2} MiB/s ({mb:.2} MB/s)")
            };
            return vec![
                "\nThroughput:".into(),
                row("read:", reads, read),
                format!(
                    "{:>15} IOPS={writes:.2} {:.2} MiB/s ({:.2} MB/s)",
                    "write:",
                    written / MIB,
                    written / MB
                ),
                format!("{:>15} IOPS={syncs:.2}", "fsync:"),
            ];
        }
        let row = |name: &str, value: f64| format!("    {name:<30}{value:.2}");
        vec![
            "\nFile operations:".into(),
            row("reads/s:", reads),
            row("writes/s:", writes),
            row("fsyncs/s:", syncs),
            "\nThroughput:".into(),
            row("read, MiB/s:", read / MIB),
            row("written, MiB/s:", written / MIB),
        ]
    }

    fn stands_for_general(&self) -> bool {
        self.newer
    }

    fn figures(&self, part: &Part) -> Vec<(&'static str, f64)> {
        let Work { reads, writes, syncs, read_bytes, written_bytes } = part.work;
        vec![
            ("file_reads_per_s", part.rate(reads as f64)),
            ("file_writes_per_s", part.rate(writes as f64)),
            ("file_fsyncs_per_s", part.rate(syncs as f64)),
            ("file_read_mib_per_s", part.rate(read_bytes as f64 / MIB)),
            ("file_written_mib_per_s", part.rate(written_bytes as f64 / MIB)),
        ]
    }
}

struct Files(Arc<Opened>);

impl Bench for Files {
    fn runner(&self, _number: u32, rng: Rng) -> Result<Box<dyn Runner>, Vec<Line>> {
        Ok(Box::new(Player::new(Arc::clone(&self.0), rng)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told() {
        let work = Work { reads: 30, writes: 20, syncs: 10, read_bytes: 3 << 20, written_bytes: 2 << 20 };
        let part = Part { seconds: 2.0, events: 60, work, percentile: Some((95.0, 1.25)) };
        let options = Options::default();
        assert_eq!(
            options.interval(&part).unwrap(),
            "reads: 1.50 MiB/s writes: 1.00 MiB/s fsyncs: 5.00/s latency (ms,95%): 1.250"
        );
        assert_eq!(
            options.total(&part).join("\n"),
            "\nFile operations:\n    reads/s:                      15.00\n    writes/s:                     10.00\n    \
             fsyncs/s:                     5.00\n\nThroughput:\n    read, MiB/s:                  1.50\n    written, \
             MiB/s:               1.00"
        );
        let newer = Options { newer: true, ..options }.total(&part);
        assert_eq!(newer[1], "         read:  IOPS=15.00 1.50 MiB/s (1.57 MB/s)");
        assert_eq!(newer[2], "         write: IOPS=10.00 1.00 MiB/s (1.05 MB/s)");
        assert_eq!(newer[3], "         fsync: IOPS=5.00");
        assert!(!options.stands_for_general());
    }
}
