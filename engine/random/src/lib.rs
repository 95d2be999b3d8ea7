//! Random ids, strings and rows, reproducible by a seed.
//!
//! All randomness in the engine comes from this crate. The same seed therefore repeats the values of a run, and the bytes
//! of a row do not depend on the connection that writes it. This crate reads no clock and shares no state between users.
//!
//! # Layout
//! - [`Rng`]: a stream of random numbers, identified by a seed and a path.
//! - [`key`]: row ids in statements.
//! - [`text`]: the strings in the columns c and pad of the OLTP tables.
//! - [`alphabet`]: strings of random characters.
//! - [`row`]: the content of one row of an OLTP table.
//! - [`permutation`]: numbers without repetition.

pub mod alphabet;
pub mod key;
pub mod permutation;
pub mod row;
pub mod text;

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers: xoshiro256++ (Blackman and Vigna, 2019).
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// The stream of `seed` and `path`. Every number of the path goes through the SplitMix64 finaliser, so streams with
    /// different paths, such as those of adjacent users or rows, are independent in practice.
    pub fn new(seed: u64, path: &[u64]) -> Self {
        let start = path.iter().fold(mix(seed), |state, &step| mix(state ^ mix(step)));
        Self(Xoshiro256PlusPlus::seed_from_u64(start))
    }

    /// Returns 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, which must not be 0. The method is multiply and shift (Lemire 2019) without the
    /// rejection step; with 64 bits the bias is below 2^-32 for tables with 32-bit ids.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in [0, 1) with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014), with its increment.
fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_path_gives_the_same_numbers() {
        let draw = |path: &[u64]| {
            let mut rng = Rng::new(7, path);
            [rng.bits(), rng.bits(), rng.bits()]
        };
        assert_eq!(draw(&[1, 2]), draw(&[1, 2]));
        assert_ne!(draw(&[1, 2]), draw(&[2, 1]));
        assert_ne!(draw(&[1]), draw(&[1, 0]));
    }

    #[test]
    fn below_is_uniform() {
        // Chi-square over 10 cells, 100,000 draws: 27.9 is the 99.9 % point for 9 degrees of freedom.
        let mut rng = Rng::new(1, &[]);
        let mut cells = [0u32; 10];
        for _ in 0..100_000 {
            cells[rng.below(10) as usize] += 1;
        }
        let chi_square: f64 = cells.iter().map(|&seen| (f64::from(seen) - 1e4).powi(2) / 1e4).sum();
        assert!(chi_square < 27.9, "{cells:?}");
    }

    #[test]
    fn unit_stays_below_one() {
        let mut rng = Rng::new(3, &[]);
        let mean =
            (0..100_000).map(|_| rng.unit()).inspect(|u| assert!((0.0..1.0).contains(u))).sum::<f64>() / 1e5;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
    }
}
