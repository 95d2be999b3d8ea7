//! The random numbers of the generated SQL: those of the GNU C library's `random()` with its default seed.
//!
//! The clients do not seed it, so their generated SQL is the same in every run, and here. The method is additive
//! feedback: r(i) = r(i-3) + r(i-31) modulo 2^32, and the result is the upper 31 bits of r(i). The minimal standard
//! generator (Park and Miller, 1988) fills the initial state, and the first 310 numbers are discarded (random(3),
//! TYPE_3).

/// The characters of generated strings. U and V are missing, as in the strings of the clients.
const LETTERS: &[u8; 60] = b"0123456789ABCDEFGHIJKLMNOPQRSTWXYZabcdefghijklmnopqrstuvwxyz";
/// Length of a string; the columns are two characters longer.
const LENGTH: usize = 126;
const STATE: usize = 31;
const LAG: usize = 3;
const DISCARDED: usize = 310;

#[derive(Clone, Debug)]
pub(super) struct Random {
    state: [u32; STATE],
    at: usize,
}

impl Random {
    pub(super) fn new() -> Self {
        let mut state = [1u32; STATE];
        for at in 1..STATE {
            state[at] = (u64::from(state[at - 1]) * 16807 % 2_147_483_647) as u32;
        }
        let mut random = Self { state, at: LAG };
        for _ in 0..DISCARDED {
            random.number();
        }
        random
    }

    /// The next random number, below 2^31.
    pub(super) fn number(&mut self) -> u32 {
        let before = self.state[(self.at + STATE - LAG) % STATE];
        let here = &mut self.state[self.at];
        *here = here.wrapping_add(before);
        self.at = (self.at + 1) % STATE;
        *here >> 1
    }

    pub(super) fn string(&mut self) -> String {
        (0..LENGTH).map(|_| char::from(LETTERS[self.number() as usize % LETTERS.len()])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of glibc's `random()`, as a program in C prints them.
    #[test]
    fn the_sequence_is_that_of_the_c_library() {
        let mut random = Random::new();
        let first: Vec<_> = (0..5).map(|_| random.number()).collect();
        assert_eq!(first, [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915, 1_957_747_793]);
    }

    /// As both clients print it with `--only-print`.
    #[test]
    fn strings_are_those_of_the_clients() {
        let mut random = Random::new();
        assert_eq!(random.number(), 1_804_289_383);
        let string = random.string();
        assert!(
            string.starts_with(
                "mxvtvmC9127qJNm06sGB8R92q2j7vTiiITRDGXM9ZLzkdekbWtmXKwZ2qG1llkRw5m9DHOFilEREk3q7"
            )
        );
        assert_eq!((string.len(), random.number()), (126, 822_890_675));
    }
}
