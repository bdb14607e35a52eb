//! SPEC §3.6: the unary ack, and the ids that it goes by.

use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::{Ack, AckRequest, ExtendRequest, NackRequest, OpenSubscription, PublishRequest};
use tonic::Code;

use crate::support::*;

fn member(max_in_flight: u32) -> OpenSubscription {
    OpenSubscription { max_in_flight, ..balanced("g", &["a"]) }
}

/// The ack finds nothing, and the connection lives on.
async fn assert_not_found(client: &Client, request: AckRequest) {
    let status = client.ack(request).await.expect_err("nothing is settled");
    assert_status(&status, Code::NotFound, &[]);
    assert!(!status.message().is_empty());
    client.publish("fine", "x").await;
}

#[tokio::test]
async fn the_system_id_names_one_delivery() {
    let broker = Broker::start();
    let client = broker.client().await;
    let published = client.publish("a", "nobody hears this").await;
    assert!((1..=20).contains(&published.system_id.len()));
    let (mut holder, id) = client.subscribe(member(0)).await;
    let published = client.publish("a", "1").await;
    assert_eq!(holder.message().await.system_id, published.system_id);
    for delivery in 2..=4 {
        let (heir, _) = client.subscribe(member(0)).await;
        drop(std::mem::replace(&mut holder, heir));
        let again = holder.message().await;
        assert_eq!(again.system_id, format!("{}.{delivery}", published.system_id));
        assert_eq!((again.message_id, again.delivery_attempt), (published.message_id.clone(), delivery));
    }
    // Late acks for deliveries that were taken back settle nothing.
    for late in ["", ".2", ".3", ".5"] {
        let system_id = published.system_id.clone() + late;
        assert_not_found(&client, ack_by_system_id(&id, &system_id)).await;
    }
    let live = published.system_id + ".4";
    assert_eq!(client.ack(ack_by_system_id(&id, &live)).await.expect("it is in flight"), 1);
}

#[tokio::test]
async fn the_message_id_settles_the_delivery_that_is_in_flight() {
    let broker = Broker::start();
    let client = broker.client().await;
    for own in ["", "order-4711"] {
        let (mut holder, id) = client.subscribe(member(0)).await;
        let request = PublishRequest { message_id: own.into(), ..message("a", "1") };
        let published = client.try_publish(request).await.expect("confirmed");
        assert_eq!(published.message_id, if own.is_empty() { &published.system_id } else { own });
        holder.message().await;
        let (heir, _) = client.subscribe(member(0)).await;
        drop(std::mem::replace(&mut holder, heir));
        let again = holder.message().await;
        assert_eq!(again.message_id, published.message_id);
        assert_eq!(client.ack(ack_by_message_id(&id, &again.message_id)).await.expect("OK"), 1);
        drop(holder);
        broker.stats_when("the group's end", |stats| stats.subscriptions == 0).await;
    }
}

#[tokio::test]
async fn of_several_with_one_message_id_the_earliest_delivered_is_meant() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut holder, id) = client.subscribe(member(3)).await;
    for number in ["1", "2", "3"] {
        let request = PublishRequest { message_id: "same".into(), ..message("a", number) };
        client.try_publish(request).await.expect("the broker does not check for duplicates");
        assert_eq!(holder.payload().await, number);
    }
    assert_eq!(client.ack(ack_by_message_id(&id, "same")).await.expect("OK"), 1);
    let (mut heir, _) = client.subscribe(member(3)).await;
    drop(holder);
    assert_eq!([heir.payload().await, heir.payload().await], ["2", "3"]);
    for settled in 1..=2 {
        assert_eq!(client.ack(ack_by_message_id(&id, "same")).await.expect("OK"), 1, "{settled}");
    }
    assert_not_found(&client, ack_by_message_id(&id, "same")).await;
}

#[tokio::test]
async fn of_several_one_that_was_given_back_is_delivered_last() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut holder, id) = client.subscribe(member(2)).await;
    for number in ["1", "2"] {
        let request = PublishRequest { message_id: "same".into(), ..message("a", number) };
        client.try_publish(request).await.expect("confirmed");
    }
    let first = holder.due("1", 1).await;
    holder.due("2", 1).await;
    holder.nack(&first);
    // Older, but delivered later.
    holder.due("1", 2).await;
    assert_eq!(client.ack(ack_by_message_id(&id, "same")).await.expect("OK"), 1);
    let (mut heir, _) = client.subscribe(member(2)).await;
    drop(holder);
    heir.due("1", 3).await;
    heir.quiet().await;
}

#[tokio::test]
async fn the_message_id_is_used_where_there_is_no_system_id() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut holder, id) = client.subscribe(member(3)).await;
    client.publish_numbers("a", 1, 3).await;
    let held = [holder.message().await, holder.message().await, holder.message().await];
    let message_id = held[0].message_id.clone();
    let by_both = AckRequest { message_id: message_id.clone(), ..ack_by_system_id(&id, &held[1].system_id) };
    assert_eq!(client.ack(by_both.clone()).await.expect("OK"), 1);
    // Also where it finds nothing.
    assert_not_found(&client, by_both).await;
    let system_ids = vec![held[2].system_id.clone()];
    let by_many = AckRequest { system_ids, ..ack_by_message_id(&id, &message_id) };
    assert_eq!(client.ack(by_many).await.expect("OK"), 1);
    assert_eq!(client.ack(ack_by_message_id(&id, &message_id)).await.expect("it is still in flight"), 1);
}

