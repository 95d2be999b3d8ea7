//! `mutex`: threads that take one of many locks for a moment, after some steps without any.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dbdyno_random::Rng;
use dbdyno_sysbench::declaration::{Declared, Kind};

use crate::lock::Locks;
use crate::step::step;
use crate::test::{Bench, Configured, Fault, General, Given, Line, Runner, Test, Work};

/// The test.
pub struct Mutexes;

impl Test for Mutexes {
    fn name(&self) -> &'static str {
        "mutex"
    }

    fn declared(&self) -> Vec<Declared> {
        let row = |name, default, help| Declared::new(name, Kind::Int, Some(default), help);
        vec![
            row("mutex-num", "4096", "locks in all"),
            row("mutex-locks", "50000", "locks that each thread takes, one after the other"),
            row("mutex-loops", "10000", "empty steps before each of them"),
        ]
    }

    fn configure(&self, given: &dyn Given, _general: General) -> Result<Box<dyn Configured>, Fault> {
        let number = given.int("mutex-num")?;
        if number <= 0 {
            return Err(Fault::fatal(format!("Invalid value for mutex-num: {number}")));
        }
        let count = |name| given.int(name).map(|value| value.max(0) as u32);
        Ok(Box::new(Options {
            number: number as usize,
            locks: count("mutex-locks")?,
            loops: count("mutex-loops")?,
        }))
    }
}

#[derive(Clone, Copy)]
struct Options {
    number: usize,
    locks: u32,
    loops: u32,
}

impl Configured for Options {
    fn mode_lines(&self) -> Vec<Line> {
        vec![Line::info("Doing mutex performance test")]
    }

    fn open(&self) -> Result<Arc<dyn Bench>, Vec<Line>> {
        let locks = Locks::new(self.number);
        Ok(Arc::new(Opened(Arc::new(Shared { options: *self, locks, counter: AtomicU64::new(0) }))))
    }
}

struct Opened(Arc<Shared>);

struct Shared {
    options: Options,
    locks: Locks,
    /// What the holders of any lock change.
    counter: AtomicU64,
}

impl Bench for Opened {
    fn counts_events(&self) -> bool {
        false
    }

    fn runner(&self, _number: u32, rng: Rng) -> Result<Box<dyn Runner>, Vec<Line>> {
        Ok(Box::new(Taker { shared: Arc::clone(&self.0), rng, done: false }))
    }
}

/// A thread, which has one event.
struct Taker {
    shared: Arc<Shared>,
    rng: Rng,
    done: bool,
}

impl Runner for Taker {
    fn next(&mut self) -> bool {
        !std::mem::replace(&mut self.done, true)
    }

    fn event(&mut self) -> Result<Work, Vec<Line>> {
        let Shared { options, locks, counter } = &*self.shared;
        for _ in 0..options.locks {
            let lock = locks.get(self.rng.below(locks.len() as u64) as usize);
            (0..options.loops).for_each(|_| step());
            // Two locks protect nothing from each other, so what is changed is no plain number; but it costs no more.
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
        let mut taker = Taker { shared: Arc::clone(&shared), rng: Rng::new(1, &[]), done: false };
        assert!(taker.next());
        taker.event().unwrap();
        assert!(!taker.next());
        assert_eq!(shared.counter.load(Ordering::Relaxed), 1000);
    }
}
