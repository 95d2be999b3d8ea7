//! The interface between the engine and the lab: plan and records.
//!
//! The engine reads a [`Plan`] as the first JSON line on standard input and writes [`Record`]s as JSON Lines on
//! standard output. The JSON Schemas in `schema/` are generated from these types; tests in both languages fail when
//! the two differ.
//!
//! # Layout
//! - [`plan`]: target, workload and load. The types of load, phases and distributions are in `load` and `random`.
//! - [`record`]: the results. [`description`]: statements, tables and limits that the engine derives from a plan.
//! - [`histogram`]: the bucket rule of the sparse histograms in the records; [`log_buckets`]: buckets of equal widths on a
//!   logarithmic scale.
//! - [`calendar`]: dates and times as plans write them.
//! - [`placeholders`]: parameters in user-defined SQL.

pub mod calendar;
pub mod description;
pub mod histogram;
pub mod log_buckets;
pub mod placeholders;
pub mod plan;
pub mod record;
mod version;

pub use description::Description;
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

/// The JSON Schema of a description, as committed in `schema/describe.schema.json`.
pub fn describe_schema() -> schemars::Schema {
    schemars::schema_for!(Description)
}
