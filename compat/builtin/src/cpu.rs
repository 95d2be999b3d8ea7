//! `cpu`: counts prime numbers by trial division.

use std::hint::black_box;
use std::sync::Arc;

use dbdyno_random::Rng;
use dbdyno_sysbench::option_definition::{Kind, OptionDefinition};
use dbdyno_sysbench::report::{TestReport, Totals};

use crate::test::{ConfiguredTest, IoCounts, LogMessage, Parameters, Runner, SharedState, Test, TestError};

pub struct Cpu;

impl Test for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn option_definitions(&self) -> Vec<OptionDefinition> {
        vec![OptionDefinition::new(
            "cpu-max-prime",
            Kind::Int,
            Some("10000"),
            "each event counts the primes below this number",
        )]
    }

    fn configure(&self, parameters: Parameters<'_>) -> Result<Box<dyn ConfiguredTest>, TestError> {
        match parameters.values.int("cpu_max_prime")? {
            limit if limit > 0 => Ok(Box::new(Primes { limit: limit as u64 })),
            limit => Err(TestError::fatal(format!("Invalid value of cpu-max-prime: {limit}."))),
        }
    }
}

#[derive(Clone, Copy)]
struct Primes {
    limit: u64,
}

impl ConfiguredTest for Primes {
    fn header_lines(&self) -> Vec<LogMessage> {
        vec![
            LogMessage::info("Doing CPU performance benchmark\n"),
            LogMessage::notice(format!("Prime numbers limit: {}\n", self.limit)),
        ]
    }

    fn create_shared_state(&self) -> Result<Arc<dyn SharedState>, Vec<LogMessage>> {
        Ok(Arc::new(*self))
    }

    fn report(&self, totals: &Totals, _io: IoCounts) -> TestReport {
        let rate = totals.rate(totals.events);
        TestReport {
            total: vec!["CPU speed:".into(), format!("    events per second: {rate:8.2}")],
            figures: vec![("cpu_events_per_s", rate)],
            ..TestReport::default()
        }
    }
}

impl SharedState for Primes {
    fn create_runner(self: Arc<Self>, _thread: u32, _rng: Rng) -> Result<Box<dyn Runner>, Vec<LogMessage>> {
        Ok(Box::new(*self))
    }
}

impl Runner for Primes {
    fn execute_event(&mut self) -> Result<IoCounts, Vec<LogMessage>> {
        // Without `black_box` the compiler could remove the computation, or compute it once for all events.
        black_box(count_primes(black_box(self.limit)));
        Ok(IoCounts::default())
    }
}

/// Counts the primes from 3 up to `limit` - 1, by trying every divisor up to the square root.
fn count_primes(limit: u64) -> u64 {
    let mut primes = 0;
    for candidate in 3..limit {
        let root = (candidate as f64).sqrt();
        let mut divisor = 2u64;
        while (divisor as i64) as f64 <= root && remainder(candidate, divisor) != 0 {
            divisor += 1;
        }
        primes += u64::from(divisor as f64 > root);
    }
    primes
}

/// A 64-bit division, as in sysbench. Compilers use a 32-bit division for small numbers, which is several times faster on
/// some processors.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // One instruction.
#[inline]
fn remainder(dividend: u64, divisor: u64) -> u64 {
    assert!(divisor != 0);
    let remainder;
    // SAFETY: the divisor is not 0, and the upper half of the dividend is 0, so the quotient fits.
    unsafe {
        std::arch::asm!(
            "div {divisor}",
            divisor = in(reg) divisor,
            inout("rax") dividend => _,
            inout("rdx") 0u64 => remainder,
            options(pure, nomem, nostack)
        );
    }
    remainder
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn remainder(dividend: u64, divisor: u64) -> u64 {
    dividend % divisor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_counted() {
        // Primes up to 10, 100, 1000 and 10000 are 4, 25, 168 and 1229; the test does not count 2.
        let counted = [1, 3, 4, 10, 100, 1000, 10_000].map(count_primes);
        assert_eq!(counted, [0, 0, 1, 3, 24, 167, 1228]);
        // 121 = 11 * 11: the square root itself is tried as a divisor.
        assert_eq!(count_primes(122) - count_primes(121), 0);
    }
}
