//! `threads`: threads that yield while they hold one of a few locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dbdyno_random::Rng;
use dbdyno_sysbench::declaration::{Declared, Kind};

use crate::lock::Locks;
use crate::test::{Bench, Configured, Fault, General, Given, Line, Runner, Test, Work};

/// The test.
pub struct Threads;

impl Test for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn declared(&self) -> Vec<Declared> {
        let row = |name, default, help| Declared::new(name, Kind::Int, Some(default), help);
        vec![
            row("thread-yields", "1000", "times that an event takes its lock, yields and gives it back"),
            row("thread-locks", "8", "locks that the events share, in turn"),
        ]
    }

    fn configure(&self, given: &dyn Given, _general: General) -> Result<Box<dyn Configured>, Fault> {
        let (yields, locks) = (given.int("thread-yields")?, given.int("thread-locks")?);
        if locks <= 0 {
            return Err(Fault::fatal(format!("Invalid value for thread-locks: {locks}")));
        }
        Ok(Box::new(Yields { yields: yields.max(0) as u32, locks: locks as usize }))
    }
}

/// The options.
struct Yields {
    yields: u32,
    locks: usize,
}

impl Configured for Yields {
    fn mode_lines(&self) -> Vec<Line> {
        let Self { yields, locks } = self;
        vec![
            Line::info("Doing thread subsystem performance test"),
            Line::info(format!("Thread yields per test: {yields} Locks used: {locks}")),
        ]
    }

    fn open(&self) -> Result<Arc<dyn Bench>, Vec<Line>> {
        let locks = Locks::new(self.locks);
        Ok(Arc::new(Opened(Arc::new(Shared { yields: self.yields, locks, turn: AtomicUsize::new(0) }))))
    }
}

struct Opened(Arc<Shared>);

struct Shared {
    yields: u32,
    locks: Locks,
    /// Events that have begun.
    turn: AtomicUsize,
}

impl Bench for Opened {
    fn runner(&self, _number: u32, _rng: Rng) -> Result<Box<dyn Runner>, Vec<Line>> {
        Ok(Box::new(OneLock { shared: Arc::clone(&self.0), lock: 0 }))
    }
}

/// A thread and the lock of its event.
struct OneLock {
    shared: Arc<Shared>,
    lock: usize,
}

impl Runner for OneLock {
    fn next(&mut self) -> bool {
        self.lock = self.shared.turn.fetch_add(1, Ordering::Relaxed) % self.shared.locks.len();
        true
    }

    fn event(&mut self) -> Result<Work, Vec<Line>> {
        let lock = self.shared.locks.get(self.lock);
        for _ in 0..self.shared.yields {
            lock.hold(std::thread::yield_now);
        }
        Ok(Work::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_take_the_locks_in_turn() {
        let shared = Arc::new(Shared { yields: 2, locks: Locks::new(3), turn: AtomicUsize::new(0) });
        let mut runners = [0, 1].map(|_| OneLock { shared: Arc::clone(&shared), lock: 0 });
        let taken: Vec<_> = (0..8)
            .map(|event| {
                let runner = &mut runners[event % 2];
                assert!(runner.next() && runner.event() == Ok(Work::default()));
                runner.lock
            })
            .collect();
        assert_eq!(taken, [0, 1, 2, 0, 1, 2, 0, 1]);
    }
}
