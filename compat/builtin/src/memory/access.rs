//! Executes an event: one pass over a block, word by word.
//!
//! Words are relaxed atomics, so that threads may share them. A relaxed access costs no more than a plain one, and the
//! compiler neither merges nor removes it.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dbdyno_random::Rng;
use dbdyno_random::key::Keys;
use dbdyno_schema::plan::Distribution;

use super::block::Block;
use crate::opaque_step::opaque_step;
use crate::test::{IoCounts, LogMessage, Runner};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Write,
    None,
}

/// The order in which an event accesses the words in a block.
#[derive(Clone, Debug)]
pub(super) enum Order {
    Sequential,
    Uniform,
    Distribution(Keys),
}

impl Order {
    /// Random positions in a block, with the distribution of `--rand-type`.
    pub(super) fn random(distribution: &Distribution, block_bytes: u64) -> Self {
        match distribution {
            Distribution::Uniform => Order::Uniform,
            other => {
                Order::Distribution(Keys::new(other, 0, block_bytes / size_of::<AtomicU64>() as u64 - 1))
            }
        }
    }
}

pub(super) struct MemoryRunner {
    pub(super) block: Arc<Block>,
    pub(super) operation: Operation,
    pub(super) order: Order,
    /// Number of events that the thread may still start; `None` for no limit.
    pub(super) events_left: Option<u64>,
    pub(super) rng: Rng,
}

impl Runner for MemoryRunner {
    fn prepare_event(&mut self) -> bool {
        match &mut self.events_left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    fn execute_event(&mut self) -> Result<IoCounts, Vec<LogMessage>> {
        let words = self.block.words();
        let (operation, rng) = (self.operation, &mut self.rng);
        match &self.order {
            Order::Sequential => access_in_order(operation, words),
            // As in sysbench, the index is computed in floating point, because events measure this cost too. `unit`
            // is below 1, so the index is below the length.
            Order::Uniform => {
                access_at_random(operation, words, || (rng.unit() * words.len() as f64) as usize)
            }
            Order::Distribution(keys) => access_at_random(operation, words, || keys.draw(rng) as usize),
        }
        Ok(IoCounts::default())
    }
}

fn access_in_order(operation: Operation, words: &[AtomicU64]) {
    match operation {
        Operation::Write => write_all(words),
        Operation::Read => read_all(words),
        Operation::None => visit_all(words),
    }
}

fn write_all(words: &[AtomicU64]) {
    words.iter().for_each(|word| {
        word.store(0, Ordering::Relaxed);
        opaque_step();
    });
}

fn read_all(words: &[AtomicU64]) {
    // Keeps the compiler from removing the reads.
    black_box(words.iter().fold(0, |result, word| result ^ word.load(Ordering::Relaxed)));
}

/// The loop of `read_all` and `write_all`, without the access.
fn visit_all(words: &[AtomicU64]) {
    words.iter().for_each(|_| opaque_step());
}

/// Accesses as many words as the block has, at the positions that `index` returns.
#[inline]
fn access_at_random(operation: Operation, words: &[AtomicU64], mut index: impl FnMut() -> usize) {
    let mut next = || &words[index()];
    let count = words.len();
    match operation {
        Operation::Write => (0..count).for_each(|_| next().store(0, Ordering::Relaxed)),
        Operation::Read => {
            black_box((0..count).fold(0, |result, _| result ^ next().load(Ordering::Relaxed)));
        }
        Operation::None => (0..count).for_each(|_| {
            black_box(next());
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runner(operation: Operation, order: Order, events_left: Option<u64>) -> MemoryRunner {
        let block = Arc::new(Block::new(1024, false).unwrap_or_else(|error| panic!("{error}")));
        MemoryRunner { block, operation, order, events_left, rng: Rng::new(1, &[]) }
    }

    #[test]
    fn writes_change_words_and_reads_do_not() {
        let zeros = |runner: &MemoryRunner| {
            runner.block.words().iter().filter(|word| word.load(Ordering::Relaxed) == 0).count()
        };
        let mut all = runner(Operation::Write, Order::Sequential, None);
        all.execute_event().unwrap();
        assert_eq!(zeros(&all), 128);
        let mut some = runner(Operation::Write, Order::Uniform, None);
        some.execute_event().unwrap();
        // 128 draws from 128 words hit 81 of them on average, give or take 5.
        assert!((55..110).contains(&zeros(&some)), "{}", zeros(&some));
        for operation in [Operation::Read, Operation::None] {
            for order in [Order::Sequential, Order::Uniform] {
                let mut none = runner(operation, order, None);
                none.execute_event().unwrap();
                assert_eq!(zeros(&none), 0);
            }
        }
    }

    #[test]
    fn positions_follow_the_distribution() {
        // With this exponent, all random numbers but about one in a million select the first word.
        let keys = Distribution::Zipfian { exponent: 20.0, scattered: false };
        let mut hot = runner(Operation::Write, Order::random(&keys, 1024), None);
        hot.execute_event().unwrap();
        let touched: Vec<usize> =
            (0..128).filter(|&at| hot.block.words()[at].load(Ordering::Relaxed) == 0).collect();
        assert!(touched.contains(&0) && touched.len() < 8, "{touched:?}");
        assert!(matches!(Order::random(&Distribution::Uniform, 1024), Order::Uniform));
    }

    #[test]
    fn a_thread_stops_after_its_share_of_events() {
        let mut runner = runner(Operation::Read, Order::Sequential, Some(2));
        assert_eq!(
            [runner.prepare_event(), runner.prepare_event(), runner.prepare_event()],
            [true, true, false]
        );
    }
}
