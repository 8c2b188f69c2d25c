//! Random numbers that are the same everywhere, for ever: a seed names a program.

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`; 0 when that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        if limit == 0 {
            return 0;
        }
        (self.bits() % limit as u64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub fn range(&mut self, low: i64, high: i64) -> i64 {
        let width = high.saturating_sub(low).max(0) as u64 + 1;
        low + (self.bits() % width) as i64
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.bits() % 100 < percent
    }

    /// One of the elements of a list that isn't empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// An index, chosen in proportion to the weights.
    pub fn weighted(&mut self, weights: &[u64]) -> usize {
        let mut left = self.bits() % weights.iter().sum::<u64>().max(1);
        for (index, weight) in weights.iter().enumerate() {
            if left < *weight {
                return index;
            }
            left -= weight;
        }
        weights.len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_never_changes() {
        let mut random = Random::new(1);
        assert_eq!(
            [random.bits(), random.bits()],
            [10451216379200822465, 13757245211066428519]
        );
        assert!((0..1000).all(|_| (-3..=4).contains(&random.range(-3, 4))));
        assert!((0..1000).all(|_| random.weighted(&[1, 0, 2]) != 1));
    }
}
