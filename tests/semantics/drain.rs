//! SPEC §5: SIGTERM and SIGINT.

use tinybroker::proto::subscribe_event::Event;
use tinybroker::proto::{ExtendRequest, Message, NackRequest, OpenSubscription};
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;

use crate::health;
use crate::support::*;

/// Long enough that no test sees its end.
const ENDLESS: [&str; 2] = ["--drain-timeout", "1h"];

/// A broker that drains and waits for one message in flight.
struct Draining {
    broker: Broker,
    client: Client,
    holder: Stream,
    id: String,
    held: Message,
}

async fn draining(signal: i32) -> Draining {
    let broker = Broker::with(&ENDLESS);
    let client = broker.client().await;
    let (mut holder, id) = client.subscribe(balanced("g", &["a"])).await;
    client.publish_numbers("a", 1, 2).await;
    let held = holder.message().await;
    broker.signal(signal);
    broker_drains(&broker).await;
    Draining { broker, client, holder, id, held }
}

/// Until every frontend knows of the drain.
pub async fn broker_drains(broker: &Broker) {
    // Connections are dealt out to the frontends in turn, as long as they stay.
    let mut clients = Vec::new();
    for _ in 0..4 {
        let client = broker.client().await;
        clients.push(client.clone());
        let deadline = std::time::Instant::now() + LIMIT;
        while client.try_publish(message("unheard", "x")).await.is_ok() {
            assert!(std::time::Instant::now() < deadline, "the broker does not drain");
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn health_says_not_serving() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let draining = draining(signal).await;
        for name in health::NAMES {
            assert_eq!(health::status(&draining.broker, name).await, ServingStatus::NotServing);
        }
    }
}

#[tokio::test]
async fn publish_and_new_streams_are_unavailable_on_old_and_new_connections() {
    let draining = draining(libc::SIGTERM).await;
    for client in [draining.client.clone(), draining.broker.client().await] {
        let status = client.try_publish(message("a", "x")).await.expect_err("no new work is taken");
        assert_status(&status, Code::Unavailable, &["shutting down"]);
        let status = match client.stream().await {
            Ok(mut stream) => stream.end().await,
            Err(status) => status,
        };
        assert_status(&status, Code::Unavailable, &["shutting down"]);
    }
}

#[tokio::test]
async fn streams_stay_open_and_get_nothing_new_until_nothing_is_in_flight() {
    let mut draining = draining(libc::SIGTERM).await;
    draining.holder.quiet().await;
    assert!(draining.broker.is_running());
    // Acks are served on new connections too. 2 waits, and is not delivered any more.
    let ack = ack_by_system_id(&draining.id, &draining.held.system_id);
    assert_eq!(draining.broker.client().await.ack(ack).await.expect("acks are served"), 1);
    let end = draining.holder.next().await.expect_err("the stream ends");
    assert_status(&end, Code::Unavailable, &["shutting down"]);
    assert_eq!(draining.broker.wait().code(), Some(0));
}

#[tokio::test]
async fn acks_are_served_on_the_old_connection_and_say_what_they_would_say() {
    let mut draining = draining(libc::SIGTERM).await;
    let unknown = draining.client.ack(ack_by_system_id(&draining.id, "nonsense")).await;
    assert_status(&unknown.expect_err("nothing is settled"), Code::NotFound, &[]);
    let ack = ack_by_message_id(&draining.id, &draining.held.message_id);
    assert_eq!(draining.client.ack(ack).await.expect("acks are served"), 1);
    assert_eq!(draining.broker.wait().code(), Some(0));
}

#[tokio::test]
async fn an_ack_in_the_stream_is_served_too() {
    let mut draining = draining(libc::SIGINT).await;
    draining.holder.ack(&draining.held);
    assert_status(&draining.holder.end().await, Code::Unavailable, &["shutting down"]);
    assert_eq!(draining.broker.wait().code(), Some(0));
}

#[tokio::test]
async fn nack_and_extend_are_served_too() {
    let mut draining = draining(libc::SIGTERM).await;
    let (subscription_id, system_id) = (draining.id.clone(), draining.held.system_id.clone());
    for client in [draining.client.clone(), draining.broker.client().await] {
        let (subscription_id, system_id) = (subscription_id.clone(), system_id.clone());
        let extend = ExtendRequest { subscription_id, system_id, ..Default::default() };
        assert_eq!(client.extend(extend).await.expect("extends are served"), 1);
    }
    // What is given back is not delivered any more: nothing is in flight then.
    let nack = NackRequest { subscription_id, system_id, ..Default::default() };
    assert_eq!(draining.broker.client().await.nack(nack).await.expect("nacks are served"), 1);
    let end = draining.holder.next().await.expect_err("the stream ends");
    assert_status(&end, Code::Unavailable, &["shutting down"]);
    assert_eq!(draining.broker.wait().code(), Some(0));
}

#[tokio::test]
async fn who_asked_is_told_with_the_grace() {
    let broker = Broker::with(&["--drain-timeout", "90s"]);
    let client = broker.client().await;
    let asking = |open| OpenSubscription { control_events: true, ..open };
    let (mut group, id) = client.subscribe(asking(balanced("g", &["a"]))).await;
    let (mut alone, _) = client.subscribe(asking(multi(&["b"]))).await;
    let (mut active, _) = client.subscribe(asking(singleton("s", &["b"]))).await;
    active.role().await;
    let mut standby = client.open(asking(singleton("s", &["b"]))).await;
    standby.role().await;
    let (mut deaf, _) = client.subscribe(multi(&["b"])).await;
    client.publish("a", "1").await;
    let held = group.message().await;
    broker.signal(libc::SIGTERM);
    for stream in [&mut group, &mut alone, &mut active, &mut standby] {
        match stream.event().await {
            Event::Draining(draining) => assert_eq!(draining.grace.expect("it is set").seconds, 90),
            other => panic!("draining was due, {other:?} came"),
        }
    }
    deaf.quiet().await;
    client.ack(ack_by_system_id(&id, &held.system_id)).await.expect("acks are served");
    for stream in [&mut group, &mut alone, &mut active, &mut standby, &mut deaf] {
        assert_status(&stream.end().await, Code::Unavailable, &["shutting down"]);
    }
}

#[tokio::test]
async fn by_default_the_grace_is_five_seconds() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = OpenSubscription { control_events: true, ..balanced("g", &["a"]) };
    let (mut stream, _) = client.subscribe(open).await;
    client.publish("a", "1").await;
    stream.message().await;
    broker.signal(libc::SIGTERM);
    match stream.event().await {
        Event::Draining(draining) => assert_eq!(draining.grace.expect("it is set").seconds, 5),
        other => panic!("draining was due, {other:?} came"),
    }
}

