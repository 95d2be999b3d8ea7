//! What every kind of arrivals is.

use crate::Nanos;

/// An endless series of due times, each not before the one before it.
pub trait Arrivals {
    /// The next due time; `Nanos::MAX` where there is none any more.
    fn next_due(&mut self) -> Nanos;
}
