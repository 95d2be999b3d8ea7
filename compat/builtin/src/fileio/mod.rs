//! `fileio`: reads and writes files, sequentially or at random.
//!
//! # Layout
//! - [`FileIo`]: the test. `options`: its options.
//! - `request_sequence`: chooses the next request. `runner`: executes requests. `aio`, `mapped`: the I/O modes async and mmap.
//! - `files`: creates, opens and removes the files. `open_files`: the open files, which all threads share. `checksum`:
//!   fills and validates blocks.

mod aio;
mod checksum;
mod files;
mod mapped;
mod open_files;
mod options;
mod request_sequence;
mod runner;

use std::sync::Arc;

use dbdyno_random::Rng;
use dbdyno_sysbench::Compat;
use dbdyno_sysbench::option_definition::OptionDefinition;
use dbdyno_sysbench::report::{TestReport, Totals};

use crate::test::{ConfiguredTest, IoCounts, LogMessage, Parameters, Runner, SharedState, Test, TestError};
use open_files::OpenFiles;
use options::{Options, Purpose};
use runner::FileRunner;

const MIB: f64 = 1_048_576.0;
const MB: f64 = 1_000_000.0;

pub struct FileIo;

impl Test for FileIo {
    fn name(&self) -> &'static str {
        "fileio"
    }

    fn option_definitions(&self) -> Vec<OptionDefinition> {
        options::option_definitions()
    }

    fn configure(&self, parameters: Parameters<'_>) -> Result<Box<dyn ConfiguredTest>, TestError> {
        Ok(Box::new(Options::read(parameters, Purpose::Run)?))
    }

    fn prepare(&self, parameters: Parameters<'_>, log: &mut dyn FnMut(LogMessage)) -> Result<(), TestError> {
        files::prepare(&Options::read(parameters, Purpose::ManageFiles)?, log)
    }

    fn cleanup(&self, parameters: Parameters<'_>, log: &mut dyn FnMut(LogMessage)) -> Result<(), TestError> {
        files::cleanup(&Options::read(parameters, Purpose::ManageFiles)?, log)
    }
}

impl ConfiguredTest for Options {
    fn header_lines(&self) -> Vec<LogMessage> {
        Options::header_lines(self)
    }

    fn create_shared_state(&self) -> Result<Arc<dyn SharedState>, Vec<LogMessage>> {
        Ok(Arc::new(OpenFiles::new(*self)?))
    }

    fn report(&self, totals: &Totals, io: IoCounts) -> TestReport {
        let IoCounts { reads, writes, syncs, read_bytes, written_bytes } = io;
        let [reads_per_s, writes_per_s, syncs_per_s, read_per_s, written_per_s] =
            [reads, writes, syncs, read_bytes, written_bytes].map(|count| totals.rate(count));
        let [read_mib, written_mib] = [read_per_s / MIB, written_per_s / MIB];
        let percent = self.percentile.unwrap_or_default();
        let latency_ms = self.percentile.map_or(0.0, |percent| totals.percentile_ms(percent));
        let total = if self.compat == Compat::V1_1 {
            vec![
                "\nThroughput:".into(),
                format!(
                    "         read:  IOPS={reads_per_s:.2} {read_mib:.2} MiB/s ({:.2} MB/s)",
                    read_per_s / MB
                ),
                format!(
                    "         write: IOPS={writes_per_s:.2} {written_mib:.2} MiB/s ({:.2} MB/s)",
                    written_per_s / MB
                ),
                format!("         fsync: IOPS={syncs_per_s:.2}"),
            ]
        } else {
            let row = |name: &str, value: f64| format!("    {name:<30}{value:.2}");
            vec![
                "\nFile operations:".into(),
                row("reads/s:", reads_per_s),
                row("writes/s:", writes_per_s),
                row("fsyncs/s:", syncs_per_s),
                "\nThroughput:".into(),
                row("read, MiB/s:", read_mib),
                row("written, MiB/s:", written_mib),
            ]
        };
        TestReport {
            interval: Some(format!(
                "reads: {read_mib:.2} MiB/s writes: {written_mib:.2} MiB/s fsyncs: {syncs_per_s:.2}/s latency (ms,{percent}%): \
                 {latency_ms:.3}"
            )),
            total,
            replaces_general_statistics: self.compat == Compat::V1_1,
            figures: vec![
                ("file_reads_per_s", reads_per_s),
                ("file_writes_per_s", writes_per_s),
                ("file_fsyncs_per_s", syncs_per_s),
                ("file_read_mib_per_s", read_mib),
                ("file_written_mib_per_s", written_mib),
            ],
        }
    }
}

impl SharedState for OpenFiles {
    fn create_runner(self: Arc<Self>, _thread: u32, rng: Rng) -> Result<Box<dyn Runner>, Vec<LogMessage>> {
        Ok(Box::new(FileRunner::new(self, rng)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports() {
        let io = IoCounts { reads: 30, writes: 20, syncs: 10, read_bytes: 3 << 20, written_bytes: 2 << 20 };
        let buckets = vec![(dbdyno_sysbench::latency::scale().bucket(1.25) as u16, 60)];
        let totals = Totals { end_us: 2_000_000, events: 60, buckets, ..Totals::default() };
        let options = Options { percentile: Some(95.0), ..Options::default() };
        let report = options.report(&totals, io);
        assert_eq!(
            report.interval.unwrap(),
            "reads: 1.50 MiB/s writes: 1.00 MiB/s fsyncs: 5.00/s latency (ms,95%): 1.250"
        );
        assert_eq!(
            report.total.join("\n"),
            "\nFile operations:\n    reads/s:                      15.00\n    writes/s:                     10.00\n    \
             fsyncs/s:                     5.00\n\nThroughput:\n    read, MiB/s:                  1.50\n    written, \
             MiB/s:               1.00"
        );
        let newer = Options { compat: Compat::V1_1, ..options }.report(&totals, io).total;
        assert_eq!(newer[1], "         read:  IOPS=15.00 1.50 MiB/s (1.57 MB/s)");
        assert_eq!(newer[2], "         write: IOPS=10.00 1.00 MiB/s (1.05 MB/s)");
        assert_eq!(newer[3], "         fsync: IOPS=5.00");
        assert!(!report.replaces_general_statistics);
    }
}
