use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(10);

/// Pauses between tries: each twice the last, up to a bound, and each cut by chance to between half and all of
/// itself, so that clients that lost the broker together do not come back together.
pub struct Backoff {
    next: Duration,
}

impl Backoff {
    pub fn new() -> Self {
        Backoff { next: FIRST }
    }

    pub fn reset(&mut self) {
        self.next = FIRST;
    }

    pub fn pause(&mut self) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(LONGEST);
        whole / 2 + (whole / 2).mul_f64(chance())
    }
}

/// From 0 to 1, by the randomness that hash maps are seeded with.
fn chance() -> f64 {
    RandomState::new().hash_one(0) as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_begin_anew() {
        let mut backoff = Backoff::new();
        let first = backoff.pause();
        assert!(first >= FIRST / 2 && first <= FIRST, "{first:?}");
        let later: Vec<_> = (0..20).map(|_| backoff.pause()).collect();
        assert!(later[10..].iter().all(|pause| *pause >= LONGEST / 2 && *pause <= LONGEST), "{later:?}");
        assert!(later[10..].windows(2).any(|pair| pair[0] != pair[1]), "{later:?}");
        backoff.reset();
        assert!(backoff.pause() <= FIRST);
    }
}
