//! A series of due times.

use crate::Nanos;

/// An endless series of due times, each not before the one before it.
pub trait Arrivals {
    /// The next due time; `Nanos::MAX` after the last one.
    fn next_due(&mut self) -> Nanos;
}
