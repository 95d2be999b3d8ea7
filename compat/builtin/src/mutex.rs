//! `mutex`: threads run empty loops and then hold one of many locks briefly.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dbdyno_random::Rng;
use dbdyno_sysbench::option_definition::{Kind, OptionDefinition};

use crate::lock::Locks;
use crate::opaque_step::opaque_step;
use crate::test::{ConfiguredTest, IoCounts, LogMessage, Parameters, Runner, SharedState, Test, TestError};

pub struct Mutexes;

impl Test for Mutexes {
    fn name(&self) -> &'static str {
        "mutex"
    }

    fn option_definitions(&self) -> Vec<OptionDefinition> {
        let option = |name, default, help| OptionDefinition::new(name, Kind::Int, Some(default), help);
        vec![
            option("mutex-num", "4096", "number of locks"),
            option("mutex-locks", "50000", "number of times that a thread takes a lock"),
            option("mutex-loops", "10000", "empty loop iterations before each lock"),
        ]
    }

    fn configure(&self, parameters: Parameters<'_>) -> Result<Box<dyn ConfiguredTest>, TestError> {
        let number = parameters.values.int("mutex_num")?;
        if number <= 0 {
            return Err(TestError::fatal(format!("Invalid value for mutex-num: {number}")));
        }
        let non_negative = |name| parameters.values.int(name).map(|value| value.max(0) as u32);
        Ok(Box::new(Options {
            number: number as usize,
            locks: non_negative("mutex_locks")?,
            loops: non_negative("mutex_loops")?,
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
    fn header_lines(&self) -> Vec<LogMessage> {
        vec![LogMessage::info("Doing mutex performance test")]
    }

    fn create_shared_state(&self) -> Result<Arc<dyn SharedState>, Vec<LogMessage>> {
        let locks = Locks::new(self.number);
        Ok(Arc::new(LockState { options: *self, locks, counter: AtomicU64::new(0) }))
    }
}

struct LockState {
    options: Options,
    locks: Locks,
    /// Each thread increments it while it holds one of the locks.
    counter: AtomicU64,
}

impl SharedState for LockState {
    fn uses_event_limit(&self) -> bool {
        false
    }

    fn create_runner(self: Arc<Self>, _thread: u32, rng: Rng) -> Result<Box<dyn Runner>, Vec<LogMessage>> {
        Ok(Box::new(MutexRunner { shared: self, rng, is_done: false }))
    }
}

/// Runs one event per thread.
struct MutexRunner {
    shared: Arc<LockState>,
    rng: Rng,
    is_done: bool,
}

impl Runner for MutexRunner {
    fn prepare_event(&mut self) -> bool {
        !std::mem::replace(&mut self.is_done, true)
    }

    fn execute_event(&mut self) -> Result<IoCounts, Vec<LogMessage>> {
        let LockState { options, locks, counter } = &*self.shared;
        for _ in 0..options.locks {
            let lock = locks.get(self.rng.below(locks.len() as u64) as usize);
            (0..options.loops).for_each(|_| opaque_step());
            // Atomic, because threads may hold different locks; it costs no more than a plain number.
            lock.hold(|| counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed));
        }
        Ok(IoCounts::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_takes_all_its_locks_in_one_event() {
        let options = Options { number: 5, locks: 1000, loops: 3 };
        let shared =
            Arc::new(LockState { options, locks: Locks::new(options.number), counter: AtomicU64::new(0) });
        let mut runner = MutexRunner { shared: Arc::clone(&shared), rng: Rng::new(1, &[]), is_done: false };
        assert!(runner.prepare_event());
        runner.execute_event().unwrap();
        assert!(!runner.prepare_event());
        assert_eq!(shared.counter.load(Ordering::Relaxed), 1000);
    }
}
