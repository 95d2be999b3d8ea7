//! The version of the plan and record schemas.

/// Increases when a reader of the old schema would misunderstand the new one.
pub const SCHEMA_VERSION: u32 = 1;
