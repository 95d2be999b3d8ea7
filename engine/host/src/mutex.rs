//! `mutex`: threads that take one of many locks for a moment, after some steps without any.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dbdyno_door::option::{Declared, Kind};
use dbdyno_draw::Rng;

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
        let locks = (0..self.number).map(|_| Mutex::new(())).collect();
        Ok(Arc::new(Locks(Arc::new(Shared { options: *self, locks, counter: AtomicU64::new(0) }))))
    }
}

struct Locks(Arc<Shared>);

struct Shared {
    options: Options,
    locks: Vec<Mutex<()>>,
    /// What the holders of any lock change.
    counter: AtomicU64,
}

impl Bench for Locks {
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
            let lock = &locks[self.rng.below(locks.len() as u64) as usize];
            spin(options.loops);
            let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
            // Two locks protect nothing from each other, so what is changed is no plain number; but it costs no more.
            counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        Ok(Work::default())
    }
}

/// Steps that do nothing, one after the other, and that a compiler may not leave out.
fn spin(loops: u32) {
    let mut left = loops;
    while left > 0 {
        left = black_box(left - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_one_event_that_takes_every_lock_it_should() {
        let options = Options { number: 5, locks: 1000, loops: 3 };
        let shared = Arc::new(Shared {
            options,
            locks: (0..options.number).map(|_| Mutex::new(())).collect(),
            counter: AtomicU64::new(0),
        });
        let mut taker = Taker { shared: Arc::clone(&shared), rng: Rng::new(1, &[]), done: false };
        assert!(taker.next());
        taker.event().unwrap();
        assert!(!taker.next());
        assert_eq!(shared.counter.load(Ordering::Relaxed), 1000);
    }
}
