//! The CPU time of this thread as what criterion measures.

#[path = "clock.rs"]
pub mod clock;

use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};

/// For what one thread does alone and without waiting.
pub struct CpuTime;

impl Measurement for CpuTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        clock::now()
    }

    fn end(&self, begun: Duration) -> Duration {
        clock::now() - begun
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
