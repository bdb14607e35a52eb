//! Somebody else, on connections of their own, who must not notice anything.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::support::*;

/// A member that was there before the trouble, and a publisher.
pub struct Canary {
    topic: &'static str,
    publisher: Client,
    member: tokio::sync::Mutex<Stream>,
    songs: AtomicU32,
}

impl Canary {
    /// Returns when both connections are known to work.
    pub async fn new(broker: &Broker) -> Self {
        Self::named(broker, "canary").await
    }

    async fn named(broker: &Broker, topic: &'static str) -> Self {
        let (member, _) = broker.client().await.subscribe(balanced(topic, &[topic])).await;
        let canary = Canary {
            topic,
            publisher: broker.client().await,
            member: member.into(),
            songs: AtomicU32::new(0),
        };
        canary.sings().await;
        canary
    }

    /// The broker serves: a message goes through and is settled.
    pub async fn sings(&self) {
        let song = self.songs.fetch_add(1, Relaxed).to_string();
        self.publisher.publish(self.topic, &song).await;
        assert_eq!(self.member.lock().await.take().await, song);
    }
}

/// The broker serves new connections.
pub async fn serves_newcomers(broker: &Broker) {
    Canary::named(broker, "newcomer").await.sings().await;
}
