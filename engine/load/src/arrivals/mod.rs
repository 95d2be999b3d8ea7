//! The due times of an open loop.
//!
//! A closed loop has no schedule: an event is due when the previous one on the same connection has ended.

mod constant;
mod poisson;
mod series;

pub use constant::ConstantArrivals;
pub use poisson::PoissonArrivals;
pub(crate) use poisson::exponential;
pub use series::Arrivals;

use dbdyno_random::Rng;

use crate::Nanos;
use crate::shapes::{Gaps, Shape};

/// The arrivals of worker `index` of `count`; `None` for a closed loop. A shape that changes over time starts at
/// `begin`.
///
/// Workers take constant arrivals in turn, so that all arrivals together are evenly spaced. With Poisson arrivals,
/// every worker has an independent process; their sum is a Poisson process with the summed rate.
pub fn arrivals(shape: &Shape, begin: Nanos, index: u64, count: u64, seed: u64) -> Option<Box<dyn Arrivals>> {
    let (gaps, rate) = (shape.gaps()?, shape.curve(begin)?);
    Some(match gaps {
        Gaps::Constant => Box::new(ConstantArrivals::new(rate, index, count)),
        Gaps::Poisson => {
            let rng = Rng::new(seed, &[u64::from_be_bytes(*b"arrivals"), index, count]);
            Box::new(PoissonArrivals::new(rate, count, rng))
        }
    })
}
