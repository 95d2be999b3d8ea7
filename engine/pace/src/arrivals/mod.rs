//! The due times of an open loop.
//!
//! A closed loop has none: there an event is due when the one before it on the same connection has ended.

mod constant;
mod poisson;

pub use constant::Constant;
pub use poisson::Poisson;

use dbdyno_door::plan::Shape;
use dbdyno_draw::Rng;

use crate::Nanos;

/// An endless series of due times, each not before the one before it.
pub trait Arrivals {
    /// The next due time.
    fn next_due(&mut self) -> Nanos;
}

/// The arrivals of one worker, which carries share `index` of `count` of the shape's rate; `None` for a closed loop.
///
/// Constant arrivals are dealt out in turn, so that all workers together are evenly spaced. Poisson arrivals are
/// drawn apart: independent Poisson streams add up to one of the summed rate.
pub fn arrivals(shape: &Shape, index: u64, count: u64, seed: u64) -> Option<Box<dyn Arrivals>> {
    match *shape {
        Shape::Closed => None,
        Shape::Constant { rate_per_s } => Some(Box::new(Constant::new(rate_per_s, index, count))),
        Shape::Poisson { rate_per_s } => {
            let rng = Rng::new(seed, &[u64::from_be_bytes(*b"arrivals"), index, count]);
            Some(Box::new(Poisson::new(rate_per_s / count as f64, rng)))
        }
    }
}
