//! When messages are due: a fixed schedule that does not wait for the broker (open loop).
//!
//! The schedule is laid down at the start. What cannot be sent at its time is sent as soon as possible and
//! keeps its time, so a broker that stalls is charged with all that had to wait meanwhile.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::clock::{self, Nanos};

/// Due times at a steady rate.
#[derive(Debug, Clone)]
pub struct Schedule {
    start: Nanos,
    /// Nanoseconds from one to the next.
    interval: f64,
    next: u64,
}

impl Schedule {
    /// `rate` a second from `start` on. Of `lanes` that share a load, each takes its own turn in the interval.
    pub fn new(start: Nanos, rate: f64, lane: usize, lanes: usize) -> Self {
        let interval = 1e9 * lanes as f64 / rate;
        let offset = interval * lane as f64 / lanes as f64;
        Schedule { start: start + offset as u64, interval, next: 0 }
    }

    /// When the next is due.
    pub fn due(&self) -> Nanos {
        self.start + (self.next as f64 * self.interval) as u64
    }

    /// Takes the next one if its time has come.
    pub fn take(&mut self, now: Nanos) -> Option<Nanos> {
        let due = self.due();
        (due <= now).then(|| {
            self.next += 1;
            due
        })
    }
}

/// Sleeps to microseconds, where the runtime's own timers know milliseconds.
pub struct Alarm {
    timer: AsyncFd<OwnedFd>,
}

impl Alarm {
    pub fn new() -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // SAFETY: an OwnedFd stays the same descriptor until it is dropped, with the registration.
        Ok(Alarm { timer: unsafe { AsyncFd::register(timer)? } })
    }

    pub async fn until(&self, moment: Nanos) -> io::Result<()> {
        let wait = clock::duration(moment.saturating_sub(clock::now()));
        if wait.is_zero() {
            return Ok(());
        }
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once_after(wait))?;
        loop {
            let mut ready = self.timer.readable().await?;
            let mut fired = [0; 8];
            match ready.try_io(|timer| Ok(rustix::io::read(timer, &mut fired)?)) {
                Ok(read) => return read.map(drop),
                Err(_would_block) => continue,
            }
        }
    }
}

fn once_after(wait: Duration) -> Itimerspec {
    let value = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
    Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_keeps_its_time() {
        let mut schedule = Schedule::new(1_000, 1e6, 0, 1);
        assert_eq!(schedule.take(999), None);
        assert_eq!(schedule.take(1_000), Some(1_000));
        assert_eq!(schedule.take(1_500), None);
        let late: Vec<_> = std::iter::from_fn(|| schedule.take(5_000)).collect();
        assert_eq!(late, [2_000, 3_000, 4_000, 5_000]);
    }

    #[test]
    fn lanes_share_a_rate_in_turns() {
        let mut due: Vec<_> = (0..4)
            .flat_map(|lane| {
                let mut schedule = Schedule::new(0, 1e6, lane, 4);
                std::iter::from_fn(move || schedule.take(7_999)).collect::<Vec<_>>()
            })
            .collect();
        due.sort_unstable();
        assert_eq!(due, [0, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000]);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_alarm_never_fires_early() {
        let alarm = Alarm::new().expect("a timer");
        for wait in [0, 50_000, 1_000_000, 2_500_000] {
            let moment = clock::now() + wait;
            alarm.until(moment).await.expect("the timer fires");
            assert!(clock::now() >= moment);
        }
    }
}
