//! Load shapes with a constant mean rate: `constant` (equal gaps) and `poisson` (exponential gaps).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::load_shape::{Gaps, LoadShape, rate_problem, zero_problem};
use crate::Nanos;
use crate::load_curve::LoadCurve;

/// Open loop with equal gaps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// Events per second.
    pub rate_per_s: f64,
}

/// Open loop with exponential gaps, as from independent users.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poisson {
    /// Mean events per second.
    pub rate_per_s: f64,
}

macro_rules! steady {
    ($($name:ident)*) => {$(
        impl LoadShape for $name {
            fn gaps(&self) -> Option<Gaps> {
                Some(Gaps::$name)
            }

            fn curve(&self, _: Nanos) -> LoadCurve {
                LoadCurve::constant(self.rate_per_s)
            }

            fn problems(&self, _: u32) -> Vec<Option<String>> {
                vec![rate_problem("rate_per_s", self.rate_per_s), zero_problem([self.rate_per_s])]
            }
        }
    )*};
}
steady!(Constant Poisson);
