//! The interface of all load shapes, and their common checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::level::Level;
use crate::{Nanos, limits};

/// A load shape.
pub(super) trait LoadShape {
    /// How the gaps between events are distributed; `None` in a closed loop.
    fn gaps(&self) -> Option<Gaps> {
        None
    }

    /// Events per second of the fleet in an open loop, busy connections in a closed one. A shape that changes
    /// does so from `begin` on.
    fn level(&self, begin: Nanos) -> Level;

    /// Errors in the shape for a load of `connections`; `None` for each check that passes.
    fn problems(&self, connections: u32) -> Vec<Option<String>>;
}

/// Gaps between the events of an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// As even as the rate allows.
    Constant,
    /// Exponential: independent users.
    #[default]
    Poisson,
}

pub(super) fn rate_problem(key: &str, value: f64) -> Option<String> {
    let most = limits::RATE_PER_S;
    // NaN is in no range.
    let fits = (0.0..=most).contains(&value);
    (!fits).then(|| format!("load.shape.{key} is {value}; it must be above 0 and at most {most}"))
}

pub(super) fn connections_problem(key: &str, value: u32, connections: u32) -> Option<String> {
    (value > connections)
        .then(|| format!("load.shape.{key} is {value}; the maximum is load.connections, {connections}"))
}

pub(super) fn duration_problem(key: &str, value: u64) -> Option<String> {
    let most = limits::DURATION_US;
    (!(1..=most).contains(&value))
        .then(|| format!("load.shape.{key} is {value}; it must be between 1 and {most}"))
}

/// The error of a shape whose levels are all zero.
pub(super) fn zero_problem(levels: impl IntoIterator<Item = f64>) -> Option<String> {
    levels.into_iter().all(|level| level == 0.0).then(|| {
        "load.shape starts no events; at least one rate or number of connections must be above 0".into()
    })
}
