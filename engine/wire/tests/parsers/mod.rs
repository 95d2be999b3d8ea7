//! The code of the fuzz targets in fuzz/, one module per target; `postgres` has two. `tests/replay.rs` runs it on the seeds.

pub mod fields;
pub mod frames;
pub mod login;
pub mod postgres;
pub mod session;
pub mod skim;

mod server;