#[tokio::test]
async fn a_drain_promotes_no_standby() {
    let mut broker = Broker::with(&ENDLESS);
    let client = broker.client().await;
    let (active, _) = client.subscribe(singleton("s", &["a"])).await;
    let mut standbys = Vec::new();
    for place in 1..=4 {
        standbys.push(client.open(singleton("s", &["a"])).await);
        broker.stats_when("one more standby", |stats| stats.standbys == place).await;
    }
    broker.signal(libc::SIGTERM);
    for standby in &mut standbys {
        let end = standby.next().await.expect_err("the stream ends, and nothing comes before");
        assert_status(&end, Code::Unavailable, &["shutting down"]);
    }
    drop(active);
    assert_eq!(broker.wait().code(), Some(0));
}

#[tokio::test]
async fn with_nothing_in_flight_it_ends_at_once_with_every_stream() {
    let mut broker = Broker::with(&ENDLESS);
    let client = broker.client().await;
    let (mut opened, _) = client.subscribe(multi(&["a"])).await;
    let mut silent = client.stream().await.expect("the stream begins");
    let (mut half_closed, _) = broker.client().await.subscribe(balanced("g", &["a"])).await;
    half_closed.half_close();
    broker.signal(libc::SIGTERM);
    for stream in [&mut opened, &mut silent, &mut half_closed] {
        assert_status(&stream.end().await, Code::Unavailable, &["shutting down"]);
    }
    assert_eq!(broker.wait().code(), Some(0));
}

#[tokio::test]
async fn when_the_drain_timeout_is_over_every_stream_ends() {
    let mut broker = Broker::with(&["--drain-timeout", "100ms"]);
    let client = broker.client().await;
    let (mut holder, _) = client.subscribe(balanced("g", &["a"])).await;
    client.publish("a", "1").await;
    holder.message().await;
    broker.signal(libc::SIGTERM);
    assert_status(&holder.end().await, Code::Unavailable, &["shutting down"]);
    assert_eq!(broker.wait().code(), Some(0));
}

#[tokio::test]
async fn idle_connections_do_not_keep_it() {
    let mut broker = Broker::with(&ENDLESS);
    let _http2 = broker.client().await;
    let _bare = std::net::TcpStream::connect(broker.address()).expect("the broker accepts");
    broker.signal(libc::SIGTERM);
    assert_eq!(broker.wait().code(), Some(0));
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    for second in [libc::SIGTERM, libc::SIGINT] {
        let mut draining = draining(libc::SIGTERM).await;
        assert!(draining.broker.is_running());
        draining.broker.signal(second);
        draining.broker.wait();
        assert_ne!(draining.holder.end().await.code(), Code::Ok);
    }
}
