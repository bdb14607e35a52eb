//! SPEC §3.7: nack, by call and in a stream.

use prost_types::Duration;
use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::{Message, Nack, NackRequest, OpenSubscription};
use tonic::Code;

use crate::support::*;

fn member(max_in_flight: u32) -> OpenSubscription {
    OpenSubscription { max_in_flight, ..balanced("g", &["a"]) }
}

fn of(subscription_id: &str, message: &Message) -> NackRequest {
    NackRequest {
        subscription_id: subscription_id.into(),
        system_id: message.system_id.clone(),
        ..Default::default()
    }
}

#[tokio::test]
async fn it_puts_back_in_the_old_place_with_the_attempt_raised() {
    let broker = Broker::start();
    let client = broker.client().await;
    for open in [
        balanced("b", &["a"]),
        singleton("s", &["a"]),
        OpenSubscription { max_in_flight: 1, ..multi(&["a"]) },
    ] {
        let (mut stream, id) = client.subscribe(open).await;
        client.publish_numbers("a", 1, 3).await;
        let mut message = stream.due("1", 1).await;
        let first = message.clone();
        for attempt in 2..=4 {
            assert_eq!(client.nack(of(&id, &message)).await.expect("it is in flight"), 1);
            message = stream.due("1", attempt).await;
            assert_eq!(message.system_id, format!("{}.{attempt}", first.system_id));
            assert_eq!(message.message_id, first.message_id);
        }
        stream.nack(&message);
        stream.take_due("1", 5).await;
        for number in ["2", "3"] {
            stream.take_due(number, 1).await;
        }
        broker.stats_when("its acks", |stats| stats.in_flight == 0 && stats.waiting == 0).await;
        drop(stream);
        broker.stats_when("its end", |stats| stats.subscriptions == 0).await;
    }
    assert_eq!(broker.stats().await.counters["nacked"], 12);
}

#[tokio::test]
async fn it_goes_to_whoever_has_room() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut giver, id) = client.subscribe(member(1)).await;
    client.publish("a", "1").await;
    let message = giver.due("1", 1).await;
    let (mut other, _) = client.subscribe(member(1)).await;
    // By a stranger's call.
    broker.client().await.nack(of(&id, &message)).await.expect("it is in flight");
    other.due("1", 2).await;
    giver.quiet().await;
}

#[tokio::test]
async fn a_late_ack_of_what_was_given_back_settles_nothing() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, id) = client.subscribe(member(1)).await;
    client.publish("a", "1").await;
    let message = stream.message().await;
    client.nack(of(&id, &message)).await.expect("it is in flight");
    let again = stream.due("1", 2).await;
    let late = client.ack(ack_by_system_id(&id, &message.system_id)).await.expect_err("it was given back");
    assert_status(&late, Code::NotFound, &[]);
    assert_eq!(client.ack(ack_by_system_id(&id, &again.system_id)).await.expect("OK"), 1);
}

#[tokio::test]
async fn with_a_delay_others_go_first() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, id) = client.subscribe(member(1)).await;
    client.publish_numbers("a", 1, 3).await;
    let first = stream.due("1", 1).await;
    client.nack(NackRequest { delay: ENDLESS, ..of(&id, &first) }).await.expect("it is in flight");
    for number in ["2", "3"] {
        stream.take_due(number, 1).await;
    }
    let stats = broker.stats_when("the acks", |stats| stats.in_flight == 0).await;
    assert_eq!((stats.waiting, stats.parked), (1, 1), "what is parked waits");
    stream.quiet().await;
}

#[tokio::test]
async fn after_the_delay_it_is_delivered_again() {
    let broker = Broker::start();
    let client = broker.client().await;
    // On all shards, with nothing else to do.
    for number in 0..6 {
        let (mut stream, id) = client.subscribe(balanced(&format!("g{number}"), &["a"])).await;
        client.publish("a", "1").await;
        let message = stream.due("1", 1).await;
        let nack = NackRequest { delay: BRIEF, ..of(&id, &message) };
        if number % 2 == 0 {
            client.nack(nack).await.expect("it is in flight");
        } else {
            let NackRequest { system_id, delay, .. } = nack;
            stream.send(Command::Nack(Nack { system_id, delay, ..Default::default() }));
        }
        stream.due("1", 2).await;
        assert_eq!(broker.stats().await.parked, 0);
        drop(stream);
        broker.stats_when("its end", |stats| stats.subscriptions == 0).await;
    }
}

