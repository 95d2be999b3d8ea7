//! Distribution of the rows that the load accesses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Distribution of row ids, under sysbench's names and with its defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// All rows equally often.
    #[default]
    Uniform,
    /// A bell curve over all rows: the mean of `iterations` uniform numbers.
    Gaussian {
        /// Number of uniform numbers.
        #[serde(default = "defaults::iterations")]
        iterations: u32,
    },
    /// A hot band in the middle; the other accesses follow a bell curve over all rows.
    Special {
        /// Number of uniform numbers of the bell curve.
        #[serde(default = "defaults::iterations")]
        iterations: u32,
        /// Width of the band in percent of the rows.
        #[serde(default = "defaults::special_percent")]
        percent: u32,
        /// Share of accesses to the band, in percent.
        #[serde(default = "defaults::special_hot_percent")]
        hot_percent: u32,
    },
    /// The lowest ids are the hottest: a share h of the rows gets a share 1 - h of the accesses.
    Pareto {
        /// Above 0 and below 1.
        #[serde(default = "defaults::pareto_h")]
        h: f64,
    },
    /// The lowest ids are the hottest, by Zipf's law.
    Zipfian {
        /// At least 0; 0 means uniform.
        #[serde(default = "defaults::zipfian_exponent")]
        exponent: f64,
        /// The hottest ids are scattered over all ids, as in YCSB, by a permutation that is the same in every run.
        #[serde(default)]
        scattered: bool,
    },
    /// The non-uniform random numbers of TPC-C, clause 2.1.6: ((random(0, a) | random(low, high)) + c) modulo the number of
    /// values, plus low. The bits that are set more often than others make some ids hotter.
    Nurand {
        /// Largest number that is combined with the uniform id by a bitwise OR.
        a: u64,
        /// A constant that moves the hot ids.
        #[serde(default)]
        c: u64,
    },
}

impl Distribution {
    /// The error in the parameters of the distribution at plan key `key`, if any.
    pub fn problem(&self, key: &str) -> Option<String> {
        match *self {
            Distribution::Gaussian { iterations } | Distribution::Special { iterations, .. }
                if !(1..=1000).contains(&iterations) =>
            {
                Some(format!("{key}.iterations is {iterations}; it must be between 1 and 1000"))
            }
            Distribution::Special { percent, hot_percent, .. } if percent > 100 || hot_percent > 100 => {
                Some(format!("{key}.percent is {percent} and hot_percent {hot_percent}; the maximum is 100"))
            }
            Distribution::Pareto { h } if !(h > 0.0 && h < 1.0) => {
                Some(format!("{key}.h is {h}; it must be above 0 and below 1"))
            }
            Distribution::Zipfian { exponent, .. } if !(0.0..=100.0).contains(&exponent) => {
                Some(format!("{key}.exponent is {exponent}; it must be between 0 and 100"))
            }
            Distribution::Nurand { a, c } if a > NURAND_MAX || c > a => Some(format!(
                "{key}.a is {a} and c {c}; a must not exceed {NURAND_MAX}, and c must not exceed a"
            )),
            _ => None,
        }
    }
}

/// Maximum of `a`; far below it, the OR with any id fits 64 bits.
const NURAND_MAX: u64 = 1 << 40;

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
