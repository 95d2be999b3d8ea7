//! Which rows are asked for how often.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Distribution of row ids, under sysbench's names and with its defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// Every row equally often.
    #[default]
    Uniform,
    /// A bell over all rows: the mean of some uniform numbers.
    Gaussian {
        /// How many.
        #[serde(default = "defaults::iterations")]
        iterations: u32,
    },
    /// A hot band in the middle, and a bell over all rows for the rest.
    Special {
        /// Uniform numbers of the bell.
        #[serde(default = "defaults::iterations")]
        iterations: u32,
        /// Width of the band in percent of the rows.
        #[serde(default = "defaults::special_percent")]
        percent: u32,
        /// Share of draws that fall into the band, in percent.
        #[serde(default = "defaults::special_hot_percent")]
        hot_percent: u32,
    },
    /// The lowest ids hottest: a share h of the rows gets a share 1 - h of the draws.
    Pareto {
        /// Above 0 and below 1.
        #[serde(default = "defaults::pareto_h")]
        h: f64,
    },
    /// The lowest ids hottest, by Zipf's law.
    Zipfian {
        /// At least 0; 0 is uniform.
        #[serde(default = "defaults::zipfian_exponent")]
        exponent: f64,
    },
}

mod defaults {
    pub fn iterations() -> u32 {
        12
    }
    pub fn special_percent() -> u32 {
        1
    }
    pub fn special_hot_percent() -> u32 {
        75
    }
    pub fn pareto_h() -> f64 {
        0.2
    }
    pub fn zipfian_exponent() -> f64 {
        0.8
    }
}
