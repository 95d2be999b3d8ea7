//! `memory`: reads or writes blocks of memory, word by word.
//!
//! # Layout
//! - [`Memory`], `Options`: the options and the report.
//! - `block`: allocates a block. `access`: executes an event.

mod access;
mod block;

use std::sync::Arc;

use dbdyno_random::Rng;
use dbdyno_sysbench::Compat;
use dbdyno_sysbench::option_definition::{Kind, OptionDefinition};
use dbdyno_sysbench::report::{TestReport, Totals};

use crate::test::{ConfiguredTest, IoCounts, LogMessage, Parameters, Runner, SharedState, Test, TestError};
use access::{MemoryRunner, Operation, Order};
use block::Block;

const KIB: u64 = 1024;
const MIB: f64 = 1_048_576.0;

pub struct Memory;

impl Test for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn option_definitions(&self) -> Vec<OptionDefinition> {
        use Kind::{Bool, Size, String};
        let option = |name, kind, default, help| OptionDefinition::new(name, kind, Some(default), help);
        vec![
            option("memory-block-size", Size, "1K", "bytes per event, a power of two"),
            option("memory-total-size", Size, "100G", "bytes to read or write in the run; 0 for no limit"),
            option(
                "memory-scope",
                String,
                "global",
                "global: one block for all threads; local: one block per thread {global,local}",
            ),
            option("memory-hugetlb", Bool, "off", "allocate the blocks in huge pages"),
            option("memory-oper", String, "write", "operation on each word {read, write, none}"),
            option("memory-access-mode", String, "seq", "sequential or random order of the words {seq,rnd}"),
        ]
    }

    fn configure(&self, parameters: Parameters<'_>) -> Result<Box<dyn ConfiguredTest>, TestError> {
        let Parameters { values, settings, .. } = parameters;
        let invalid_value = |name: &str| {
            let value = values.string(name).unwrap_or("(null)");
            TestError::fatal(format!("Invalid value for {name}: {value}"))
        };
        let block_bytes = values.size("memory-block-size");
        if block_bytes < size_of::<u64>() as u64 || !block_bytes.is_power_of_two() {
            return Err(invalid_value("memory-block-size"));
        }
        let is_local = match values.string("memory-scope") {
            Some("global") => false,
            Some("local") => true,
            _ => return Err(invalid_value("memory-scope")),
        };
        let operation = match values.string("memory-oper") {
            Some("write") => Operation::Write,
            Some("read") => Operation::Read,
            Some("none") => Operation::None,
            _ => return Err(invalid_value("memory-oper")),
        };
        let order = match values.string("memory-access-mode") {
            Some("seq") => Order::Sequential,
            Some("rnd") if settings.compat == Compat::V1_1 => Order::random(&settings.keys, block_bytes),
            Some("rnd") => Order::Uniform,
            _ => return Err(invalid_value("memory-access-mode")),
        };
        let total_bytes = values.size("memory-total-size");
        let mut options = Options {
            block_bytes,
            total_bytes,
            is_local,
            operation,
            order,
            threads: settings.threads,
            blocks: Vec::new(),
        };
        options.allocate(values.bool("memory-hugetlb"))?;
        Ok(Box::new(options))
    }
}

struct Options {
    block_bytes: u64,
    total_bytes: u64,
    is_local: bool,
    operation: Operation,
    order: Order,
    threads: u32,
    /// One block for all threads, or one block per thread.
    blocks: Vec<Arc<Block>>,
}

impl Options {
    fn allocate(&mut self, use_huge_pages: bool) -> Result<(), Vec<LogMessage>> {
        let count = if self.is_local { self.threads } else { 1 };
        for number in 0..count {
            let owner = if self.is_local { format!(" for thread #{number}") } else { String::new() };
            let block = Block::new(self.block_bytes, use_huge_pages).map_err(|error| {
                vec![
                    LogMessage::fatal(error),
                    LogMessage::fatal(format!("Failed to allocate buffer{owner}!")),
                ]
            })?;
            self.blocks.push(Arc::new(block));
        }
        Ok(())
    }

