//! The door between the engine and the lab.
//!
//! Plain data and nothing else: a [`Plan`] goes in as the first JSON line on standard input, [`Record`]s come
//! out as JSON Lines on standard output. The JSON Schemas in `schema/` are generated from these types; a test
//! on either side of the door fails when they drift.
//!
//! # Layout
//! - [`plan`]: what the engine is asked to do.
//! - [`record`]: what it answers.
//! - [`histogram`]: the bucket rule of the sparse histograms in the records; [`log_buckets`]: a rule of equal widths on a
//!   logarithmic scale.
//! - [`calendar`]: dates and times as plans write them.
//! - [`placeholders`]: parameters in the user's own SQL.
//! - [`option`]: options that a script or a built-in test declares, and what they were set to.

pub mod calendar;
pub mod histogram;
pub mod log_buckets;
pub mod option;
pub mod placeholders;
pub mod plan;
pub mod record;
mod version;

pub use plan::Plan;
pub use record::Record;
pub use version::SCHEMA_VERSION;

/// The JSON Schema of the plan, as committed in `schema/plan.schema.json`.
pub fn plan_schema() -> schemars::Schema {
    schemars::schema_for!(Plan)
}

/// The JSON Schema of one record, as committed in `schema/events.schema.json`.
pub fn events_schema() -> schemars::Schema {
    schemars::schema_for!(Record)
}
