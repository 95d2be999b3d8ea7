//! The strings of the OLTP family: groups of eleven random digits joined by dashes.

use crate::Rng;

/// Length of column c: ten groups.
pub const C_LENGTH: usize = 10 * GROUP + 9;
/// Length of column pad: five groups.
pub const PAD_LENGTH: usize = 5 * GROUP + 4;

const GROUP: usize = 11;
const GROUP_VALUES: u64 = 100_000_000_000;

/// A value of column c.
pub fn c(rng: &mut Rng) -> [u8; C_LENGTH] {
    groups(rng)
}

/// A value of column pad.
pub fn pad(rng: &mut Rng) -> [u8; PAD_LENGTH] {
    groups(rng)
}

fn groups<const LENGTH: usize>(rng: &mut Rng) -> [u8; LENGTH] {
    let mut text = [b'-'; LENGTH];
    for group in text.chunks_mut(GROUP + 1) {
        let mut value = rng.below(GROUP_VALUES);
        for digit in group[..GROUP].iter_mut().rev() {
            *digit = b'0' + (value % 10) as u8;
            value /= 10;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_those_of_the_columns() {
        let mut rng = Rng::new(1, &[]);
        for text in [c(&mut rng).to_vec(), pad(&mut rng).to_vec()] {
            assert!([119, 59].contains(&text.len()));
            for (position, byte) in text.iter().enumerate() {
                assert_eq!(*byte == b'-', position % 12 == 11, "{position}");
                assert!(*byte == b'-' || byte.is_ascii_digit());
            }
        }
    }
}
