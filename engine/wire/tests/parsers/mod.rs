//! What the fuzz targets in fuzz/ do with an input, one module each. The ordinary tests replay their seeds.

pub mod fields;
pub mod frames;
pub mod login;
pub mod postgres;
pub mod session;
pub mod skim;

mod server;
