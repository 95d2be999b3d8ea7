//! An event: a whole block, word by word.
//!
//! Words are atomic without any order. That is what threads may share, it costs no more than a plain access, and no
//! compiler joins or drops one.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dbdyno_random::Rng;
use dbdyno_random::key::Keys;
use dbdyno_schema::plan::Distribution;

use super::block::Block;
use crate::step::step;
use crate::test::{Line, Runner, Work};

/// What is done with a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Write,
    None,
}

/// What an event does.
#[derive(Clone, Debug)]
pub(super) struct Touches {
    operation: Operation,
    places: Places,
}

/// Which word is next.
#[derive(Clone, Debug)]
pub(super) enum Places {
    /// One after the other.
    InOrder,
    /// Any of them.
    Uniform,
    /// By a distribution over their numbers.
    By(Keys),
}

impl Places {
    /// Places in a block of so many bytes, by the distribution of `--rand-type`.
    pub(super) fn drawn(keys: &Distribution, block_bytes: u64) -> Self {
        match keys {
            Distribution::Uniform => Places::Uniform,
            keys => Places::By(Keys::new(keys, 0, block_bytes / size_of::<AtomicU64>() as u64 - 1)),
        }
    }
}

impl Touches {
    pub(super) fn new(operation: Operation, places: Places) -> Self {
        Self { operation, places }
    }
}

/// A thread and its block.
pub(super) struct Toucher {
    block: Arc<Block>,
    touches: Touches,
    /// Events that are left; `None` for any number.
    left: Option<u64>,
    rng: Rng,
}

impl Toucher {
    pub(super) fn new(block: Arc<Block>, touches: Touches, events: Option<u64>, rng: Rng) -> Self {
        Self { block, touches, left: events, rng }
    }
}

impl Runner for Toucher {
    fn next(&mut self) -> bool {
        match &mut self.left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    fn event(&mut self) -> Result<Work, Vec<Line>> {
        let words = self.block.words();
        let (operation, rng) = (self.touches.operation, &mut self.rng);
        match &self.touches.places {
            Places::InOrder => in_order(operation, words),
            // By floating point, as the original draws all its numbers: it is a part of the work. It is below the length,
            // whatever was drawn.
            Places::Uniform => at_random(operation, words, || (rng.unit() * words.len() as f64) as usize),
            Places::By(keys) => at_random(operation, words, || keys.draw(rng) as usize),
        }
        Ok(Work::default())
    }
}

fn in_order(operation: Operation, words: &[AtomicU64]) {
    match operation {
        Operation::Write => write(words),
        Operation::Read => read(words),
        Operation::None => walk(words),
    }
}

fn write(words: &[AtomicU64]) {
    for word in words {
        word.store(0, Ordering::Relaxed);
        step();
    }
}

fn read(words: &[AtomicU64]) {
    // Something must come of what is read, for the reads to be done.
    black_box(words.iter().fold(0, |seen, word| seen ^ word.load(Ordering::Relaxed)));
}

/// The steps of the others, without the access.
fn walk(words: &[AtomicU64]) {
    words.iter().for_each(|_| step());
}

/// As many words as there are, each at the place that is drawn for it.
#[inline]
fn at_random(operation: Operation, words: &[AtomicU64], mut place: impl FnMut() -> usize) {
    let mut next = || &words[place()];
    let count = words.len();
    match operation {
        Operation::Write => (0..count).for_each(|_| next().store(0, Ordering::Relaxed)),
        Operation::Read => {
            black_box((0..count).fold(0, |seen, _| seen ^ next().load(Ordering::Relaxed)));
        }
        Operation::None => (0..count).for_each(|_| {
            black_box(next());
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toucher(operation: Operation, places: Places, events: Option<u64>) -> Toucher {
        let block = Block::new(1024, false).unwrap_or_else(|why| panic!("{why}"));
        let rng = Rng::new(1, &[]);
        Toucher::new(Arc::new(block), Touches::new(operation, places), events, rng)
    }

    #[test]
    fn writes_touch_words_and_reads_leave_them() {
        let zeros = |toucher: &Toucher| {
            toucher.block.words().iter().filter(|word| word.load(Ordering::Relaxed) == 0).count()
        };
        let mut all = toucher(Operation::Write, Places::InOrder, None);
        all.event().unwrap();
        assert_eq!(zeros(&all), 128);
        let mut some = toucher(Operation::Write, Places::Uniform, None);
        some.event().unwrap();
        // 128 draws from 128 words hit 81 of them on average, give or take 5.
        assert!((55..110).contains(&zeros(&some)), "{}", zeros(&some));
        for operation in [Operation::Read, Operation::None] {
            for places in [Places::InOrder, Places::Uniform] {
                let mut none = toucher(operation, places, None);
                none.event().unwrap();
                assert_eq!(zeros(&none), 0);
            }
        }
    }

    #[test]
    fn places_follow_the_distribution() {
        // All draws but one in a million are of the first word.
        let keys = Distribution::Zipfian { exponent: 20.0 };
        let mut hot = toucher(Operation::Write, Places::drawn(&keys, 1024), None);
        hot.event().unwrap();
        let touched: Vec<usize> =
            (0..128).filter(|&at| hot.block.words()[at].load(Ordering::Relaxed) == 0).collect();
        assert!(touched.contains(&0) && touched.len() < 8, "{touched:?}");
        assert!(matches!(Places::drawn(&Distribution::Uniform, 1024), Places::Uniform));
    }

    #[test]
    fn a_thread_has_its_share_of_events() {
        let mut toucher = toucher(Operation::Read, Places::InOrder, Some(2));
        assert_eq!([toucher.next(), toucher.next(), toucher.next()], [true, true, false]);
    }
}
