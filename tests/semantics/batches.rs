//! SPEC §1 and §4: max_batch.

use prost::Message as _;
use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::subscribe_event::Event;
use tinybroker::proto::{Ack, Message, MessageBatch, NackRequest, OpenSubscription, SubscribeEvent};

use crate::support::*;

/// What gRPC clients accept by default.
const EVENT_BYTES: usize = 4 * 1024 * 1024;

fn batching(max_batch: u32, max_in_flight: u32, open: OpenSubscription) -> OpenSubscription {
    OpenSubscription { max_batch, max_in_flight, linger: ENDLESS, ..open }
}

/// A subscription that nobody is attached to: what is published now waits for whoever opens it next.
async fn lingering(broker: &Broker, client: &Client, open: &OpenSubscription) {
    client.subscribe(open.clone()).await;
    broker.stats_when("its leaving", |stats| stats.members == 0).await;
}

/// Events up to so many messages.
async fn events(stream: &mut Stream, count: usize) -> Vec<Vec<Message>> {
    let (mut events, mut taken) = (Vec::new(), 0);
    while taken < count {
        let messages = stream.messages().await;
        taken += messages.len();
        events.push(messages);
    }
    assert_eq!(taken, count);
    events
}

fn payloads(events: &[Vec<Message>]) -> Vec<String> {
    events.iter().flatten().map(payload).collect()
}

fn expected(first: u32, last: u32) -> Vec<String> {
    (first..=last).map(|number| number.to_string()).collect()
}

fn ack_all(stream: &Stream, messages: &[Message]) {
    let system_ids = messages.iter().map(|message| message.system_id.clone()).collect();
    stream.send(Command::Ack(Ack { system_ids, ..Default::default() }));
}

fn every_mode() -> [OpenSubscription; 3] {
    let mine = OpenSubscription { subscription_id: "mine".into(), ..multi(&["a"]) };
    [balanced("b", &["a"]), singleton("s", &["a"]), mine]
}

#[tokio::test]
async fn an_event_has_up_to_so_many_in_order() {
    let broker = Broker::start();
    let client = broker.client().await;
    for open in every_mode() {
        let open = batching(4, 100, open);
        lingering(&broker, &client, &open).await;
        client.publish_numbers("a", 1, 50).await;
        let (mut stream, _) = client.subscribe(OpenSubscription { linger: ENDLESS, ..open }).await;
        let events = events(&mut stream, 50).await;
        assert_eq!(payloads(&events), expected(1, 50));
        let sizes: Vec<usize> = events.iter().map(Vec::len).collect();
        assert!(sizes.iter().all(|size| (1..=4).contains(size)), "{sizes:?}");
        assert!(sizes.contains(&4), "what waited came together: {sizes:?}");
        ack_all(&stream, &events.concat());
        broker.stats_when("the acks", |stats| stats.in_flight == 0).await;
        drop(stream);
        broker.stats_when("its leaving", |stats| stats.members == 0).await;
    }
}

#[tokio::test]
async fn a_multi_stream_that_acks_nothing_gets_batches_too() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = batching(1000, 0, OpenSubscription { subscription_id: "mine".into(), ..multi(&["a"]) });
    lingering(&broker, &client, &open).await;
    client.publish_numbers("a", 1, 100).await;
    let (mut stream, _) = client.subscribe(open).await;
    let events = events(&mut stream, 100).await;
    assert_eq!(payloads(&events), expected(1, 100));
    assert!(events.len() < 100, "what waited came together");
}

#[tokio::test]
async fn it_is_never_waited_for() {
    let broker = Broker::start();
    let client = broker.client().await;
    for open in every_mode() {
        let (mut stream, _) = client.subscribe(batching(100, 100, open)).await;
        for number in 1..=5 {
            client.publish("a", &number.to_string()).await;
            assert_eq!(payloads(&[stream.messages().await]), [number.to_string()]);
        }
        drop(stream);
        broker.stats_when("its leaving", |stats| stats.members == 0).await;
    }
}

#[tokio::test]
async fn without_it_events_carry_single_messages() {
    let broker = Broker::start();
    let client = broker.client().await;
    for max_batch in [0, 1] {
        let open = batching(max_batch, 100, balanced(&format!("g{max_batch}"), &["a"]));
        lingering(&broker, &client, &open).await;
        client.publish_numbers("a", 1, 20).await;
        let (mut stream, _) = client.subscribe(open).await;
        for number in 1..=20 {
            assert_eq!(stream.take().await, number.to_string());
        }
    }
}

#[tokio::test]
async fn it_is_each_members_own() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = |max_batch| batching(max_batch, 10, balanced("g", &["a"]));
    lingering(&broker, &client, &open(1)).await;
    client.publish_numbers("a", 1, 20).await;
    let (mut batching, _) = client.subscribe(open(10)).await;
    let (mut plain, _) = client.subscribe(open(0)).await;
    assert_eq!(payloads(&events(&mut batching, 10).await), expected(1, 10));
    for number in 11..=20 {
        assert_eq!(plain.payload().await, number.to_string());
    }
}

