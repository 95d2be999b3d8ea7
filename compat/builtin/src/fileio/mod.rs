//! `fileio`: files read and written, sequentially or at random.
//!
//! # Layout
//! - [`FileIo`]: the test. `options`: its options.
//! - `requests`: the sequence of requests. `runner`: executes them. `aio`, `mapped`: the I/O modes async and mmap.
//! - `files`: creates, opens and removes the files. `open_files`: the open files, shared by all threads. `checksum`: validation.

mod aio;
mod checksum;
mod files;
mod mapped;
mod open_files;
mod options;
mod requests;
mod runner;

use std::sync::Arc;

use dbdyno_random::Rng;
use dbdyno_sysbench::Compat;
use dbdyno_sysbench::option_definition::OptionDefinition;
use dbdyno_sysbench::report::{TestReport, Totals};

use crate::test::{ConfiguredTest, Line, OpenTest, Parameters, Runner, Test, TestError, Work};
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

    fn declared(&self) -> Vec<OptionDefinition> {
        options::declared()
    }

    fn configure(&self, parameters: Parameters<'_>) -> Result<Box<dyn ConfiguredTest>, TestError> {
        Ok(Box::new(Options::read(parameters, Purpose::Run)?))
    }

    fn prepare(&self, parameters: Parameters<'_>, log: &mut dyn FnMut(Line)) -> Result<(), TestError> {
        files::prepare(&Options::read(parameters, Purpose::Files)?, log)
    }

    fn cleanup(&self, parameters: Parameters<'_>, log: &mut dyn FnMut(Line)) -> Result<(), TestError> {
        files::cleanup(&Options::read(parameters, Purpose::Files)?, log)
    }
}

impl ConfiguredTest for Options {
    fn mode_lines(&self) -> Vec<Line> {
        Options::mode_lines(self)
    }

    fn open(&self) -> Result<Arc<dyn OpenTest>, Vec<Line>> {
        Ok(Arc::new(OpenFiles::new(*self)?))
    }

    fn report(&self, totals: &Totals, work: Work) -> TestReport {
        let Work { reads, writes, syncs, read_bytes, written_bytes } = work;
        let [reads, writes, syncs, read, written] =
            [reads, writes, syncs, read_bytes, written_bytes].map(|count| totals.rate(count));
        let [read_mib, written_mib] = [read / MIB, written / MIB];
        let percent = self.percentile.unwrap_or_default();
        let latency_ms = self.percentile.map_or(0.0, |percent| totals.percentile_ms(percent));
        let total = if self.compat == Compat::V11 {
            vec![
                "\nThroughput:".into(),
                format!("         read:  IOPS={reads:.2} {read_mib:.2} MiB/s ({:.2} MB/s)", read / MB),
                format!("         write: IOPS={writes:.2} {written_mib:.2} MiB/s ({:.2} MB/s)", written / MB),
                format!("         fsync: IOPS={syncs:.2}"),
            ]
        } else {
            let row = |name: &str, value: f64| format!("    {name:<30}{value:.2}");
            vec![
                "\nFile operations:".into(),
                row("reads/s:", reads),
                row("writes/s:", writes),
                row("fsyncs/s:", syncs),
                "\nThroughput:".into(),
                row("read, MiB/s:", read_mib),
                row("written, MiB/s:", written_mib),
            ]
        };
        TestReport {
            interval: Some(format!(
                "reads: {read_mib:.2} MiB/s writes: {written_mib:.2} MiB/s fsyncs: {syncs:.2}/s latency (ms,{percent}%): \
                 {latency_ms:.3}"
            )),
            total,
            replaces_general: self.compat == Compat::V11,
            figures: vec![
                ("file_reads_per_s", reads),
                ("file_writes_per_s", writes),
                ("file_fsyncs_per_s", syncs),
                ("file_read_mib_per_s", read_mib),
                ("file_written_mib_per_s", written_mib),
            ],
        }
    }
}

impl OpenTest for OpenFiles {
    fn runner(self: Arc<Self>, _thread: u32, rng: Rng) -> Result<Box<dyn Runner>, Vec<Line>> {
        Ok(Box::new(FileRunner::new(self, rng)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports() {
        let work = Work { reads: 30, writes: 20, syncs: 10, read_bytes: 3 << 20, written_bytes: 2 << 20 };
        let buckets = vec![(dbdyno_sysbench::latency::scale().bucket(1.25) as u16, 60)];
        let totals = Totals { end_us: 2_000_000, events: 60, buckets, ..Totals::default() };
        let options = Options { percentile: Some(95.0), ..Options::default() };
        let report = options.report(&totals, work);
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
        let newer = Options { compat: Compat::V11, ..options }.report(&totals, work).total;
        assert_eq!(newer[1], "         read:  IOPS=15.00 1.50 MiB/s (1.57 MB/s)");
        assert_eq!(newer[2], "         write: IOPS=10.00 1.00 MiB/s (1.05 MB/s)");
        assert_eq!(newer[3], "         fsync: IOPS=5.00");
        assert!(!report.replaces_general);
    }
}
