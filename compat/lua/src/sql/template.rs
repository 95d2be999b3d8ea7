//! Strings by a template: `#` is a digit, `@` a letter, everything else itself.

use dbdyno_random::Rng;

/// Appends a string by `template` to `out`.
pub(crate) fn fill(rng: &mut Rng, template: &[u8], out: &mut Vec<u8>) {
    // One draw of 64 bits gives eight characters, each from the top of what the one before has left: 26^8 is below
    // 2^38, so the bias is below 2^-26.
    let (mut bits, mut left) = (0u64, 0);
    out.reserve(template.len());
    for &byte in template {
        let choices = match byte {
            b'#' => 10,
            b'@' => 26,
            _ => {
                out.push(byte);
                continue;
            }
        };
        if left == 0 {
            (bits, left) = (rng.bits(), 8);
        }
        left -= 1;
        let product = u128::from(bits) * choices;
        bits = product as u64;
        out.push(if byte == b'#' { b'0' } else { b'a' } + (product >> 64) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_and_letter_comes_equally_often() {
        let (mut rng, mut out) = (Rng::new(5, &[]), Vec::new());
        fill(&mut rng, "#@-".repeat(260_000).as_bytes(), &mut out);
        let mut cells = [[0u32; 26]; 2];
        for group in out.chunks(3) {
            assert_eq!(group[2], b'-');
            cells[0][usize::from(group[0] - b'0')] += 1;
            cells[1][usize::from(group[1] - b'a')] += 1;
        }
        // Chi-square: the 99.99 % points for 9 and 25 degrees of freedom are 33.7 and 61.7.
        for (cells, expected, bound) in [(&cells[0][..10], 26_000.0, 33.7), (&cells[1][..], 10_000.0, 61.7)] {
            let chi_square: f64 =
                cells.iter().map(|&seen| (f64::from(seen) - expected).powi(2) / expected).sum();
            assert!(chi_square < bound, "{cells:?}");
        }
    }
}
