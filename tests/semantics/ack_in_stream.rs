//! SPEC §3.6: acks in a stream.

use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::{Ack, OpenSubscription};
use tonic::Code;

use crate::support::*;

fn member(max_in_flight: u32) -> OpenSubscription {
    OpenSubscription { max_in_flight, ..balanced("g", &["a"]) }
}

#[tokio::test]
async fn it_goes_by_system_id_by_message_id_and_by_many() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, id) = client.subscribe(member(4)).await;
    client.publish_numbers("a", 1, 5).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(stream.message().await);
    }
    stream.send(Command::Ack(Ack { system_id: held[0].system_id.clone(), ..Default::default() }));
    assert_eq!(stream.payload().await, "5");
    // Its own subscription_id may be given.
    let message_id = held[1].message_id.clone();
    stream.send(Command::Ack(Ack { subscription_id: id, message_id, ..Default::default() }));
    let system_ids = vec![held[2].system_id.clone(), held[3].system_id.clone()];
    stream.send(Command::Ack(Ack { system_ids, ..Default::default() }));
    broker.stats_when("three acks", |stats| stats.in_flight == 1).await;
}

#[tokio::test]
async fn it_settles_that_members_own_deliveries_alone() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut one, id) = client.subscribe(member(0)).await;
    let (mut two, _) = client.subscribe(member(0)).await;
    client.publish_numbers("a", 1, 2).await;
    let (of_one, of_two) = (one.message().await, two.message().await);
    two.ack(&of_one);
    let message_id = of_one.message_id.clone();
    two.send(Command::Ack(Ack { message_id, ..Default::default() }));
    broker.stats_when("two counts", |stats| stats.counters["ack_not_found"] == 2).await;
    assert_eq!(broker.stats().await.in_flight, 2);
    for message in [&of_one, &of_two] {
        assert_eq!(client.ack(ack_by_system_id(&id, &message.system_id)).await.expect("OK"), 1);
    }
}

#[tokio::test]
async fn acking_twice_or_the_unknown_is_only_counted() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(member(0)).await;
    client.publish_numbers("a", 1, 2).await;
    let message = stream.message().await;
    stream.ack(&message);
    stream.ack(&message);
    stream.send(Command::Ack(Ack { system_id: "nonsense".into(), ..Default::default() }));
    stream.send(Command::Ack(Ack { message_id: "unknown".into(), ..Default::default() }));
    assert_eq!(stream.payload().await, "2");
    let stats = broker.stats_when("the counts", |stats| stats.counters["ack_not_found"] == 3).await;
    assert_eq!((stats.in_flight, stats.counters["acked"]), (1, 1));
    stream.quiet().await;
}

#[tokio::test]
async fn without_any_id_it_ends_the_stream() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(member(0)).await;
    stream.send(Command::Ack(Ack::default()));
    assert_invalid(&stream.end().await, "system_id", &["empty"]);
    client.publish("fine", "x").await;
    broker.stats_when("its leaving", |stats| stats.members == 0).await;
}

#[tokio::test]
async fn anothers_subscription_id_ends_the_stream() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut other, others) = client.subscribe(balanced("other", &["a"])).await;
    let (mut stream, _) = client.subscribe(member(0)).await;
    client.publish("a", "1").await;
    let of_other = other.message().await;
    for subscription_id in [others, "nobody's".into()] {
        let system_id = of_other.system_id.clone();
        stream.send(Command::Ack(Ack { subscription_id, system_id, ..Default::default() }));
        let status = stream.end().await;
        assert_invalid(&status, "subscription_id", &["this stream"]);
        (stream, _) = client.subscribe(member(0)).await;
    }
    let stats = broker.stats().await;
    assert_eq!(stats.counters["acked"], 0);
    // Other streams and calls of the connection live on.
    other.ack(&of_other);
    client.publish("a", "2").await;
    assert_eq!(other.payload().await, "2");
}

#[tokio::test]
async fn what_it_names_of_another_subscription_is_not_settled() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut group, id) = client.subscribe(member(0)).await;
    let (mut acking, _) = client.subscribe(OpenSubscription { max_in_flight: 1, ..multi(&["a"]) }).await;
    client.publish("a", "1").await;
    let (of_group, of_multi) = (group.message().await, acking.message().await);
    // One message has one system_id; its deliveries in two subscriptions are settled apart.
    assert_eq!(of_group.system_id, of_multi.system_id);
    acking.ack(&of_multi);
    broker.stats_when("one ack", |stats| stats.in_flight == 1).await;
    assert_eq!(client.ack(ack_by_system_id(&id, &of_group.system_id)).await.expect("OK"), 1);
    let again = client.ack(ack_by_system_id(&id, &of_group.system_id)).await.expect_err("settled");
    assert_status(&again, Code::NotFound, &[]);
}