    /// Number of events of each thread; `None` for no limit.
    fn events_per_thread(&self) -> Option<u64> {
        (self.total_bytes > 0).then(|| self.total_bytes / self.block_bytes / u64::from(self.threads))
    }
}

impl ConfiguredTest for Options {
    fn header_lines(&self) -> Vec<LogMessage> {
        let operation = match self.operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::None => "none",
        };
        let scope = if self.is_local { "local" } else { "global" };
        let lines = [
            "Running memory speed test with the following options:".to_owned(),
            format!("  block size: {}KiB", self.block_bytes / KIB),
            format!("  total size: {}MiB", self.total_bytes / KIB / KIB),
            format!("  operation: {operation}"),
            format!("  scope: {scope}\n"),
        ];
        lines.into_iter().map(LogMessage::notice).collect()
    }

    fn create_shared_state(&self) -> Result<Arc<dyn SharedState>, Vec<LogMessage>> {
        Ok(Arc::new(SharedBlocks {
            blocks: self.blocks.clone(),
            operation: self.operation,
            order: self.order.clone(),
            events_per_thread: self.events_per_thread(),
        }))
    }

    fn report(&self, totals: &Totals, _io: IoCounts) -> TestReport {
        let (events, rate) = (totals.events, totals.rate(totals.events));
        let block_mib = self.block_bytes as f64 / MIB;
        let mib_rate = rate * block_mib;
        let mut total = vec![format!("Total operations: {events} ({rate:8.2} per second)\n")];
        if self.operation != Operation::None {
            total.push(format!("{:.2} MiB transferred ({mib_rate:.2} MiB/sec)\n", events as f64 * block_mib));
        }
        let transferred = if self.operation == Operation::None { 0.0 } else { mib_rate };
        TestReport {
            interval: Some(format!("{mib_rate:.2} MiB/sec")),
            total,
            figures: vec![("memory_operations_per_s", rate), ("memory_mib_per_s", transferred)],
            ..TestReport::default()
        }
    }
}

struct SharedBlocks {
    blocks: Vec<Arc<Block>>,
    operation: Operation,
    order: Order,
    events_per_thread: Option<u64>,
}

impl SharedState for SharedBlocks {
    fn uses_event_limit(&self) -> bool {
        false
    }

    fn create_runner(self: Arc<Self>, thread: u32, rng: Rng) -> Result<Box<dyn Runner>, Vec<LogMessage>> {
        Ok(Box::new(MemoryRunner {
            block: Arc::clone(&self.blocks[thread as usize % self.blocks.len()]),
            operation: self.operation,
            order: self.order.clone(),
            events_left: self.events_per_thread,
            rng,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(block_bytes: u64, total_bytes: u64, threads: u32) -> Options {
        let operation = Operation::Write;
        Options {
            block_bytes,
            total_bytes,
            is_local: false,
            operation,
            order: Order::Sequential,
            threads,
            blocks: Vec::new(),
        }
    }

    #[test]
    fn the_threads_share_the_total_size() {
        assert_eq!(options(1024, 1 << 20, 3).events_per_thread(), Some(341));
        assert_eq!(options(1 << 20, 1 << 20, 2).events_per_thread(), Some(0));
        assert_eq!(options(1024, 0, 2).events_per_thread(), None);
    }

    #[test]
    fn reports() {
        let totals = Totals { end_us: 2_000_000, events: 4096, ..Totals::default() };
        let report = |options: &Options| options.report(&totals, IoCounts::default());
        let mut options = options(1024, 100 << 30, 1);
        assert_eq!(report(&options).interval.unwrap(), "2.00 MiB/sec");
        assert_eq!(
            report(&options).total,
            ["Total operations: 4096 ( 2048.00 per second)\n", "4.00 MiB transferred (2.00 MiB/sec)\n"]
        );
        options.operation = Operation::None;
        assert_eq!(report(&options).total.len(), 1);
        let lines: Vec<_> = options.header_lines().into_iter().map(|line| line.text).collect();
        assert_eq!(
            lines[1..],
            ["  block size: 1KiB", "  total size: 102400MiB", "  operation: none", "  scope: global\n"]
        );
    }
}
