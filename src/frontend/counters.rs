use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What one frontend counts. Written by its executor alone, read by whoever asks.
#[derive(Debug, Default)]
pub struct FrontendCounters {
    counts: [AtomicU64; FrontendCounter::ALL.len()],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum FrontendCounter {
    /// Publishes confirmed.
    Published,
    /// Of those, the ones that no subscription took.
    Unheard,
    /// Publishes refused, for whatever reason.
    PublishFailed,
    /// Dead letters dropped because nobody listened to their topic.
    DeadLettersUnheard,
    /// Dead letters dropped because a subscription to their topic was full, or they were too large with their headers.
    DeadLettersRefused,
    /// Subscribe streams begun.
    Streams,
    /// Empty or unknown commands.
    CommandsIgnored,
    /// Calls and streams that ended with an error of the broker's.
    CallsFailed,
    /// Connections accepted.
    Connections,
    /// Handlers that panicked.
    Panics,
}

impl FrontendCounter {
    /// Every counter with its name in metrics and in the admin service.
    pub const ALL: [(FrontendCounter, &'static str); 10] = [
        (FrontendCounter::Published, "published"),
        (FrontendCounter::Unheard, "unheard"),
        (FrontendCounter::PublishFailed, "publish_failed"),
        (FrontendCounter::DeadLettersUnheard, "dead_letters_unheard"),
        (FrontendCounter::DeadLettersRefused, "dead_letters_refused"),
        (FrontendCounter::Streams, "streams"),
        (FrontendCounter::CommandsIgnored, "commands_ignored"),
        (FrontendCounter::CallsFailed, "calls_failed"),
        (FrontendCounter::Connections, "connections_accepted"),
        (FrontendCounter::Panics, "handler_panics"),
    ];
}

impl FrontendCounters {
    pub fn count(&self, counter: FrontendCounter) {
        self.add(counter, 1);
    }

    pub fn add(&self, counter: FrontendCounter, by: u64) {
        // One writer: no read-modify-write is needed.
        let count = &self.counts[counter as usize];
        count.store(count.load(Relaxed) + by, Relaxed);
    }

    /// Names and values, in the order of [`FrontendCounter::ALL`].
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        FrontendCounter::ALL
            .iter()
            .map(|&(counter, name)| (name, self.counts[counter as usize].load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_stands_at_its_place() {
        for (place, (counter, _)) in FrontendCounter::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, place);
        }
    }
}
