//! `memory`: blocks of memory read or written, word by word.
//!
//! # Layout
//! - [`Memory`], `Options`: what is asked for and what is told of it.
//! - `block`: a block and where it comes from. `touch`: an event.

mod block;
mod touch;

use std::sync::Arc;

use dbdyno_random::Rng;
use dbdyno_sysbench::declaration::{Declared, Kind};

use crate::test::{Bench, Configured, Fault, General, Given, Line, Part, Runner, Test};
use block::Block;
use touch::{Operation, Places, Toucher, Touches};

const KIB: u64 = 1024;
const MIB: f64 = 1_048_576.0;

/// The test.
pub struct Memory;

impl Test for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn declared(&self) -> Vec<Declared> {
        vec![
            Declared::new(
                "memory-block-size",
                Kind::Size,
                Some("1K"),
                "bytes that an event touches: a power of two",
            ),
            Declared::new(
                "memory-total-size",
                Kind::Size,
                Some("100G"),
                "bytes after which the run ends; 0 for no limit",
            ),
            Declared::new(
                "memory-scope",
                Kind::String,
                Some("global"),
                "one block for all threads, or one each {global,local}",
            ),
            Declared::new(
                "memory-hugetlb",
                Kind::Bool,
                Some("off"),
                "take the blocks from the system's huge pages",
            ),
            Declared::new(
                "memory-oper",
                Kind::String,
                Some("write"),
                "what is done with each word {read, write, none}",
            ),
            Declared::new(
                "memory-access-mode",
                Kind::String,
                Some("seq"),
                "words in their order, or at random {seq,rnd}",
            ),
        ]
    }

    fn configure(&self, given: &dyn Given, general: General) -> Result<Box<dyn Configured>, Fault> {
        let written = |name: &str| given.string(name).unwrap_or("(null)").to_owned();
        let invalid = |name: &str| Fault::fatal(format!("Invalid value for {name}: {}", written(name)));
        let block_bytes = given.size("memory-block-size");
        if block_bytes < size_of::<u64>() as u64 || !block_bytes.is_power_of_two() {
            return Err(invalid("memory-block-size"));
        }
        let is_local = match given.string("memory-scope") {
            Some("global") => false,
            Some("local") => true,
            _ => return Err(invalid("memory-scope")),
        };
        let operation = match given.string("memory-oper") {
            Some("write") => Operation::Write,
            Some("read") => Operation::Read,
            Some("none") => Operation::None,
            _ => return Err(invalid("memory-oper")),
        };
        let places = match given.string("memory-access-mode") {
            Some("seq") => Places::InOrder,
            Some("rnd") if general.newer => Places::drawn(&general.keys, block_bytes),
            Some("rnd") => Places::Uniform,
            _ => return Err(invalid("memory-access-mode")),
        };
        let total_bytes = given.size("memory-total-size");
        let mut options = Options {
            block_bytes,
            total_bytes,
            is_local,
            operation,
            places,
            threads: general.threads,
            blocks: Vec::new(),
        };
        options.allocate(given.bool("memory-hugetlb")).map_err(Fault::Said)?;
        Ok(Box::new(options))
    }
}

/// The options, and the blocks: one, or one for each thread.
struct Options {
    block_bytes: u64,
    total_bytes: u64,
    is_local: bool,
    operation: Operation,
    places: Places,
    threads: u32,
    blocks: Vec<Arc<Block>>,
}

impl Options {
    fn allocate(&mut self, huge: bool) -> Result<(), Vec<Line>> {
        let count = if self.is_local { self.threads } else { 1 };
        for number in 0..count {
            let which = if self.is_local { format!(" for thread #{number}") } else { String::new() };
            let block = Block::new(self.block_bytes, huge).map_err(|why| {
                vec![Line::fatal(why), Line::fatal(format!("Failed to allocate buffer{which}!"))]
            })?;
            self.blocks.push(Arc::new(block));
        }
        Ok(())
    }

    /// Events of each thread; `None` for as many as there is time for.
    fn events_each(&self) -> Option<u64> {
        (self.total_bytes > 0).then(|| self.total_bytes / self.block_bytes / u64::from(self.threads))
    }

    fn transferred_mib(&self, part: &Part) -> f64 {
        part.events as f64 * self.block_bytes as f64 / MIB
    }
}

impl Configured for Options {
    fn mode_lines(&self) -> Vec<Line> {
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
        lines.into_iter().map(Line::notice).collect()
    }

    fn open(&self) -> Result<Arc<dyn Bench>, Vec<Line>> {
        Ok(Arc::new(Blocks {
            blocks: self.blocks.clone(),
            touches: Touches::new(self.operation, self.places.clone()),
            events_each: self.events_each(),
        }))
    }

    fn interval(&self, part: &Part) -> Option<String> {
        Some(format!("{:.2} MiB/sec", part.rate(self.transferred_mib(part))))
    }

    fn total(&self, part: &Part) -> Vec<String> {
        let (events, rate) = (part.events, part.rate(part.events as f64));
        let mut lines = vec![format!("Total operations: {events} ({rate:8.2} per second)\n")];
        if self.operation != Operation::None {
            let mib = self.transferred_mib(part);
            lines.push(format!("{mib:.2} MiB transferred ({:.2} MiB/sec)\n", part.rate(mib)));
        }
        lines
    }

    fn figures(&self, part: &Part) -> Vec<(&'static str, f64)> {
        let mib = if self.operation == Operation::None { 0.0 } else { self.transferred_mib(part) };
        vec![("memory_operations_per_s", part.rate(part.events as f64)), ("memory_mib_per_s", part.rate(mib))]
    }
}

struct Blocks {
    blocks: Vec<Arc<Block>>,
    touches: Touches,
    events_each: Option<u64>,
}

impl Bench for Blocks {
    fn counts_events(&self) -> bool {
        false
    }

    fn runner(&self, number: u32, rng: Rng) -> Result<Box<dyn Runner>, Vec<Line>> {
        let block = Arc::clone(&self.blocks[number as usize % self.blocks.len()]);
        Ok(Box::new(Toucher::new(block, self.touches.clone(), self.events_each, rng)))
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
            places: Places::InOrder,
            threads,
            blocks: Vec::new(),
        }
    }

    #[test]
    fn the_total_is_shared_among_the_threads() {
        assert_eq!(options(1024, 1 << 20, 3).events_each(), Some(341));
        assert_eq!(options(1 << 20, 1 << 20, 2).events_each(), Some(0));
        assert_eq!(options(1024, 0, 2).events_each(), None);
    }

    #[test]
    fn what_is_told() {
        let part = Part { seconds: 2.0, events: 4096, ..Part::default() };
        let mut options = options(1024, 100 << 30, 1);
        assert_eq!(options.interval(&part).unwrap(), "2.00 MiB/sec");
        assert_eq!(
            options.total(&part),
            ["Total operations: 4096 ( 2048.00 per second)\n", "4.00 MiB transferred (2.00 MiB/sec)\n"]
        );
        options.operation = Operation::None;
        assert_eq!(options.total(&part).len(), 1);
        let lines: Vec<_> = options.mode_lines().into_iter().map(|line| line.text).collect();
        assert_eq!(
            lines[1..],
            ["  block size: 1KiB", "  total size: 102400MiB", "  operation: none", "  scope: global\n"]
        );
    }
}
