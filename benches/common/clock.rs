//! The CPU time of this thread: what other programs take of the core is left out.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

pub fn now() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("the clock is not negative")
}
