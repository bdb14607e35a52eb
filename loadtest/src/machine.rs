//! How busy the machine and this program are.

use procfs::{CurrentSI, KernelStats};
use rustix::time::{ClockId, clock_gettime};

/// CPU time until a moment, or between two.
#[derive(Debug, Clone, Copy)]
pub struct Busy {
    /// Of this program, in seconds.
    pub own_cpu_seconds: f64,
    /// Of all cores, in ticks: busy and in all.
    ticks: (u64, u64),
    /// Share of the time in which the cores had work (0 to 1); 0 where it can't be read.
    pub machine_share: f64,
}

impl Busy {
    pub fn now() -> Busy {
        let own = clock_gettime(ClockId::ProcessCPUTime);
        let ticks = KernelStats::current().map(|stats| {
            let total = &stats.total;
            let idle = total.idle + total.iowait.unwrap_or_default();
            let busy = total.user
                + total.nice
                + total.system
                + total.irq.unwrap_or_default()
                + total.softirq.unwrap_or_default()
                + total.steal.unwrap_or_default();
            (busy, busy + idle)
        });
        Busy {
            own_cpu_seconds: own.tv_sec as f64 + own.tv_nsec as f64 / 1e9,
            ticks: ticks.unwrap_or_default(),
            machine_share: 0.0,
        }
    }

    pub fn since(&self, before: &Busy) -> Busy {
        let busy = self.ticks.0.saturating_sub(before.ticks.0);
        let all = self.ticks.1.saturating_sub(before.ticks.1);
        Busy {
            own_cpu_seconds: self.own_cpu_seconds - before.own_cpu_seconds,
            ticks: (busy, all),
            machine_share: if all == 0 { 0.0 } else { busy as f64 / all as f64 },
        }
    }
}
