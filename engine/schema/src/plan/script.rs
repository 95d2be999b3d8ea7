//! The workload named `lua`: a script, and the values of the options that it declares.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A script in Lua with the interface of sysbench's scripts. `dbdyno-compat` runs it; `prepare`, `prewarm` and `cleanup`
/// are the script's own commands or functions of these names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptWorkload {
    /// Path of the script.
    pub path: String,
    /// Values of options that the script declares, by name; other options have the script's defaults.
    #[serde(default)]
    pub options: BTreeMap<String, ScriptOption>,
}

/// The value of an option of a script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "an option of a script is true, false, a number or a string")]
pub enum ScriptOption {
    /// On or off.
    Switch(bool),
    /// An integer.
    Integer(i64),
    /// Another number.
    Number(f64),
    /// A string; for a list option, its elements separated by commas.
    Text(String),
}

/// As on a command line.
impl std::fmt::Display for ScriptOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ScriptOption::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            ScriptOption::Integer(number) => number.fmt(f),
            ScriptOption::Number(number) => number.fmt(f),
            ScriptOption::Text(text) => f.write_str(text),
        }
    }
}