#[tokio::test]
async fn in_singleton_a_parked_message_holds_back_those_behind_it() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = OpenSubscription { max_in_flight: 3, ..singleton("s", &["a"]) };
    let (mut active, id) = client.subscribe(open).await;
    client.publish_numbers("a", 1, 6).await;
    let mut held = Vec::new();
    for number in ["1", "2", "3"] {
        held.push(active.due(number, 1).await);
    }
    client.nack(NackRequest { delay: millis(500), ..of(&id, &held[1]) }).await.expect("it is in flight");
    active.ack(&held[0]);
    active.ack(&held[2]);
    for (number, attempt) in [("2", 2), ("4", 1), ("5", 1), ("6", 1)] {
        active.take_due(number, attempt).await;
    }
}

#[tokio::test]
async fn in_singleton_what_is_parked_for_long_holds_back_for_long() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut active, id) = client.subscribe(singleton("s", &["a"])).await;
    client.publish_numbers("a", 1, 2).await;
    let first = active.message().await;
    client.nack(NackRequest { delay: ENDLESS, ..of(&id, &first) }).await.expect("it is in flight");
    active.quiet().await;
    let stats = broker.stats().await;
    assert_eq!((stats.waiting, stats.parked, stats.in_flight), (2, 1, 0));
}

#[tokio::test]
async fn discard_is_never_again() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, id) = client.subscribe(member(1)).await;
    client.publish_numbers("a", 1, 3).await;
    let first = stream.due("1", 1).await;
    // Delay and keep_attempt mean nothing beside it.
    let nack = NackRequest { discard: true, delay: BRIEF, keep_attempt: true, ..of(&id, &first) };
    assert_eq!(client.nack(nack).await.expect("it is in flight"), 1);
    let second = stream.due("2", 1).await;
    stream.send(Command::Nack(Nack { system_id: second.system_id, discard: true, ..Default::default() }));
    stream.take_due("3", 1).await;
    let stats = broker.stats_when("the ack", |stats| stats.in_flight == 0).await;
    assert_eq!((stats.waiting, stats.counters["dropped_discarded"]), (0, 2));
    stream.quiet().await;
}

#[tokio::test]
async fn keep_attempt_puts_back_unstarted() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, id) = client.subscribe(OpenSubscription { max_deliveries: 2, ..member(1) }).await;
    let published = client.publish("a", "1").await;
    let mut message = stream.due("1", 1).await;
    for delivery in 2..=5 {
        let nack = NackRequest { keep_attempt: true, ..of(&id, &message) };
        client.nack(nack).await.expect("it is in flight");
        message = stream.due("1", 1).await;
        // Deliveries are counted all the same: no ack of an earlier one settles this one.
        assert_eq!(message.system_id, format!("{}.{delivery}", published.system_id));
    }
    client.nack(of(&id, &message)).await.expect("it is in flight");
    let message = stream.due("1", 2).await;
    assert_eq!(message.system_id, format!("{}.6", published.system_id));
}

#[tokio::test]
async fn it_goes_by_message_id_and_by_many_ids() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, id) = client.subscribe(member(4)).await;
    client.publish_numbers("a", 1, 4).await;
    let mut held = Vec::new();
    for number in ["1", "2", "3", "4"] {
        held.push(stream.due(number, 1).await);
    }
    let message_id = held[3].message_id.clone();
    let by_message = NackRequest { subscription_id: id.clone(), message_id, ..Default::default() };
    assert_eq!(client.nack(by_message).await.expect("OK"), 1);
    stream.due("4", 2).await;
    let system_ids = vec![held[2].system_id.clone(), "nonsense".into(), held[0].system_id.clone()];
    let many = NackRequest { system_ids, ..of(&id, &held[1]) };
    assert_eq!(client.nack(many.clone()).await.expect("OK where any was"), 3);
    for number in ["1", "2", "3"] {
        stream.due(number, 2).await;
    }
    let status = client.nack(many).await.expect_err("nothing of it is in flight");
    assert_status(&status, Code::NotFound, &[]);
}

