use std::time::Duration;

use crate::clock::Nanos;

/// When publishers send, and which part of that is measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Window {
    pub start: Nanos,
    pub measured_from: Nanos,
    pub until: Nanos,
}

impl Window {
    /// Ends never, and nothing of it is measured.
    pub const ENDLESS: Window = Window { start: 0, measured_from: Nanos::MAX, until: Nanos::MAX };

    pub fn measures(&self, moment: Nanos) -> bool {
        (self.measured_from..self.until).contains(&moment)
    }

    pub fn seconds(&self) -> f64 {
        (self.until - self.measured_from) as f64 / 1e9
    }
}

/// How long the parts take.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    pub warm_up: Duration,
    pub measured: Duration,
    /// How long what was published may take to be settled after the last publish.
    pub drain: Duration,
}
