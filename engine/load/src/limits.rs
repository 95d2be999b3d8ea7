//! Limits of a plan's load, phases and intervals.

/// Longest step of a load, and longest time to wait for a lost connection: one day.
pub const DURATION_US: u64 = 86_400_000_000;
/// Longest measurement and warm-up: as many seconds as 31 bits hold.
pub const RUN_US: u64 = i32::MAX as u64 * 1_000_000;
/// Most events per second.
pub const RATE_PER_S: f64 = 1e7;
/// Most steps of a load.
pub const STEPS: usize = 1000;
/// Most marks of a report.
pub const MARKS: usize = 256;
