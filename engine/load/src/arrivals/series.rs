//! A series of due times.

use crate::Nanos;

/// An endless, non-decreasing series of due times.
pub trait Arrivals {
    /// The next due time; `Nanos::MAX` after the last one.
    fn next_due(&mut self) -> Nanos;
}