#[tokio::test]
async fn what_is_named_twice_is_settled_once() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut holder, subscription_id) = client.subscribe(member(2)).await;
    client.publish_numbers("a", 1, 2).await;
    let (first, second) = (holder.message().await.system_id, holder.message().await.system_id);
    let (system_id, system_ids) = (first.clone(), vec![second.clone(), first.clone(), second.clone()]);
    let extend = ExtendRequest {
        subscription_id: subscription_id.clone(),
        system_id: system_id.clone(),
        system_ids: system_ids.clone(),
        ack_timeout: ENDLESS,
        ..Default::default()
    };
    assert_eq!(client.extend(extend).await.expect("OK"), 2);
    let nack =
        NackRequest { subscription_id: subscription_id.clone(), system_id, system_ids, ..Default::default() };
    assert_eq!(client.nack(nack).await.expect("OK"), 2);
    let again = [holder.due("1", 2).await.system_id, holder.due("2", 2).await.system_id];
    let twice = |id: &String| vec![id.clone(), id.clone()];
    let ack = AckRequest { subscription_id, system_ids: twice(&again[0]), ..Default::default() };
    assert_eq!(client.ack(ack).await.expect("OK"), 1);
    let ack = Ack { system_id: again[1].clone(), system_ids: twice(&again[1]), ..Default::default() };
    holder.send(Command::Ack(ack));
    broker.stats_when("the ack in the stream", |stats| stats.in_flight == 0).await;
    let counters = broker.stats().await.counters;
    for name in ["extended", "nacked", "acked"] {
        assert_eq!(counters[name], 2, "{name}");
    }
    for name in ["extend_not_found", "nack_not_found", "ack_not_found"] {
        assert_eq!(counters[name], 0, "{name}");
    }
}

#[tokio::test]
async fn it_may_come_from_any_connection_and_makes_room_for_the_next() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut holder, id) = client.subscribe(member(0)).await;
    for number in 1..=6 {
        client.publish("a", &number.to_string()).await;
        let message = holder.message().await;
        assert_eq!(payload(&message), number.to_string());
        let stranger = broker.client().await;
        assert_eq!(stranger.ack(ack_by_system_id(&id, &message.system_id)).await.expect("OK"), 1);
    }
}

#[tokio::test]
async fn acking_twice_or_the_unknown_is_not_found() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut holder, id) = client.subscribe(member(0)).await;
    let first = client.publish("a", "1").await.system_id;
    let second = client.publish("a", "2").await.system_id;
    holder.message().await;
    assert_not_found(&client, ack_by_system_id(&id, &second)).await;
    assert_eq!(client.ack(ack_by_system_id(&id, &first)).await.expect("OK"), 1);
    for again in [&first, "nonsense", "0000000000000", &"x".repeat(10_000), &format!("{second}.2")] {
        assert_not_found(&client, ack_by_system_id(&id, again)).await;
    }
    assert_not_found(&client, ack_by_message_id(&id, &first)).await;
    assert_not_found(&client, ack_by_system_id("no such subscription", &second)).await;
    assert_eq!(client.ack(ack_by_system_id(&id, &second)).await.expect("OK"), 1);
}

#[tokio::test]
async fn of_many_ids_those_that_are_in_flight_are_settled_and_counted() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut holder, id) = client.subscribe(member(4)).await;
    let mut ids = Vec::new();
    for number in 1..=4 {
        client.publish("a", &number.to_string()).await;
        ids.push(holder.message().await.system_id);
    }
    let many = |system_ids: &[&String]| AckRequest {
        subscription_id: id.clone(),
        system_ids: system_ids.iter().map(|&id| id.clone()).collect(),
        ..Default::default()
    };
    let nonsense = String::from("nonsense");
    assert_eq!(client.ack(many(&[&ids[0], &nonsense, &ids[0], &ids[2]])).await.expect("OK"), 2);
    assert_not_found(&client, many(&[&ids[0], &ids[2], &nonsense])).await;
    // One more beside the many.
    let both = AckRequest { system_id: ids[1].clone(), ..many(&[&ids[3]]) };
    assert_eq!(client.ack(both).await.expect("OK"), 2);
}

#[tokio::test]
async fn without_subscription_or_id_it_is_invalid() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (_holder, id) = client.subscribe(member(0)).await;
    let status = client.ack(ack_by_system_id("", "x")).await.expect_err("no subscription_id");
    assert_invalid(&status, "subscription_id", &["empty"]);
    let status = client.ack(ack_by_system_id(&id, "")).await.expect_err("no id");
    assert_invalid(&status, "system_id", &["message_id", "system_ids"]);
    client.publish("fine", "x").await;
}

#[tokio::test]
async fn a_confirmed_ack_is_final() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut holder, id) = client.subscribe(member(2)).await;
    client.publish_numbers("a", 1, 2).await;
    let first = holder.message().await;
    holder.message().await;
    client.ack(ack_by_system_id(&id, &first.system_id)).await.expect("OK");
    let (mut heir, _) = client.subscribe(member(2)).await;
    drop(holder);
    assert_eq!(heir.payload().await, "2");
    heir.quiet().await;
}

#[tokio::test]
async fn an_ack_for_what_a_multi_member_left_behind_is_not_found() {
    let broker = Broker::start();
    let client = broker.client().await;
    let linger = Some(prost_types::Duration { seconds: 60, nanos: 0 });
    let open = OpenSubscription { max_in_flight: 1, linger, ..multi(&["a"]) };
    let (mut stream, id) = client.subscribe(open).await;
    client.publish("a", "1").await;
    let held = stream.message().await;
    drop(stream);
    broker.stats_when("the leaving", |stats| stats.members == 0).await;
    assert_not_found(&client, ack_by_system_id(&id, &held.system_id)).await;
}
