//! Load shapes and the timeline of a run.
//!
//! This crate only computes with times (nanoseconds since the start of the run) and reads no clock, so a test of a day's
//! load takes a millisecond.
//!
//! # Layout
//! - [`plan`] and [`report`]: the plan's keys for connections, phases and intervals.
//! - [`shapes`]: one file per load shape; [`load_curve`]: their common arithmetic.
//! - [`arrivals`]: the due times of an open loop, one file per distribution of the gaps.
//! - [`pauses`]: think time and a changing number of busy connections in a closed loop.
//! - [`rate_limit`]: the highest rate of a closed loop.
//! - [`slices`]: a closed loop that pauses and resumes on command.
//! - [`timeline`]: phases, and the ends of ticks, intervals and windows of statement statistics.

pub mod arrivals;
pub mod limits;
pub mod load_curve;
pub mod pauses;
pub mod plan;
pub mod rate_limit;
pub mod report;
pub mod shapes;
pub mod slices;
pub mod timeline;

/// Nanoseconds since the start of the run.
pub type Nanos = u64;

/// An event counts as late if it starts more than this (1 ms) after its due time.
pub const LATE_AFTER: Nanos = 1_000_000;
