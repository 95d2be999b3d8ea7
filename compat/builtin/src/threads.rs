//! `threads`: threads yield while they hold one of a few locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dbdyno_random::Rng;
use dbdyno_sysbench::option_definition::{Kind, OptionDefinition};

use crate::lock::Locks;
use crate::test::{ConfiguredTest, IoCounts, LogMessage, Parameters, Runner, SharedState, Test, TestError};

pub struct Threads;

impl Test for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn option_definitions(&self) -> Vec<OptionDefinition> {
        let option = |name, default, help| OptionDefinition::new(name, Kind::Int, Some(default), help);
        vec![
            option("thread-yields", "1000", "number of lock, yield and unlock cycles per event"),
            option("thread-locks", "8", "number of locks; each event takes the next one"),
        ]
    }

    fn configure(&self, parameters: Parameters<'_>) -> Result<Box<dyn ConfiguredTest>, TestError> {
        let yields = parameters.values.int("thread_yields")?;
        let locks = parameters.values.int("thread_locks")?;
        if locks <= 0 {
            return Err(TestError::fatal(format!("Invalid value for thread-locks: {locks}")));
        }
        Ok(Box::new(Options { yields: yields.max(0) as u32, locks: locks as usize }))
    }
}

struct Options {
    yields: u32,
    locks: usize,
}

impl ConfiguredTest for Options {
    fn header_lines(&self) -> Vec<LogMessage> {
        let Self { yields, locks } = self;
        vec![
            LogMessage::info("Doing thread subsystem performance test"),
            LogMessage::info(format!("Thread yields per test: {yields} Locks used: {locks}")),
        ]
    }

    fn create_shared_state(&self) -> Result<Arc<dyn SharedState>, Vec<LogMessage>> {
        let locks = Locks::new(self.locks);
        Ok(Arc::new(LockState { yields: self.yields, locks, next_event: AtomicUsize::new(0) }))
    }
}

struct LockState {
    yields: u32,
    locks: Locks,
    /// Number of the next event, from which the event's lock is chosen.
    next_event: AtomicUsize,
}

impl SharedState for LockState {
    fn create_runner(self: Arc<Self>, _thread: u32, _rng: Rng) -> Result<Box<dyn Runner>, Vec<LogMessage>> {
        Ok(Box::new(LockRunner { shared: self, lock: 0 }))
    }
}

struct LockRunner {
    shared: Arc<LockState>,
    /// Index of the current event's lock.
    lock: usize,
}

impl Runner for LockRunner {
    fn prepare_event(&mut self) -> bool {
        self.lock = self.shared.next_event.fetch_add(1, Ordering::Relaxed) % self.shared.locks.len();
        true
    }

    fn execute_event(&mut self) -> Result<IoCounts, Vec<LogMessage>> {
        let lock = self.shared.locks.get(self.lock);
        for _ in 0..self.shared.yields {
            lock.hold(std::thread::yield_now);
        }
        Ok(IoCounts::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_take_the_locks_in_turn() {
        let shared = Arc::new(LockState { yields: 2, locks: Locks::new(3), next_event: AtomicUsize::new(0) });
        let mut runners = [0, 1].map(|_| LockRunner { shared: Arc::clone(&shared), lock: 0 });
        let taken: Vec<_> = (0..8)
            .map(|event| {
                let runner = &mut runners[event % 2];
                assert!(runner.prepare_event() && runner.execute_event() == Ok(IoCounts::default()));
                runner.lock
            })
            .collect();
        assert_eq!(taken, [0, 1, 2, 0, 1, 2, 0, 1]);
    }
}