#[tokio::test]
async fn nothing_in_flight_is_not_found() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, id) = client.subscribe(member(1)).await;
    client.publish("a", "1").await;
    let message = stream.message().await;
    client.ack(ack_by_system_id(&id, &message.system_id)).await.expect("OK");
    let elsewhere = NackRequest { subscription_id: "no such".into(), ..of(&id, &message) };
    for nack in [of(&id, &message), elsewhere] {
        let status = client.nack(nack).await.expect_err("nothing is given back");
        assert_status(&status, Code::NotFound, &[]);
        assert!(!status.message().is_empty());
    }
    assert_eq!(broker.stats().await.counters["nack_not_found"], 1);
    stream.quiet().await;
}

#[tokio::test]
async fn a_bad_one_is_invalid_and_names_the_field() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, id) = client.subscribe(member(1)).await;
    client.publish("a", "1").await;
    let message = stream.message().await;
    let good = || of(&id, &message);
    for (nack, field, word) in [
        (NackRequest { subscription_id: String::new(), ..good() }, "subscription_id", "empty"),
        (NackRequest { system_id: String::new(), ..good() }, "system_id", "message_id"),
        (NackRequest { delay: NEGATIVE, ..good() }, "delay", "negative"),
        (NackRequest { delay: Some(Duration { seconds: -1, nanos: 0 }), ..good() }, "delay", "negative"),
    ] {
        assert_invalid(&client.nack(nack).await.expect_err("it is bad"), field, &[word]);
    }
    // Zero is the same as none.
    client.nack(NackRequest { delay: Some(Duration::default()), ..good() }).await.expect("OK");
    stream.due("1", 2).await;
}

#[tokio::test]
async fn in_a_stream_a_bad_one_ends_it() {
    let broker = Broker::start();
    let client = broker.client().await;
    let system_id = String::from("0000000000000");
    for (nack, field) in [
        (Nack::default(), "system_id"),
        (Nack { delay: NEGATIVE, system_id: system_id.clone(), ..Default::default() }, "delay"),
        (Nack { subscription_id: "another's".into(), system_id, ..Default::default() }, "subscription_id"),
    ] {
        let (mut stream, _) = client.subscribe(member(1)).await;
        stream.send(Command::Nack(nack));
        assert_invalid(&stream.end().await, field, &[]);
        client.publish("fine", "x").await;
    }
    let mut early = client.stream().await.expect("the stream begins");
    early.send(Command::Nack(Nack { system_id: "x".into(), ..Default::default() }));
    assert_invalid(&early.end().await, "open", &["first"]);
}

#[tokio::test]
async fn in_a_stream_only_its_members_own_are_given_back() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut one, _) = client.subscribe(member(1)).await;
    let (mut two, _) = client.subscribe(member(1)).await;
    client.publish_numbers("a", 1, 2).await;
    let of_one = one.due("1", 1).await;
    let of_two = two.due("2", 1).await;
    two.nack(&of_one);
    two.send(Command::Nack(Nack { message_id: of_one.message_id, ..Default::default() }));
    two.nack(&of_two);
    two.due("2", 2).await;
    let stats = broker.stats().await;
    assert_eq!((stats.counters["nack_not_found"], stats.counters["nacked"]), (2, 1));
    one.quiet().await;
}

#[tokio::test]
async fn where_no_ack_is_asked_it_does_nothing() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, id) = client.subscribe(multi(&["a"])).await;
    client.publish("a", "1").await;
    let message = stream.message().await;
    assert_eq!(client.nack(of(&id, &message)).await.expect("OK"), 0);
    stream.nack(&message);
    client.publish("a", "2").await;
    assert_eq!(stream.payload().await, "2");
    stream.quiet().await;
}
