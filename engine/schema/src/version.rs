//! The version of what the engine and the lab tell each other.

/// Version of both schemas. It grows when a reader of the old one would misunderstand the new one.
pub const SCHEMA_VERSION: u32 = 1;
