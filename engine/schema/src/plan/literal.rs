//! A value as a plan writes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a value is a number, a string or null")]
pub enum Literal {
    /// An integer.
    Integer(i64),
    /// Another number.
    Number(f64),
    /// A string.
    Text(String),
}

impl Literal {
    /// Approximate bytes as text.
    pub(super) fn max_bytes(&self) -> u64 {
        match self {
            Literal::Text(text) => text.len() as u64,
            _ => 32,
        }
    }
}
