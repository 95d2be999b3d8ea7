//! The strings in the OLTP tables: groups of eleven random digits joined by dashes.

use crate::Rng;

/// Length of column c: ten groups.
pub const C_LENGTH: usize = 10 * GROUP + 9;
/// Length of column pad: five groups.
pub const PAD_LENGTH: usize = 5 * GROUP + 4;

const GROUP: usize = 11;
const GROUP_VALUES: u64 = 100_000_000_000;

/// A value of column c.
pub fn c_value(rng: &mut Rng) -> [u8; C_LENGTH] {
    groups(rng)
}

/// A value of column pad.
pub fn pad_value(rng: &mut Rng) -> [u8; PAD_LENGTH] {
    groups(rng)
}

#[inline]
fn groups<const LENGTH: usize>(rng: &mut Rng) -> [u8; LENGTH] {
    let mut text = [b'-'; LENGTH];
    for group in text.chunks_mut(GROUP + 1) {
        let value = rng.below(GROUP_VALUES);
        let (high, low) = (value / 100_000_000, (value % 100_000_000) as u32);
        group[0] = b'0' + (high / 100) as u8;
        group[1] = b'0' + (high / 10 % 10) as u8;
        group[2] = b'0' + (high % 10) as u8;
        group[3..GROUP].copy_from_slice(&eight_digits(low));
    }
    text
}

/// The eight decimal digits of a number below 10^8, computed in parallel: one 64-bit word holds the halves, then the pairs
/// of digits, then the digits (multiplication by a reciprocal; Lemire, "Converting integers to fixed-digit representations
/// quickly", 2021). A row has 165 digits; one division per digit took a third of the loading time.
#[inline]
pub fn eight_digits(number: u32) -> [u8; 8] {
    let halves = u64::from(number / 10_000) | u64::from(number % 10_000) << 32;
    let hundreds = ((halves * 10_486) >> 20) & 0x7f_0000_007f;
    let pairs = hundreds | (halves - 100 * hundreds) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | (pairs - 10 * tens) << 8;
    (digits + 0x3030_3030_3030_3030).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_digits_equal_the_formatted_number() {
        let edges = (0..10_000).flat_map(|half| [half, half * 10_000, half * 10_001, 99_999_999 - half]);
        for number in edges {
            assert_eq!(eight_digits(number).as_slice(), format!("{number:08}").as_bytes());
        }
    }

    #[test]
    fn dashes_separate_groups_of_eleven_digits() {
        let mut rng = Rng::new(1, &[]);
        for text in [c_value(&mut rng).to_vec(), pad_value(&mut rng).to_vec()] {
            assert!([119, 59].contains(&text.len()));
            for (position, byte) in text.iter().enumerate() {
                assert_eq!(*byte == b'-', position % 12 == 11, "{position}");
                assert!(*byte == b'-' || byte.is_ascii_digit());
            }
        }
    }
}
