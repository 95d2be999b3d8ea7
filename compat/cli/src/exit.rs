//! Exit codes that the originals share.

/// Anything that is wrong with what was asked for, and any failure of a run.
pub(crate) const FAILED: u8 = 1;
