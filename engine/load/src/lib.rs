//! When: load shapes and the timeline of a run.
//!
//! Pure arithmetic on nanoseconds since the start of the run. Nothing here reads a clock, so a day of load is
//! tested in a millisecond.
//!
//! # Layout
//! - [`plan`] and [`report`]: what a plan says of connections, phases and intervals.
//! - [`shapes`]: how the load changes over time, one file per shape; [`level`]: the arithmetic they share.
//! - [`arrivals`]: the due times of an open loop, one file per kind of gap.
//! - [`pauses`]: think time and a changing number of busy connections in a closed loop.
//! - [`timeline`]: phases, and the bounds of ticks, intervals and statement windows.

pub mod arrivals;
pub mod level;
pub mod limits;
pub mod pauses;
pub mod plan;
pub mod report;
pub mod shapes;
pub mod timeline;

/// Nanoseconds since the start of the run.
pub type Nanos = u64;

/// An event that starts more than this after it was due is late.
pub const LATE: Nanos = 1_000_000;
