//! How `sub` ends, and when it does not.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::{TcpListener, TcpStream};

use crate::lines::Sub;
use crate::support::*;

#[tokio::test]
async fn count_ends_it_with_all_acks_carried_out() {
    let broker = Broker::start();
    let client = broker.client().await;
    for round in 1..=10 {
        let mut sub =
            Sub::open(&broker, &["*", "--group", "g", "--max-in-flight", "8", "--count", "3"]).await;
        client.publish_numbers("a", 1, 3).await;
        assert_eq!(sub.out.rest().await, "a\t1\na\t2\na\t3\n");
        sub.ends_well().await;
        assert_eq!(acked(&broker).await, 3 * round);
    }
}

#[tokio::test]
async fn count_ends_it_without_acks_too() {
    let broker = Broker::start();
    let mut sub = Sub::open(&broker, &["*", "--count", "2"]).await;
    broker.client().await.publish_numbers("a", 1, 3).await;
    assert_eq!(sub.out.rest().await, "a\t1\na\t2\n");
    sub.ends_well().await;
}

#[tokio::test]
async fn signals_end_it_with_all_acks_carried_out() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut printed = 0;
    for signal in [libc::SIGINT, libc::SIGTERM].repeat(5) {
        let mut sub = Sub::open(&broker, &["*", "--group", "g", "--max-in-flight", "20"]).await;
        client.publish_numbers("a", 1, 20).await;
        for number in 1..=20 {
            assert_eq!(sub.out.next().await, format!("a\t{number}"));
        }
        sub.signal(signal);
        sub.ends_well().await;
        printed += 20;
        assert_eq!(acked(&broker).await, printed);
    }
}

#[tokio::test]
async fn what_ack_none_held_goes_to_others() {
    let broker = Broker::start();
    let mut sub = Sub::open(&broker, &["*", "--group", "g", "--ack", "none"]).await;
    let client = broker.client().await;
    client.publish("a", "held").await;
    assert_eq!(sub.out.next().await, "a\theld");
    let (mut other, _) = client.subscribe(balanced("g", &["*"])).await;
    sub.signal(libc::SIGTERM);
    sub.ends_well().await;
    let message = other.message().await;
    assert_eq!((payload(&message).as_str(), message.delivery_attempt), ("held", 2));
}

#[tokio::test]
async fn it_ends_when_nobody_reads_and_acks_only_what_was_read() {
    let broker = Broker::start();
    let mut sub = Sub::open(&broker, &["*", "--group", "g"]).await;
    let client = broker.client().await;
    let (mut other, _) = client.subscribe(balanced("g", &["*"])).await;
    client.publish("a", "read").await;
    assert_eq!(sub.out.next().await, "a\tread");
    client.publish("a", "held").await;
    let held = other.message().await;
    broker.stats_when("only one is held", |stats| stats.in_flight == 1).await;
    sub.close_out();
    client.publish("a", "unread").await;
    sub.ends_well().await;
    other.ack(&held);
    let message = other.message().await;
    assert_eq!((payload(&message).as_str(), message.delivery_attempt), ("unread", 2));
}

#[tokio::test]
async fn a_reader_that_does_not_read_cannot_keep_it_from_ending() {
    let broker = Broker::start();
    let mut sub = Sub::open(&broker, &["*", "--group", "g"]).await;
    let client = broker.client().await;
    // One fits into a pipe, two do not.
    let large = "x".repeat(50_000);
    client.publish("a", &large).await;
    client.publish("a", &large).await;
    let is_stuck = |stats: &tinybroker::proto::GetStatsResponse| stats.waiting == 0 && stats.in_flight == 1;
    broker.stats_when("the second is out", is_stuck).await;
    sub.signal(libc::SIGTERM);
    sub.ends_well().await;
}

#[tokio::test]
async fn it_comes_back_to_a_broker_that_comes_back() {
    let first = Broker::start();
    let relay = Relay::to(first.address()).await;
    let mut sub = Sub::start(relay.address, &["*", "--group", "g"]);
    sub.err.find("subscribed as ").await;
    drop(first);
    sub.err.find("trying again").await;
    let second = Broker::start();
    relay.turn_to(second.address());
    sub.err.find("subscribed as ").await;
    second.client().await.publish("a", "after").await;
    assert_eq!(sub.out.next().await, "a\tafter");
    sub.signal(libc::SIGINT);
    sub.ends_well().await;
    assert_eq!(acked(&second).await, 1);
}

#[tokio::test]
async fn it_can_be_ended_while_the_broker_is_away() {
    let broker = Broker::start();
    let mut sub = Sub::open(&broker, &["*"]).await;
    drop(broker);
    sub.err.find("trying again").await;
    sub.signal(libc::SIGTERM);
    sub.ends_well().await;
}

#[tokio::test]
async fn without_reconnect_the_loss_of_the_broker_is_an_error() {
    let broker = Broker::start();
    let mut sub = Sub::open(&broker, &["*", "--no-reconnect"]).await;
    drop(broker);
    assert_eq!(sub.wait().await, Some(1));
    let err = sub.err.rest().await;
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.contains("lost the connection to the broker"), "{err}");
}

#[tokio::test]
async fn a_stopping_broker_says_so() {
    let broker = Broker::with(&["--drain-timeout", "1s"]);
    let hold = ["*", "--group", "g", "--ack", "none", "--no-reconnect"];
    let mut text = Sub::open(&broker, &hold).await;
    broker.client().await.publish("a", "held").await;
    assert_eq!(text.out.next().await, "a\theld");
    let mut json = Sub::start(broker.address(), &["*", "--json"]);
    assert_eq!(json.out.json().await["event"], "subscribed");
    broker.signal(libc::SIGTERM);
    text.err.find("the broker is shutting down").await;
    text.err.find("UNAVAILABLE").await;
    assert_eq!(text.wait().await, Some(1));
    let draining = json.out.json().await;
    assert_eq!((&draining["event"], &draining["grace"]), (&"draining".into(), &"1s".into()));
    json.err.find("UNAVAILABLE").await;
}

async fn acked(broker: &Broker) -> u64 {
    let stats = broker.stats().await;
    assert_eq!(stats.counters.get("redelivered").copied().unwrap_or(0), 0, "{stats:?}");
    stats.counters["acked"]
}

/// An address that stays while the brokers behind it come and go.
struct Relay {
    address: SocketAddr,
    target: Arc<Mutex<SocketAddr>>,
}

impl Relay {
    async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let target = Arc::new(Mutex::new(target));
        let current = target.clone();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let target = *current.lock().expect("nobody panics with it");
                tokio::spawn(async move {
                    // Without a broker the connection ends at once.
                    if let Ok(mut broker) = TcpStream::connect(target).await {
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut broker).await;
                    }
                });
            }
        });
        Relay { address, target }
    }

    fn turn_to(&self, target: SocketAddr) {
        *self.target.lock().expect("nobody panics with it") = target;
    }
}
