//! `sysbench.rand`: random numbers and strings with the distributions of `dbdyno_random`. As in sysbench, integers have
//! 32 bits.
//!
//! Arguments are converted as in a C call: fractions are cut off, and numbers wrap at 2^32. If the end of a range
//! precedes its start, the length `b - a + 1` wraps too.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use dbdyno_random::Rng;
use dbdyno_random::text::eight_digits;
use dbdyno_schema::plan::Distribution;
use mlua::{Lua, Table};

use super::ranges::{CachedDistribution, distribution_over};
use crate::config::RandomSettings;
use crate::context::Context;
use crate::raw::{self, Call, CallResult, ONE_RESULT};
use dbdyno_sysbench::Compat;

/// The number of values from `low` to `high`, modulo 2^32 if `high` is less than `low`; 0 if `high` is `low - 1`.
fn count(low: u32, high: u32) -> u64 {
    match (low, high) {
        (0, u32::MAX) => 1 << 32,
        _ => high.wrapping_sub(low).wrapping_add(1).into(),
    }
}

/// A distribution by its name in `sysbench.rand`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DistributionName {
    Default,
    Uniform,
    Gaussian,
    Special,
    Pareto,
    Zipfian,
}

/// A number from `low` to `high`, both included.
#[inline]
pub(crate) fn draw(context: &Context, name: DistributionName, low: u32, high: u32) -> u32 {
    let count = count(low, high);
    if count == 0 {
        return low;
    }
    let rng = &mut *context.rng.borrow_mut();
    let random = &context.config.random;
    let ranges = &context.ranges;
    let number = match name {
        DistributionName::Uniform => u64::from(low) + rng.below(count),
        DistributionName::Gaussian => distribution_over(&gaussian(random), low, count).draw(rng),
        DistributionName::Special => distribution_over(&special(random), low, count).draw(rng),
        DistributionName::Default => {
            ranges.draw(CachedDistribution::Default, &random.distribution, low, count, rng)
        }
        DistributionName::Pareto => ranges.draw(CachedDistribution::Pareto, &pareto(random), low, count, rng),
        DistributionName::Zipfian => {
            ranges.draw(CachedDistribution::Zipfian, &zipfian(random), low, count, rng)
        }
    };
    number as u32
}

fn gaussian(random: &RandomSettings) -> Distribution {
    Distribution::Gaussian { iterations: random.iterations }
}

fn special(random: &RandomSettings) -> Distribution {
    Distribution::Special {
        iterations: random.iterations,
        percent: random.special_percent,
        hot_percent: random.special_hot_percent,
    }
}

fn pareto(random: &RandomSettings) -> Distribution {
    Distribution::Pareto { h: random.pareto_h }
}

fn zipfian(random: &RandomSettings) -> Distribution {
    Distribution::Zipfian { exponent: random.zipfian_exponent, scattered: false }
}

/// The largest prime below 2^32 that is 3 modulo 4.
const PRIME: u64 = 4_294_967_291;

/// The next position in the process-wide sequence of unique numbers, and an offset. Both are random in each process and
/// do not depend on the seed, so that two runs do not insert the same keys.
static UNIQUE: LazyLock<(AtomicU32, u32)> = LazyLock::new(|| {
    let bits = RandomState::new().build_hasher().finish();
    (AtomicU32::new(bits as u32), (bits >> 32) as u32)
});

/// A number that is unique in this process for 2^32 calls.
pub(crate) fn unique() -> u32 {
    let (next, offset) = &*UNIQUE;
    scatter(scatter(next.fetch_add(1, Ordering::Relaxed)).wrapping_add(*offset) ^ 0x5bf0_3635)
}

/// A permutation of the 32-bit numbers, by quadratic residues modulo a prime that is 3 modulo 4 (Preshing, "How to
/// generate a sequence of unique random integers", 2012). The five numbers that are not below the prime map to
/// themselves.
fn scatter(number: u32) -> u32 {
    let wide = u64::from(number);
    if wide >= PRIME {
        return number;
    }
    let residue = wide * wide % PRIME;
    (if wide <= PRIME / 2 { residue } else { PRIME - residue }) as u32
}

/// Appends `format` with a random digit for each `#` and a random letter from a to z for each `@`.
pub(crate) fn append(rng: &mut Rng, format: &[u8], to: &mut Vec<u8>) {
    for run in format.chunk_by(|one, other| one == other) {
        match run[0] {
            b'#' => {
                for digits in run.chunks(8) {
                    let eight = eight_digits(rng.below(100_000_000) as u32);
                    to.extend_from_slice(&eight[..digits.len()]);
                }
            }
            b'@' => to.extend(run.iter().map(|_| b'a' + rng.below(26) as u8)),
            _ => to.extend_from_slice(run),
        }
    }
}

