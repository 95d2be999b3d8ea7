//! `mutex`: threads run empty loops and then hold one of many locks briefly.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dbdyno_random::Rng;
use dbdyno_sysbench::option_definition::{Kind, OptionDefinition};

use crate::lock::Locks;
use crate::step::step;
use crate::test::{ConfiguredTest, Line, OpenTest, Parameters, Runner, Test, TestError, Work};

pub struct Mutexes;

impl Test for Mutexes {
    fn name(&self) -> &'static str {
        "mutex"
    }

    fn declared(&self) -> Vec<OptionDefinition> {
        let row = |name, default, help| OptionDefinition::new(name, Kind::Int, Some(default), help);
        vec![
            row("mutex-num", "4096", "number of locks"),
            row("mutex-locks", "50000", "locks that each thread takes in sequence"),
            row("mutex-loops", "10000", "empty steps before each of them"),
        ]
    }

    fn configure(&self, parameters: Parameters<'_>) -> Result<Box<dyn ConfiguredTest>, TestError> {
        let number = parameters.options.int("mutex_num")?;
        if number <= 0 {
            return Err(TestError::fatal(format!("Invalid value for mutex-num: {number}")));
        }
        let count = |name| parameters.options.int(name).map(|value| value.max(0) as u32);
        Ok(Box::new(Options {
            number: number as usize,
            locks: count("mutex_locks")?,
            loops: count("mutex_loops")?,
        }))
    }
}

#[derive(Clone, Copy)]
struct Options {
    number: usize,
    locks: u32,
    loops: u32,
}

impl ConfiguredTest for Options {
    fn mode_lines(&self) -> Vec<Line> {
        vec![Line::info("Doing mutex performance test")]
    }

    fn open(&self) -> Result<Arc<dyn OpenTest>, Vec<Line>> {
        let locks = Locks::new(self.number);
        Ok(Arc::new(Shared { options: *self, locks, counter: AtomicU64::new(0) }))
    }
}

struct Shared {
    options: Options,
    locks: Locks,
    /// Each thread increments it while it holds one of the locks.
    counter: AtomicU64,
}

impl OpenTest for Shared {
    fn counts_events(&self) -> bool {
        false
    }

    fn runner(self: Arc<Self>, _thread: u32, rng: Rng) -> Result<Box<dyn Runner>, Vec<Line>> {
        Ok(Box::new(LocksRunner { shared: self, rng, done: false }))
    }
}

/// Runs one event per thread.
struct LocksRunner {
    shared: Arc<Shared>,
    rng: Rng,
    done: bool,
}

impl Runner for LocksRunner {
    fn next(&mut self) -> bool {
        !std::mem::replace(&mut self.done, true)
    }

    fn event(&mut self) -> Result<Work, Vec<Line>> {
        let Shared { options, locks, counter } = &*self.shared;
        for _ in 0..options.locks {
            let lock = locks.get(self.rng.below(locks.len() as u64) as usize);
            (0..options.loops).for_each(|_| step());
            // Atomic, because threads may hold different locks; it costs no more than a plain number.
            lock.hold(|| counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed));
        }
        Ok(Work::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_one_event_that_takes_every_lock_it_should() {
        let options = Options { number: 5, locks: 1000, loops: 3 };
        let shared =
            Arc::new(Shared { options, locks: Locks::new(options.number), counter: AtomicU64::new(0) });
        let mut taker = LocksRunner { shared: Arc::clone(&shared), rng: Rng::new(1, &[]), done: false };
        assert!(taker.next());
        taker.event().unwrap();
        assert!(!taker.next());
        assert_eq!(shared.counter.load(Ordering::Relaxed), 1000);
    }
}
