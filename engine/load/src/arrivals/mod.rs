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

/// The arrivals of engine `engine` of `engines`; `None` for a closed loop. Ramps and steps begin at `begin`.
///
/// Engines take constant arrivals in turn, so that all arrivals together are evenly spaced. With Poisson arrivals,
/// every engine has an independent process; all of them together are a Poisson process with the sum of the rates.
pub fn arrivals(
    shape: &Shape,
    begin: Nanos,
    engine: u64,
    engines: u64,
    seed: u64,
) -> Option<Box<dyn Arrivals + Send>> {
    let (gaps, rate) = (shape.gaps()?, shape.curve(begin)?);
    Some(match gaps {
        Gaps::Constant => Box::new(ConstantArrivals::new(rate, engine, engines)),
        Gaps::Poisson => {
            let rng = Rng::new(seed, &[u64::from_be_bytes(*b"arrivals"), engine, engines]);
            Box::new(PoissonArrivals::new(rate, engines, rng))
        }
    })
}
