//! Where the choices of a script come from: a seed, or the bytes of a fuzzer.

/// A small generator of random numbers, the same everywhere for the same seed (splitmix64). Given bytes, it uses these up
/// first, one a choice.
pub struct Chance {
    seed: u64,
    bytes: Option<std::vec::IntoIter<u8>>,
}

impl Chance {
    #[cfg(test)]
    pub fn of_seed(seed: u64) -> Self {
        Self { seed: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), bytes: None }
    }

    pub fn of_bytes(bytes: Vec<u8>) -> Self {
        Self { seed: 0, bytes: Some(bytes.into_iter()) }
    }

    /// Whether bytes were given, and all are used up.
    pub fn is_over(&self) -> bool {
        self.bytes.as_ref().is_some_and(|bytes| bytes.len() == 0)
    }

    fn next(&mut self) -> u64 {
        if let Some(byte) = self.bytes.as_mut().and_then(Iterator::next) {
            return u64::from(byte);
        }
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.seed;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    pub fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }
}
