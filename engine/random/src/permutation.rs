//! Permutations: numbers in a pseudo-random order, without repetition.
//!
//! [`Permutation`] has all 32-bit numbers. It maps a counter to the numbers by quadratic residues: for a prime p = 3 mod 4, x² mod p is different
//! for all x up to p/2, and p - x² mod p gives the other numbers (Preshing, "How to generate a sequence of unique
//! random integers", 2012). Numbers that are not below p map to themselves. The permutation is applied twice, with an
//! offset between, to hide the pattern of adjacent squares.

use crate::mix;

/// The largest prime below 2^32 that is 3 mod 4.
const PRIME: u32 = 4_294_967_291;

/// A permutation of all 32-bit numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutation {
    base: u32,
    offset: u32,
}

impl Permutation {
    /// The permutation for `seed`.
    pub fn new(seed: u64) -> Self {
        let (low, high) = (seed as u32, (seed >> 32) as u32);
        Self {
            base: permute(permute(low).wrapping_add(0x682f_0161)),
            offset: permute(permute(high.wrapping_add(1)).wrapping_add(0x4679_0905)),
        }
    }

    /// Number `index` of the sequence.
    #[inline]
    pub fn at(&self, index: u32) -> u32 {
        let first = permute(self.base.wrapping_add(index));
        permute(first.wrapping_add(self.offset) ^ 0x5bf0_3635)
    }
}

/// A permutation of the numbers below a bound, by a Feistel network over the next power of 4 whose results above the bound
/// are permuted again (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
#[derive(Clone, Copy, Debug)]
pub struct RangePermutation {
    seed: u64,
    count: u64,
    half_bits: u32,
}

impl RangePermutation {
    /// The permutation of 0 to `count` - 1 for `seed`; `count` is between 1 and 2^62.
    pub fn new(seed: u64, count: u64) -> Self {
        let bits = u64::BITS - (count - 1).leading_zeros();
        Self { seed, count, half_bits: bits.div_ceil(2).max(1) }
    }

    /// The number at place `index`, which is below the bound.
    #[inline]
    pub fn at(&self, index: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let mut number = index;
        loop {
            let (mut left, mut right) = (number >> self.half_bits, number & mask);
            for round in 0..4 {
                (left, right) = (right, left ^ (mix(self.seed ^ mix((right << 2) | round)) & mask));
            }
            number = (left << self.half_bits) | right;
            if number < self.count {
                return number;
            }
        }
    }
}

#[inline]
fn permute(x: u32) -> u32 {
    if x >= PRIME {
        return x;
    }
    let residue = (u64::from(x) * u64::from(x) % u64::from(PRIME)) as u32;
    if x <= PRIME / 2 { residue } else { PRIME - residue }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_number_comes_twice() {
        for seed in [0, 1, u64::MAX] {
            let permutation = Permutation::new(seed);
            // This range includes the overflow of the counter.
            let around = (0..50_000).chain(u32::MAX - 50_000..=u32::MAX);
            let numbers: HashSet<u32> = around.map(|index| permutation.at(index)).collect();
            assert_eq!(numbers.len(), 100_001);
        }
    }

    #[test]
    fn the_permutation_is_one_at_its_edges() {
        let edges = (0..1000).chain(PRIME / 2 - 500..PRIME / 2 + 500).chain(PRIME - 500..=u32::MAX);
        let all: Vec<u32> = edges.collect();
        assert_eq!(all.iter().map(|&x| permute(x)).collect::<HashSet<_>>().len(), all.len());
        assert_eq!([permute(0), permute(1), permute(PRIME - 1), permute(PRIME)], [0, 1, PRIME - 1, PRIME]);
    }

    #[test]
    fn a_range_is_permuted_and_every_place_is_equally_likely() {
        for count in [1, 2, 3, 11, 64, 65, 3000] {
            let permutation = RangePermutation::new(5, count);
            let mut numbers: Vec<u64> = (0..count).map(|index| permutation.at(index)).collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..count), "{count}");
        }
        // Chi-square over 11 numbers at the first place, 11,000 seeds: 35.6 is the 99.99 % point for 10 degrees of freedom.
        let mut seen = [0i64; 11];
        (0..11_000).for_each(|seed| seen[RangePermutation::new(seed, 11).at(0) as usize] += 1);
        let chi_square: i64 = seen.iter().map(|seen| (seen - 1000).pow(2)).sum::<i64>() / 1000;
        assert!(chi_square < 36, "{seen:?}");
    }

    #[test]
    fn numbers_spread_over_the_whole_range() {
        // Chi-square over 16 cells, 16,000 draws: 44.3 is the 99.99 % point for 15 degrees of freedom.
        let permutation = Permutation::new(7);
        let mut cells = [0_i64; 16];
        (0..16_000).for_each(|index| cells[(permutation.at(index) >> 28) as usize] += 1);
        let chi_square: i64 = cells.iter().map(|seen| (seen - 1000).pow(2)).sum::<i64>() / 1000;
        assert!(chi_square < 45, "{cells:?}");
        assert_ne!(Permutation::new(7), Permutation::new(8));
    }
}
