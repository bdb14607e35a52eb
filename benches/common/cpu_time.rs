//! The CPU time of this thread as what is measured: what other programs take of the core is left out.

use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use rustix::time::{ClockId, clock_gettime};

/// For what one thread does alone and without waiting.
pub struct CpuTime;

fn now() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("the clock is not negative")
}

impl Measurement for CpuTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        now()
    }

    fn end(&self, begun: Duration) -> Duration {
        now() - begun
    }

    fn add(&self, one: &Duration, other: &Duration) -> Duration {
        *one + *other
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        WallTime.to_f64(value)
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}
