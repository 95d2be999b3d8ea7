//! The trait that every load shape implements, and checks that several shapes share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load_curve::LoadCurve;
use crate::{Nanos, limits};

/// A load shape other than a plain closed loop.
pub(super) trait LoadShape {
    /// Distribution of the gaps between events; `None` in a closed loop.
    fn gaps(&self) -> Option<Gaps> {
        None
    }

    /// Events per second of all engines in an open loop, busy connections in a closed one. Ramps and steps begin at
    /// `begin`.
    fn curve(&self, begin: Nanos) -> LoadCurve;

    /// Errors in the shape for a load of `connections`; `None` for each check that passes.
    fn problems(&self, connections: u32) -> Vec<Option<String>>;
}

/// Distribution of the gaps between the events of an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// Equal at a constant rate; otherwise they change smoothly with the rate.
    Constant,
    /// Exponential, as from independent users.
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

/// The error of a shape whose rates or numbers of connections are all zero.
pub(super) fn zero_problem(values: impl IntoIterator<Item = f64>) -> Option<String> {
    values.into_iter().all(|value| value == 0.0).then(|| {
        "load.shape starts no events; at least one rate or number of connections must be above 0".into()
    })
}
