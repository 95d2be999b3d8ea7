//! Random strings of characters from an alphabet.

use crate::Rng;

/// The characters of random strings.
#[derive(Clone, Debug)]
pub struct Alphabet {
    /// The characters in UTF-8, concatenated.
    bytes: Vec<u8>,
    /// End offset of each character; empty if every character is a single byte.
    ends: Vec<u32>,
    count: u64,
    /// Number of characters that 64 random bits select.
    per_draw: u32,
}

impl Alphabet {
    /// An alphabet of the characters in `alphabet`, which must not be empty.
    pub fn new(alphabet: &str) -> Self {
        assert!(!alphabet.is_empty(), "the alphabet is empty");
        let count = alphabet.chars().count() as u64;
        let ends = if alphabet.is_ascii() {
            Vec::new()
        } else {
            alphabet.char_indices().map(|(at, char)| (at + char.len_utf8()) as u32).collect()
        };
        let bits = (u64::BITS - (count - 1).leading_zeros()).max(1);
        Self { bytes: alphabet.into(), ends, count, per_draw: (32 / bits).max(1) }
    }

    /// Appends `length` characters. 64 random bits are a fraction below 1; its leading digits, in the base of the
    /// alphabet's size, select characters (Lemire 2019, without the rejection step). At least 32 bits remain unused, so
    /// the bias of every character is below 2^-32.
    #[inline]
    pub fn write(&self, rng: &mut Rng, length: u32, out: &mut Vec<u8>) {
        let mut remaining = length;
        while remaining > 0 {
            let mut fraction = rng.bits();
            let count = remaining.min(self.per_draw);
            for _ in 0..count {
                let digits = u128::from(fraction) * u128::from(self.count);
                fraction = digits as u64;
                self.push_character((digits >> 64) as usize, out);
            }
            remaining -= count;
        }
    }

    #[inline]
    fn push_character(&self, index: usize, out: &mut Vec<u8>) {
        if self.ends.is_empty() {
            out.push(self.bytes[index]);
            return;
        }
        let begin = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        out.extend_from_slice(&self.bytes[begin..self.ends[index] as usize]);
    }
}

/// Random strings whose lengths are equally frequent between two bounds.
#[derive(Clone, Debug)]
pub struct Strings {
    alphabet: Alphabet,
    min_length: u32,
    length_count: u64,
}

impl Strings {
    /// Strings of `min_length` to `max_length` characters of `alphabet`, which must not be empty.
    pub fn new(alphabet: &str, min_length: u32, max_length: u32) -> Self {
        let length_count = u64::from(max_length - min_length) + 1;
        Self { alphabet: Alphabet::new(alphabet), min_length, length_count }
    }

    /// Appends a string.
    #[inline]
    pub fn write(&self, rng: &mut Rng, out: &mut Vec<u8>) {
        let longer = if self.length_count == 1 { 0 } else { rng.below(self.length_count) as u32 };
        self.alphabet.write(rng, self.min_length + longer, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::goodness_of_fit::assert_fits;

    #[test]
    fn every_character_is_equally_frequent() {
        for size in [2u32, 3, 10, 36, 95] {
            let alphabet: String = (0..size).map(|at| char::from_u32(32 + at).unwrap()).collect();
            let alphabet = Alphabet::new(&alphabet);
            let (length, mut out, mut at) = (13, Vec::new(), 0);
            let next = |rng: &mut Rng| {
                if at == out.len() {
                    (at, out) = (0, Vec::new());
                    alphabet.write(rng, length, &mut out);
                    assert_eq!(out.len(), length as usize);
                }
                at += 1;
                u64::from(out[at - 1])
            };
            assert_fits(next, 32, 31 + u64::from(size), |_| 1.0 / f64::from(size));
        }
    }

    #[test]
    fn neighbours_do_not_depend_on_each_other() {
        let alphabet = Alphabet::new("abc");
        let pair = |rng: &mut Rng| {
            let mut out = Vec::new();
            alphabet.write(rng, 2, &mut out);
            u64::from(out[0] - b'a') * 3 + u64::from(out[1] - b'a')
        };
        assert_fits(pair, 0, 8, |_| 1.0 / 9.0);
    }

    #[test]
    fn every_length_is_equally_frequent() {
        let strings = Strings::new("ab", 3, 6);
        let length = |rng: &mut Rng| {
            let mut out = Vec::new();
            strings.write(rng, &mut out);
            out.len() as u64
        };
        assert_fits(length, 3, 6, |_| 0.25);
    }

    #[test]
    fn characters_of_many_bytes_are_whole() {
        let alphabet = Alphabet::new("aé𝄞");
        let mut out = Vec::new();
        alphabet.write(&mut Rng::new(1, &[]), 1000, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.chars().count(), 1000);
        assert!("aé𝄞".chars().all(|char| text.contains(char)));
    }
}