/// Appends a string of `min_length` to `max_length` characters from `0` to `z`.
pub(crate) fn append_varstring(rng: &mut Rng, min_length: u32, max_length: u32, to: &mut Vec<u8>) {
    let length = u64::from(min_length) + rng.below(u64::from(max_length - min_length) + 1);
    to.extend((0..length).map(|_| b'0' + rng.below(u64::from(b'z' - b'0') + 1) as u8));
}

/// Reads the two ends of a range, converted as for a C function with unsigned parameters.
#[inline]
fn range_arguments(call: &Call) -> Result<(u32, u32), String> {
    Ok((call.unsigned(1)?, call.unsigned(2)?))
}

/// A raw function that draws a number between its two arguments.
macro_rules! distribution {
    ($name:ident) => {
        |call| {
            let (low, high) = range_arguments(call)?;
            call.push(draw(call.context(), DistributionName::$name, low, high).into());
            ONE_RESULT
        }
    };
}

/// `string(format)`.
fn text(call: &Call) -> CallResult {
    let format = call.string(1, "fmt")?;
    let mut text = Vec::with_capacity(format.len());
    append(&mut call.context().rng.borrow_mut(), format, &mut text);
    call.push_bytes(&text);
    ONE_RESULT
}

/// `varstring(min_length, max_length)` of sysbench 1.1.
fn varstring(call: &Call) -> CallResult {
    let (min_length, max_length) = range_arguments(call)?;
    if min_length > max_length || max_length == 0 {
        return Err(format!("a string cannot have {min_length} to {max_length} characters"));
    }
    let mut text = Vec::new();
    append_varstring(&mut call.context().rng.borrow_mut(), min_length, max_length, &mut text);
    call.push_bytes(&text);
    ONE_RESULT
}

pub(super) fn install(lua: &Lua, context: &Context) -> mlua::Result<()> {
    let rand = lua.create_table()?;
    rand.set("default", raw::function(lua, distribution!(Default))?)?;
    rand.set("uniform", raw::function(lua, distribution!(Uniform))?)?;
    rand.set("gaussian", raw::function(lua, distribution!(Gaussian))?)?;
    rand.set("pareto", raw::function(lua, distribution!(Pareto))?)?;
    match context.config.compat {
        Compat::V1_0 => rand.set("special", raw::function(lua, distribution!(Special))?)?,
        Compat::V1_1 => {
            rand.set("zipfian", raw::function(lua, distribution!(Zipfian))?)?;
            rand.set("varstring", raw::function(lua, varstring)?)?;
        }
    }
    let unique = raw::function(lua, |call| {
        call.push(unique().into());
        ONE_RESULT
    })?;
    let uniform_double = raw::function(lua, |call| {
        call.push(call.context().rng.borrow_mut().unit());
        ONE_RESULT
    })?;
    rand.set("unique", unique)?;
    rand.set("uniform_double", uniform_double)?;
    rand.set("string", raw::function(lua, text)?)?;
    lua.globals().get::<Table>("sysbench")?.set("rand", &rand)?;
    if context.config.compat == Compat::V1_0 {
        install_legacy_names(lua, &rand)?;
    }
    Ok(())
}

/// Sets the global functions of sysbench 0.5.
fn install_legacy_names(lua: &Lua, rand: &Table) -> mlua::Result<()> {
    let globals = lua.globals();
    for (old, new) in [
        ("sb_rand", "default"),
        ("sb_rand_uniform", "uniform"),
        ("sb_rand_gaussian", "gaussian"),
        ("sb_rand_special", "special"),
        ("sb_rand_str", "string"),
    ] {
        globals.set(old, rand.get::<mlua::Function>(new)?)?;
    }
    let bits = raw::function(lua, |call| {
        call.push(((call.context().rng.borrow_mut().bits() >> 32) as u32).into());
        ONE_RESULT
    })?;
    globals.set("sb_rnd", bits)?;
    globals.set("sb_rand_uniq", raw::function(lua, unique_within)?)
}

/// `sb_rand_uniq([a, b])`: the next unique number in the range.
fn unique_within(call: &Call) -> CallResult {
    let number = if call.argument_count() < 2 {
        unique()
    } else {
        let (low, high) = range_arguments(call)?;
        if low > high {
            return Err(format!("there is no number from {low} to {high}"));
        }
        std::iter::repeat_with(unique).find(|number| (low..=high).contains(number)).unwrap_or(low)
    };
    call.push(number.into());
    ONE_RESULT
}

#[cfg(test)]
mod tests;
