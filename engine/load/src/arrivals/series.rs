//! The trait of the arrival processes.

use crate::Nanos;

/// An endless, non-decreasing series of due times.
pub trait Arrivals {
    /// The next due time; `Nanos::MAX` if there are no more.
    fn next_due(&mut self) -> Nanos;
}
