use std::ops::Add;
use std::time::Duration;

/// A moment, in nanoseconds since the process started. The core gets it as an argument and never asks a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    pub fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }

    pub fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long from `earlier` to this moment; zero where `earlier` is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, span: Duration) -> Time {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(nanos))
    }
}