#[tokio::test]
async fn max_in_flight_bounds_it() {
    let broker = Broker::start();
    let client = broker.client().await;
    for open in every_mode() {
        let open = batching(10, 3, open);
        lingering(&broker, &client, &open).await;
        client.publish_numbers("a", 1, 9).await;
        let (mut stream, _) = client.subscribe(open).await;
        for first in [1, 4, 7] {
            let events = events(&mut stream, 3).await;
            assert_eq!(payloads(&events), expected(first, first + 2));
            assert_eq!(broker.stats().await.in_flight, 3);
            if first == 1 {
                stream.quiet().await;
            }
            ack_all(&stream, &events.concat());
        }
        drop(stream);
        broker.stats_when("its leaving", |stats| stats.members == 0 && stats.in_flight == 0).await;
    }
}

#[tokio::test]
async fn each_message_of_a_batch_is_a_delivery_of_its_own() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = batching(5, 5, balanced("g", &["a"]));
    lingering(&broker, &client, &open).await;
    client.publish_numbers("a", 1, 6).await;
    let (mut stream, id) = client.subscribe(open).await;
    let held = events(&mut stream, 5).await.concat();
    assert_eq!(client.ack(ack_by_system_id(&id, &held[2].system_id)).await.expect("OK"), 1);
    assert_eq!(payloads(&events(&mut stream, 1).await), ["6"]);
    let nack = |message: &Message| NackRequest {
        subscription_id: id.clone(),
        system_id: message.system_id.clone(),
        ..Default::default()
    };
    assert_eq!(client.nack(nack(&held[4])).await.expect("OK"), 1);
    let again = stream.messages().await;
    assert_eq!((payloads(std::slice::from_ref(&again)), again[0].delivery_attempt), (expected(5, 5), 2));
    assert_eq!(broker.stats().await.in_flight, 5);
}

#[tokio::test]
async fn redeliveries_come_in_batches_too() {
    let broker = Broker::start();
    let client = broker.client().await;
    for open in [balanced("b", &["a"]), singleton("s", &["a"])] {
        let open = batching(100, 6, open);
        let (mut holder, id) = client.subscribe(open.clone()).await;
        client.publish_numbers("a", 1, 8).await;
        let held = events(&mut holder, 6).await.concat();
        // Given back together by one call.
        let system_ids = held.iter().map(|message| message.system_id.clone()).collect();
        let nack = NackRequest { subscription_id: id, system_ids, ..Default::default() };
        assert_eq!(client.nack(nack).await.expect("OK"), 6);
        let again = events(&mut holder, 6).await;
        assert_eq!(payloads(&again), expected(1, 6));
        // Returned together by its leaving.
        drop(holder);
        broker.stats_when("its leaving", |stats| stats.members == 0).await;
        let (mut heir, _) = client.subscribe(open).await;
        let third = events(&mut heir, 6).await;
        assert_eq!(payloads(&third), expected(1, 6));
        assert!(third.len() < 6, "what waited came together");
        for (message, first) in third.iter().flatten().zip(&held) {
            assert_eq!(message.system_id, format!("{}.3", first.system_id));
            assert_eq!(message.delivery_attempt, 3);
        }
        ack_all(&heir, &third.concat());
        let rest = events(&mut heir, 2).await;
        assert_eq!(payloads(&rest), expected(7, 8));
        ack_all(&heir, &rest.concat());
        broker.stats_when("the acks", |stats| stats.in_flight == 0).await;
        drop(heir);
        broker.stats_when("its leaving", |stats| stats.members == 0).await;
    }
}

#[tokio::test]
async fn an_event_stays_within_what_clients_accept() {
    let broker = Broker::start();
    let client = broker.client().await;
    // Sizes around the broker's own windows, and those that fill an event alone, also behind small ones.
    let small_and_large = [60_000, 60_000, 4_190_000].repeat(3);
    let sizes =
        [vec![1000; 600], vec![60_000; 9], vec![300_000; 9], vec![1024 * 1024; 9], vec![4_190_000; 9]];
    for (number, sizes) in sizes.into_iter().chain([small_and_large]).enumerate() {
        let open = batching(1000, 1000, balanced(&format!("g{number}"), &["a"]));
        lingering(&broker, &client, &open).await;
        for &bytes in &sizes {
            client.publish("a", &"x".repeat(bytes)).await;
        }
        let (mut stream, _) = client.subscribe(open.clone()).await;
        let events = events(&mut stream, sizes.len()).await;
        let came: Vec<usize> = events.iter().flatten().map(|message| message.payload.len()).collect();
        assert_eq!(came, sizes);
        for messages in events {
            ack_all(&stream, &messages);
            let event = SubscribeEvent { event: Some(Event::Batch(MessageBatch { messages })) };
            assert!(event.encoded_len() <= EVENT_BYTES + 16);
        }
        broker.stats_when("the acks", |stats| stats.in_flight == 0).await;
        drop(stream);
        broker.stats_when("its leaving", |stats| stats.members == 0).await;
    }
}

#[tokio::test]
async fn what_is_no_message_comes_between_batches_in_its_place() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = OpenSubscription { control_events: true, ..batching(10, 10, singleton("s", &["a"])) };
    lingering(&broker, &client, &open).await;
    client.publish_numbers("a", 1, 10).await;
    let (mut stream, id) = client.subscribe(open).await;
    stream.role().await;
    assert_eq!(payloads(&events(&mut stream, 10).await), expected(1, 10));
    stream.send(Command::Resign(tinybroker::proto::Resign {}));
    assert_eq!(stream.subscription_id().await, id);
    stream.role().await;
    assert_eq!(payloads(&events(&mut stream, 10).await), expected(1, 10));
}
