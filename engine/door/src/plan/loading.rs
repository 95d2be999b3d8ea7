//! How rows are loaded, and what is read before a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is read before a run, so that it does not begin on a cold cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Prewarm {
    /// Nothing.
    #[default]
    None,
    /// Every table and every index of it, from end to end.
    Scan,
}

/// How rows are loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Loading {
    /// Connections that load at the same time, inside one table too.
    pub streams: u32,
    /// How rows travel.
    pub method: LoadingMethod,
    /// Whose tables they are.
    pub form: LoadingForm,
    /// What follows at the end of CREATE TABLE, behind the storage engine; form `sysbench` alone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub create_table_options: String,
}

impl Default for Loading {
    fn default() -> Self {
        Self {
            streams: 2,
            method: LoadingMethod::default(),
            form: LoadingForm::default(),
            create_table_options: String::new(),
        }
    }
}

/// How rows travel to the server. The rows are the same either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadingMethod {
    /// LOAD DATA LOCAL, or COPY with PostgreSQL, where the server allows it; INSERT otherwise.
    #[default]
    Auto,
    /// LOAD DATA LOCAL; a server that refuses it is an error.
    LoadData,
    /// COPY; a server that refuses it is an error.
    Copy,
    /// INSERT of many rows.
    Insert,
}

/// Whose rules `prepare` and `cleanup` follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadingForm {
    /// Tables carry dbdyno's mark in their comment. `prepare` keeps complete ones of the same specification, and
    /// `cleanup` drops nothing without the mark. Streams share a table.
    #[default]
    Marked,
    /// As sysbench does it: the same CREATE TABLE, without a mark; a table that exists already is an error. Stream t of n
    /// makes, fills and indexes the tables t, t+n, … one after the other, and column k follows the distribution of the
    /// plan. `cleanup` drops sbtest1 to sbtestN, whoever made them.
    Sysbench,
}
