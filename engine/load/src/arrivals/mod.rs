//! The due times of an open loop.
//!
//! A closed loop has none: there an event is due when the one before it on the same connection has ended.

mod constant;
mod poisson;
mod series;

pub use constant::Constant;
pub use poisson::Poisson;
pub(crate) use poisson::exponential;
pub use series::Arrivals;

use dbdyno_random::Rng;
use dbdyno_schema::plan::{Gaps, Shape};

use crate::Nanos;
use crate::level::Level;

/// The arrivals of one worker, which carries share `index` of `count` of the shape's rate; `None` for a closed loop.
/// A shape that changes begins to do so at `begin`.
///
/// Constant arrivals are dealt out in turn, so that all workers together are evenly spaced. Poisson arrivals are
/// drawn apart: independent Poisson streams add up to one of the summed rate.
pub fn arrivals(shape: &Shape, begin: Nanos, index: u64, count: u64, seed: u64) -> Option<Box<dyn Arrivals>> {
    let (rate, gaps) = rate(shape, begin)?;
    Some(match gaps {
        Gaps::Constant => Box::new(Constant::new(rate, index, count)),
        Gaps::Poisson => {
            let rng = Rng::new(seed, &[u64::from_be_bytes(*b"arrivals"), index, count]);
            Box::new(Poisson::new(rate, count, rng))
        }
    })
}

fn rate(shape: &Shape, begin: Nanos) -> Option<(Level, Gaps)> {
    match shape {
        Shape::Closed | Shape::ClosedRamp { .. } | Shape::ClosedSteps { .. } => None,
        Shape::Constant { rate_per_s } => Some((Level::flat(*rate_per_s), Gaps::Constant)),
        Shape::Poisson { rate_per_s } => Some((Level::flat(*rate_per_s), Gaps::Poisson)),
        Shape::Ramp { from_per_s, to_per_s, over_us, gaps } => {
            Some((Level::ramp(*from_per_s, *to_per_s, begin, over_us * 1000), *gaps))
        }
        Shape::Steps { steps, gaps } => {
            let steps = steps.iter().map(|step| (step.rate_per_s, step.for_us * 1000));
            Some((Level::steps(begin, steps), *gaps))
        }
    }
}
