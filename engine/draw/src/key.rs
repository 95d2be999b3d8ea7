//! Which row a statement asks for. One distribution per type; each draws ids from 1 to `rows`.

use crate::Rng;

/// A distribution of row ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Every row equally often.
    Uniform {
        /// Ids run from 1 to this.
        rows: u32,
    },
}

impl Keys {
    /// One id.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        match *self {
            Keys::Uniform { rows } => 1 + rng.below(u64::from(rows)) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_reaches_both_ends_and_nothing_else() {
        let keys = Keys::Uniform { rows: 3 };
        let mut rng = Rng::new(1, &[]);
        let mut seen = [0u32; 3];
        for _ in 0..3000 {
            seen[keys.draw(&mut rng) as usize - 1] += 1;
        }
        assert!(seen.iter().all(|&count| count > 850), "{seen:?}");
    }
}
