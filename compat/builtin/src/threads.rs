//! `threads`: threads yield while they hold one of a few locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dbdyno_random::Rng;
use dbdyno_sysbench::option_definition::{Kind, OptionDefinition};

use crate::lock::Locks;
use crate::test::{ConfiguredTest, Line, OpenTest, Parameters, Runner, Test, TestError, Work};

pub struct Threads;

impl Test for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn declared(&self) -> Vec<OptionDefinition> {
        let row = |name, default, help| OptionDefinition::new(name, Kind::Int, Some(default), help);
        vec![
            row("thread-yields", "1000", "lock, yield and unlock cycles of an event"),
            row("thread-locks", "8", "number of locks, which events take in turn"),
        ]
    }

    fn configure(&self, parameters: Parameters<'_>) -> Result<Box<dyn ConfiguredTest>, TestError> {
        let yields = parameters.options.int("thread_yields")?;
        let locks = parameters.options.int("thread_locks")?;
        if locks <= 0 {
            return Err(TestError::fatal(format!("Invalid value for thread-locks: {locks}")));
        }
        Ok(Box::new(Yields { yields: yields.max(0) as u32, locks: locks as usize }))
    }
}

struct Yields {
    yields: u32,
    locks: usize,
}

impl ConfiguredTest for Yields {
    fn mode_lines(&self) -> Vec<Line> {
        let Self { yields, locks } = self;
        vec![
            Line::info("Doing thread subsystem performance test"),
            Line::info(format!("Thread yields per test: {yields} Locks used: {locks}")),
        ]
    }

    fn open(&self) -> Result<Arc<dyn OpenTest>, Vec<Line>> {
        let locks = Locks::new(self.locks);
        Ok(Arc::new(Shared { yields: self.yields, locks, turn: AtomicUsize::new(0) }))
    }
}

struct Shared {
    yields: u32,
    locks: Locks,
    /// Number of the next event, from which the event's lock is chosen.
    turn: AtomicUsize,
}

impl OpenTest for Shared {
    fn runner(self: Arc<Self>, _thread: u32, _rng: Rng) -> Result<Box<dyn Runner>, Vec<Line>> {
        Ok(Box::new(LockRunner { shared: self, lock: 0 }))
    }
}

struct LockRunner {
    shared: Arc<Shared>,
    /// Index of the current event's lock.
    lock: usize,
}

impl Runner for LockRunner {
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
        let mut runners = [0, 1].map(|_| LockRunner { shared: Arc::clone(&shared), lock: 0 });
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
