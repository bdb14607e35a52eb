use std::cell::Cell;
use std::time::{Instant, SystemTime};

use crate::model::Time;

/// The process's one clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Instant,
}

impl Clock {
    pub fn start() -> Self {
        Clock { started: Instant::now() }
    }

    pub fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    pub fn instant(&self, time: Time) -> Instant {
        self.started + time.since(Time::default())
    }
}

/// What the clocks say, read once a turn of a task at most: all of a turn happens at one moment.
#[derive(Debug)]
pub struct TurnTime {
    pub clock: Clock,
    now: Cell<Option<Time>>,
    wall: Cell<Option<SystemTime>>,
}

impl TurnTime {
    pub fn new(clock: Clock) -> Self {
        TurnTime { clock, now: Cell::new(None), wall: Cell::new(None) }
    }

    /// A turn is over: the next look is at the clocks.
    pub fn go_on(&self) {
        self.now.set(None);
        self.wall.set(None);
    }

    pub fn now(&self) -> Time {
        remembered(&self.now, || self.clock.now())
    }

    /// The time of day.
    pub fn wall(&self) -> SystemTime {
        remembered(&self.wall, SystemTime::now)
    }
}

fn remembered<T: Copy>(slot: &Cell<Option<T>>, look: impl FnOnce() -> T) -> T {
    slot.get().unwrap_or_else(|| {
        let value = look();
        slot.set(Some(value));
        value
    })
}
