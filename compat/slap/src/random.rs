//! Generates the random numbers of the generated SQL. They are those of the GNU C library's `random()` with its default
//! seed.
//!
//! mysqlslap and mariadb-slap do not seed `random()`, so they generate the same SQL in every run, and dbdyno generates the
//! same SQL too. The method is additive feedback: r(i) = r(i-3) + r(i-31) modulo 2^32, and the result is the upper 31 bits of r(i). The minimal standard
//! generator (Park and Miller, 1988) fills the initial state, and the first 310 numbers are discarded (random(3),
//! TYPE_3).

/// The characters of generated strings. As in mysqlslap, U and V are missing.
const LETTERS: &[u8; 60] = b"0123456789ABCDEFGHIJKLMNOPQRSTWXYZabcdefghijklmnopqrstuvwxyz";
/// Length of a string. The columns hold two characters more.
const LENGTH: usize = 126;
const STATE: usize = 31;
const LAG: usize = 3;
const DISCARDED: usize = 310;

#[derive(Clone, Debug)]
pub(super) struct Random {
    state: [u32; STATE],
    index: usize,
}

impl Random {
    pub(super) fn new() -> Self {
        let mut state = [1u32; STATE];
        for index in 1..STATE {
            state[index] = (u64::from(state[index - 1]) * 16807 % 2_147_483_647) as u32;
        }
        let mut random = Self { state, index: LAG };
        for _ in 0..DISCARDED {
            random.number();
        }
        random
    }

    /// The next random number, below 2^31.
    pub(super) fn number(&mut self) -> u32 {
        let earlier = self.state[(self.index + STATE - LAG) % STATE];
        let current = &mut self.state[self.index];
        *current = current.wrapping_add(earlier);
        self.index = (self.index + 1) % STATE;
        *current >> 1
    }

    pub(super) fn string(&mut self) -> String {
        (0..LENGTH).map(|_| char::from(LETTERS[self.number() as usize % LETTERS.len()])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A C program prints these numbers with glibc's `random()`.
    #[test]
    fn numbers_are_those_of_the_c_library() {
        let mut random = Random::new();
        let first: Vec<_> = (0..5).map(|_| random.number()).collect();
        assert_eq!(first, [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915, 1_957_747_793]);
    }

    /// Both clients print this string with `--only-print`.
    #[test]
    fn strings_are_those_of_mysqlslap() {
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
