//! Other tools' command lines and reports, for drop-ins that take their place: text in, text out.
//!
//! Nothing here prints, opens a file or knows the time; whoever runs a drop-in hands in its arguments and the records of
//! the run, and prints what comes back.

pub mod slap;
pub mod sysbench;
