//! How engines and workers divide connections and limits among them.

/// The share that number `index` of `count` has of `total`. The shares add up to the total.
pub(crate) fn share(total: u32, index: u32, count: u32) -> u32 {
    total / count + u32::from(index < total % count)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_add_up() {
        for (total, count) in [(10, 3), (3, 10), (1, 1), (64, 7)] {
            assert_eq!((0..count).map(|index| share(total, index, count)).sum::<u32>(), total);
        }
    }
}
