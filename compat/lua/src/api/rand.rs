//! `sysbench.rand`: numbers and strings by the distributions of `dbdyno_random`, in sysbench's 32-bit integers.
//!
//! Arguments are taken as a C call takes them: fractions are cut off, and numbers wrap at 2^32. A range whose end lies
//! before its beginning wraps too, as `b - a + 1` does in 32 bits.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::rc::Rc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use dbdyno_random::Rng;
use dbdyno_random::text::eight_digits;
use dbdyno_schema::plan::Distribution;
use mlua::{Lua, Table};

use super::ranges::{Place, keys};
use crate::Context;
use crate::program::{Compat, RandomSettings};
use crate::raw::{self, Call, ONE, Raw, Returns};

/// How many numbers lie between `low` and `high`, counted up and around from `low`; 0 where `high` is the one before it.
fn count(low: u32, high: u32) -> u64 {
    match (low, high) {
        (0, u32::MAX) => 1 << 32,
        _ => high.wrapping_sub(low).wrapping_add(1).into(),
    }
}

/// A distribution by its name in `sysbench.rand`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Default,
    Uniform,
    Gaussian,
    Special,
    Pareto,
    Zipfian,
}

/// A number from `low` to `high`, both included.
#[inline]
pub(crate) fn draw(context: &Context, named: Named, low: u32, high: u32) -> u32 {
    let count = count(low, high);
    if count == 0 {
        return low;
    }
    let rng = &mut *context.rng.borrow_mut();
    let random = &context.program.random;
    let drawn = match named {
        Named::Uniform => u64::from(low) + rng.below(count),
        Named::Gaussian => keys(&gaussian(random), low, count).draw(rng),
        Named::Special => keys(&special(random), low, count).draw(rng),
        Named::Default => context.ranges.draw(Place::Default, &random.distribution, low, count, rng),
        Named::Pareto => context.ranges.draw(Place::Pareto, &pareto(random), low, count, rng),
        Named::Zipfian => context.ranges.draw(Place::Zipfian, &zipfian(random), low, count, rng),
    };
    drawn as u32
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
    Distribution::Zipfian { exponent: random.zipfian_exponent }
}

/// The prime below 2^32 whose remainder by 4 is 3.
const PRIME: u64 = 4_294_967_291;

/// Where the process-wide sequence of unique numbers stands, and the offset of this process. Two runs must not insert
/// the same keys, so both come from the process's own randomness, not from the seed; so it is in sysbench on Debian.
static UNIQUE: LazyLock<(AtomicU32, u32)> = LazyLock::new(|| {
    let bits = RandomState::new().build_hasher().finish();
    (AtomicU32::new(bits as u32), (bits >> 32) as u32)
});

/// A number that no thread of this process has been given before, until 2^32 of them have been.
pub(crate) fn unique() -> u32 {
    let (next, offset) = &*UNIQUE;
    scatter(scatter(next.fetch_add(1, Ordering::Relaxed)).wrapping_add(*offset) ^ 0x5bf0_3635)
}

/// A permutation of the 32-bit numbers: quadratic residues modulo a prime that leaves 3 by 4 (Preshing, "How to generate
/// a sequence of unique random integers", 2012). The five numbers from the prime on stay where they are.
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
    for same in format.chunk_by(|one, other| one == other) {
        match same[0] {
            b'#' => {
                for digits in same.chunks(8) {
                    let drawn = eight_digits(rng.below(100_000_000) as u32);
                    to.extend_from_slice(&drawn[..digits.len()]);
                }
            }
            b'@' => to.extend(same.iter().map(|_| b'a' + rng.below(26) as u8)),
            _ => to.extend_from_slice(same),
        }
    }
}

/// Appends a string of `shortest` to `longest` characters from `0` to `z`.
pub(crate) fn append_varied(rng: &mut Rng, shortest: u32, longest: u32, to: &mut Vec<u8>) {
    let length = u64::from(shortest) + rng.below(u64::from(longest - shortest) + 1);
    to.extend((0..length).map(|_| b'0' + rng.below(u64::from(b'z' - b'0') + 1) as u8));
}

