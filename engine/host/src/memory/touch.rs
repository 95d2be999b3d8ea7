//! An event: a whole block, word by word.
//!
//! Words are atomic without any order. That is what threads may share, it costs no more than a plain access, and no
//! compiler joins or drops one.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dbdyno_draw::Rng;

use super::Operation;
use super::block::Block;
use crate::step::step;
use crate::test::{Line, Runner, Work};

/// What an event does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touches {
    operation: Operation,
    random: bool,
}

impl Touches {
    pub(super) fn new(operation: Operation, random: bool) -> Self {
        Self { operation, random }
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
        match (self.touches.operation, self.touches.random) {
            (Operation::Write, false) => write(words),
            (Operation::Read, false) => read(words),
            (Operation::None, false) => walk(words),
            (Operation::Write, true) => write_at_random(words, &mut self.rng),
            (Operation::Read, true) => read_at_random(words, &mut self.rng),
            (Operation::None, true) => draw(words, &mut self.rng),
        }
        Ok(Work::default())
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

fn at_random<'a>(words: &'a [AtomicU64], rng: &mut Rng) -> &'a AtomicU64 {
    // By floating point, as the original draws all its numbers: it is a part of the work. It is below the length,
    // whatever was drawn.
    &words[(rng.unit() * words.len() as f64) as usize]
}

fn write_at_random(words: &[AtomicU64], rng: &mut Rng) {
    for _ in 0..words.len() {
        at_random(words, rng).store(0, Ordering::Relaxed);
    }
}

fn read_at_random(words: &[AtomicU64], rng: &mut Rng) {
    black_box((0..words.len()).fold(0, |seen, _| seen ^ at_random(words, rng).load(Ordering::Relaxed)));
}

fn draw(words: &[AtomicU64], rng: &mut Rng) {
    for _ in 0..words.len() {
        black_box(at_random(words, rng));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toucher(operation: Operation, random: bool, events: Option<u64>) -> Toucher {
        let block = Block::new(1024, false).unwrap_or_else(|why| panic!("{why}"));
        let rng = Rng::new(1, &[]);
        Toucher::new(Arc::new(block), Touches::new(operation, random), events, rng)
    }

    #[test]
    fn writes_touch_words_and_reads_leave_them() {
        let zeros = |toucher: &Toucher| {
            toucher.block.words().iter().filter(|word| word.load(Ordering::Relaxed) == 0).count()
        };
        let mut all = toucher(Operation::Write, false, None);
        all.event().unwrap();
        assert_eq!(zeros(&all), 128);
        let mut some = toucher(Operation::Write, true, None);
        some.event().unwrap();
        // 128 draws from 128 words hit 81 of them on average, give or take 5.
        assert!((55..110).contains(&zeros(&some)), "{}", zeros(&some));
        for (operation, random) in [
            (Operation::Read, false),
            (Operation::Read, true),
            (Operation::None, false),
            (Operation::None, true),
        ] {
            let mut none = toucher(operation, random, None);
            none.event().unwrap();
            assert_eq!(zeros(&none), 0);
        }
    }

    #[test]
    fn a_thread_has_its_share_of_events() {
        let mut toucher = toucher(Operation::Read, false, Some(2));
        assert_eq!([toucher.next(), toucher.next(), toucher.next()], [true, true, false]);
    }
}
