//! SPEC §3.11: the server's memory limit.

use tinybroker::proto::admin_client::AdminClient;
use tinybroker::proto::{
    AckRequest, ExtendRequest, GetServerInfoRequest, GetServerInfoResponse, Message, NackRequest,
    OpenSubscription,
};
use tonic::{Code, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_types::StatusExt;

use crate::health;
use crate::support::*;

const LIMIT_BYTES: u64 = 10_000_000;
const MIB: usize = 1024 * 1024;

fn broker() -> Broker {
    Broker::with(&["--memory-limit", &LIMIT_BYTES.to_string()])
}

async fn info(broker: &Broker) -> GetServerInfoResponse {
    let mut admin = AdminClient::new(broker.channel().await);
    in_time(admin.get_server_info(GetServerInfoRequest {})).await.expect("it is served").into_inner()
}

fn wide(group: &str) -> OpenSubscription {
    OpenSubscription { max_in_flight: 1000, ..balanced(group, &["a"]) }
}

/// Publishes messages of 1 MiB to `a` until one is refused. Returns how many went through, and the refusal.
async fn fill(client: &Client) -> (usize, Status) {
    let big = "x".repeat(MIB);
    for count in 0..100 {
        if let Err(status) = client.try_publish(message("a", &big)).await {
            return (count, status);
        }
    }
    panic!("nothing is refused");
}

/// A member that holds all that there is room for.
async fn full(client: &Client) -> (Stream, String, Vec<Message>) {
    let (mut stream, id) = client.subscribe(wide("g")).await;
    let (count, _) = fill(client).await;
    let mut held = Vec::new();
    for _ in 0..count {
        held.push(stream.message().await);
    }
    (stream, id, held)
}

#[track_caller]
fn assert_full(status: &Status) {
    assert_status(status, Code::ResourceExhausted, &["memory", "--memory-limit", &LIMIT_BYTES.to_string()]);
    let retry = status.get_details_retry_info().expect("RetryInfo comes with it");
    assert!(retry.retry_delay.is_some_and(|delay| !delay.is_zero()));
}

#[tokio::test]
async fn at_the_limit_every_publish_is_refused_also_one_that_nobody_would_hear() {
    let broker = broker();
    let client = broker.client().await;
    let (_stream, _) = client.subscribe(wide("g")).await;
    let (count, status) = fill(&client).await;
    assert_full(&status);
    assert!((9..=10).contains(&count), "{count} MiB fit into 10 MB");
    for client in [client.clone(), broker.client().await] {
        for topic in ["a", "unheard"] {
            assert_full(&client.try_publish(message(topic, "small")).await.expect_err("it is full"));
        }
        let answer = client.publish_batch(vec![message("a", "0"), message("unheard", "1")]).await;
        let failed: Vec<_> = answer.failures.iter().map(|it| (it.index, it.code)).collect();
        assert_eq!(failed, [0, 1].map(|index| (index, Code::ResourceExhausted as i32)));
        let publisher = client.publisher().await;
        publisher.send(message("a", "0"));
        publisher.send(message("unheard", "1"));
        let told = publisher.finish().await;
        assert_eq!((told.confirmed, told.unheard), (2, 0));
        assert_eq!(told.failures, answer.failures);
        assert!(told.failures.iter().all(|failure| failure.message.contains("--memory-limit")));
    }
}

#[tokio::test]
async fn all_else_goes_on_also_where_publishes_are_refused() {
    let broker = broker();
    let client = broker.client().await;
    let (mut stream, id, held) = full(&client).await;
    for client in [client.clone(), broker.client().await] {
        assert_full(&client.try_publish(message("a", "x")).await.expect_err("it is full"));
        let (mut heir, _) = client.subscribe(wide("g")).await;
        client.subscribe(multi(&["*"])).await;
        assert_eq!(health::status(&broker, "").await, ServingStatus::Serving);
        let extend = ExtendRequest {
            subscription_id: id.clone(),
            system_id: held[0].system_id.clone(),
            ..Default::default()
        };
        assert_eq!(client.extend(extend).await.expect("extends are served"), 1);
        heir.quiet().await;
    }
    broker.stats_when("their leaving", |stats| stats.members == 1).await;
    // What is given back is delivered again.
    let nack = NackRequest {
        subscription_id: id.clone(),
        system_id: held[0].system_id.clone(),
        ..Default::default()
    };
    assert_eq!(client.nack(nack).await.expect("nacks are served"), 1);
    let again = stream.message().await;
    assert_eq!((again.payload.len(), again.delivery_attempt), (MIB, 2));
    assert_full(&client.try_publish(message("a", "x")).await.expect_err("it is full still"));
    assert_eq!(client.ack(ack_by_system_id(&id, &again.system_id)).await.expect("acks are served"), 1);
    stream.ack(&held[1]);
    broker.stats_when("the acks", |stats| stats.counters["acked"] == 2).await;
}

#[tokio::test]
async fn what_is_acked_makes_room_again() {
    let broker = broker();
    let client = broker.client().await;
    let (_stream, id, held) = full(&client).await;
    let mut publisher = client.publisher().await;
    publisher.send(message("unheard", "refused"));
    publisher.settled(1).await;
    assert_eq!(publisher.told.failures.len(), 1);
    let system_ids = held.iter().take(3).map(|message| message.system_id.clone()).collect();
    let ack = AckRequest { subscription_id: id, system_ids, ..Default::default() };
    assert_eq!(client.ack(ack).await.expect("OK"), 3);
    broker.stats_when("room", |stats| stats.message_bytes < LIMIT_BYTES - 2 * MIB as u64).await;
    assert_eq!(client.publish("a", "taken").await.subscriptions, 1);
    publisher.send(message("a", "taken"));
    publisher.settled(2).await;
    assert_eq!(publisher.told.failures.len(), 1);
    assert_eq!(client.publish_batch(numbers("a", 1, 2)).await.failures, []);
}

#[tokio::test]
async fn the_admin_service_tells_limit_and_use() {
    let broker = broker();
    let client = broker.client().await;
    assert_eq!(info(&broker).await.memory_limit_bytes, LIMIT_BYTES);
    assert_eq!(broker.stats().await.message_bytes, 0);
    let (stream, _, held) = full(&client).await;
    let bytes = broker.stats().await.message_bytes;
    let least = (held.len() * MIB) as u64;
    assert!((least..least + 10_000).contains(&bytes), "{bytes} bytes for {} MiB", held.len());
    drop(stream);
    broker.stats_when("all is given back", |stats| stats.message_bytes == 0).await;
    assert_eq!(client.publish("a", "x").await.subscriptions, 0);
}

#[tokio::test]
async fn a_message_counts_once_however_many_have_it() {
    let broker = broker();
    let client = broker.client().await;
    let mut streams = Vec::new();
    for number in 0..20 {
        // Each on a connection of its own: they are read one after the other.
        let own = broker.client().await;
        streams.push(own.subscribe(wide(&format!("g{number}"))).await.0);
    }
    assert_eq!(client.publish("a", &"x".repeat(MIB)).await.subscriptions, 20);
    let bytes = broker.stats().await.message_bytes;
    assert!((MIB as u64..MIB as u64 + 10_000).contains(&bytes), "{bytes} bytes");
    for stream in &mut streams {
        stream.take().await;
    }
    broker.stats_when("all is given back", |stats| stats.message_bytes == 0).await;
}

#[tokio::test]
async fn a_dead_letter_takes_the_place_of_its_message() {
    let broker = broker();
    let client = broker.client().await;
    let (mut morgue, _) = client.subscribe(balanced("morgue", &["dead"])).await;
    let open = OpenSubscription { max_deliveries: 1, dead_letter_topic: "dead".into(), ..wide("g") };
    let (mut stream, _) = client.subscribe(open).await;
    let (count, _) = fill(&client).await;
    for _ in 0..count {
        let message = stream.message().await;
        stream.nack(&message);
    }
    for _ in 0..count {
        assert_eq!(morgue.take().await.len(), MIB);
    }
    broker.stats_when("all is given back", |stats| stats.message_bytes == 0).await;
}

#[tokio::test]
async fn by_default_there_is_a_limit_below_the_machines_memory() {
    let meminfo = std::fs::read_to_string("/proc/meminfo").expect("Linux tells it");
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")).expect("it is there");
    let total: u64 = total.trim_end_matches("kB").trim().parse().expect("a number");
    let limit = info(&Broker::start()).await.memory_limit_bytes;
    assert!(limit > 0 && limit <= total * 1024 / 2, "{limit} of {total} KiB");
}