/// Two arguments as a C function takes unsigned integers.
#[inline]
fn range_of(call: &Call) -> Result<(u32, u32), String> {
    Ok((call.unsigned(1)?, call.unsigned(2)?))
}

macro_rules! distributions {
    ($($name:ident),*) => {$(
        struct $name;
        impl Raw for $name {
            fn call(call: &Call) -> Returns {
                let (low, high) = range_of(call)?;
                call.push(draw(call.context(), Named::$name, low, high).into());
                ONE
            }
        }
    )*};
}
distributions!(Default, Uniform, Gaussian, Special, Pareto, Zipfian);

struct Unique;

impl Raw for Unique {
    fn call(call: &Call) -> Returns {
        call.push(unique().into());
        ONE
    }
}

struct UniformDouble;

impl Raw for UniformDouble {
    fn call(call: &Call) -> Returns {
        call.push(call.context().rng.borrow_mut().unit());
        ONE
    }
}

/// 32 random bits: `sb_rnd` of 0.5.
struct Bits;

impl Raw for Bits {
    fn call(call: &Call) -> Returns {
        call.push(((call.context().rng.borrow_mut().bits() >> 32) as u32).into());
        ONE
    }
}

/// `string(format)`.
struct Text;

impl Raw for Text {
    fn call(call: &Call) -> Returns {
        if call.kind(1) != mlua::ffi::LUA_TSTRING {
            return Err(format!("attempt to get length of local 'fmt' (a {} value)", call.kind_name(1)));
        }
        let format = call.bytes(1).unwrap_or_default();
        let mut text = Vec::with_capacity(format.len());
        append(&mut call.context().rng.borrow_mut(), format, &mut text);
        call.push_bytes(&text);
        ONE
    }
}

/// `varstring(shortest, longest)` of 1.1.
struct VariedText;

impl Raw for VariedText {
    fn call(call: &Call) -> Returns {
        let (shortest, longest) = range_of(call)?;
        if shortest > longest || longest == 0 {
            return Err(format!("a string cannot have {shortest} to {longest} characters"));
        }
        let mut text = Vec::new();
        append_varied(&mut call.context().rng.borrow_mut(), shortest, longest, &mut text);
        call.push_bytes(&text);
        ONE
    }
}

pub(crate) fn install(lua: &Lua, context: &Rc<Context>) -> mlua::Result<()> {
    let rand = lua.create_table()?;
    rand.set("default", raw::function::<Default>(lua)?)?;
    rand.set("uniform", raw::function::<Uniform>(lua)?)?;
    rand.set("gaussian", raw::function::<Gaussian>(lua)?)?;
    rand.set("pareto", raw::function::<Pareto>(lua)?)?;
    match context.program.compat {
        Compat::V10 => rand.set("special", raw::function::<Special>(lua)?)?,
        Compat::V11 => {
            rand.set("zipfian", raw::function::<Zipfian>(lua)?)?;
            rand.set("varstring", raw::function::<VariedText>(lua)?)?;
        }
    }
    rand.set("unique", raw::function::<Unique>(lua)?)?;
    rand.set("uniform_double", raw::function::<UniformDouble>(lua)?)?;
    rand.set("string", raw::function::<Text>(lua)?)?;
    lua.globals().get::<Table>("sysbench")?.set("rand", &rand)?;
    if context.program.compat == Compat::V10 {
        legacy(lua, &rand)?;
    }
    Ok(())
}

/// The names of 0.5.
fn legacy(lua: &Lua, rand: &Table) -> mlua::Result<()> {
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
    globals.set("sb_rnd", raw::function::<Bits>(lua)?)?;
    globals.set("sb_rand_uniq", raw::function::<UniqueWithin>(lua)?)
}

/// `sb_rand_uniq([a, b])`: the next unique number that lies in the range.
struct UniqueWithin;

impl Raw for UniqueWithin {
    fn call(call: &Call) -> Returns {
        let drawn = if call.count() < 2 {
            unique()
        } else {
            let (low, high) = range_of(call)?;
            if low > high {
                return Err(format!("there is no number from {low} to {high}"));
            }
            std::iter::repeat_with(unique).find(|number| (low..=high).contains(number)).unwrap_or(low)
        };
        call.push(drawn.into());
        ONE
    }
}

#[cfg(test)]
mod tests;
