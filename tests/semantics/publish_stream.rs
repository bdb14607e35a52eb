//! SPEC §1 and §4: PublishStream.

use bytes::{BufMut, BytesMut};
use prost::Message as _;
use tinybroker::proto::{OpenSubscription, PublishRequest};
use tonic::Code;

use crate::drain::broker_drains;
use crate::support::*;
use crate::wire::{PUBLISH, PUBLISH_STREAM, WireClient, framed};

#[tokio::test]
async fn confirms_are_cumulative() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(multi(&["a"])).await;
    let mut publisher = client.publisher().await;
    for number in 1..=3 {
        publisher.send(message("a", &number.to_string()));
        publisher.settled(number).await;
        assert_eq!(stream.payload().await, number.to_string());
    }
    publisher.send_numbers("a", 4, 100);
    publisher.settled(100).await;
    for number in 4..=100 {
        assert_eq!(stream.payload().await, number.to_string());
    }
    let told = publisher.finish().await;
    assert_eq!((told.confirmed, told.unheard, told.failures), (100, 0, vec![]));
}

#[tokio::test]
async fn headers_come_before_any_request() {
    let broker = Broker::start();
    let mut silent = broker.client().await.publisher().await;
    let early = tokio::time::timeout(QUIET, silent.next()).await;
    assert!(early.is_err(), "nothing was due, {early:?} came");
    assert_eq!(silent.finish().await.confirmed, 0);
}

#[tokio::test]
async fn after_the_half_close_come_a_last_confirm_and_ok() {
    let broker = Broker::start();
    let client = broker.client().await;
    // Also where all is told already, and where there is nothing to tell.
    for count in [0, 1, 3000] {
        let mut publisher = client.publisher().await;
        publisher.send_numbers("a", 1, count);
        publisher.settled(u64::from(count)).await;
        publisher.half_close();
        let last = publisher.next().await.expect("no error").expect("a last confirm");
        assert_eq!((last.confirmed, last.unheard), (u64::from(count), 0));
        assert_eq!(publisher.next().await.expect("OK"), None);

        let publisher = client.publisher().await;
        publisher.send_numbers("a", 1, count);
        assert_eq!(publisher.finish().await.confirmed, u64::from(count));
    }
}

#[tokio::test]
async fn a_failure_has_index_code_and_words_and_ends_nothing() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(multi(&["a"])).await;
    let publisher = client.publisher().await;
    publisher.send(message("a", "0"));
    publisher.send(message("a*", "1"));
    publisher.send(message("a", &"x".repeat(5_000_000)));
    publisher.send(message("a", "3"));
    publisher.send(PublishRequest { message_id: "x".repeat(300), ..message("a", "4") });
    publisher.send(PublishRequest::default());
    publisher.send(message("a", "6"));
    let told = publisher.finish().await;
    assert_eq!((told.confirmed, told.unheard), (7, 0));
    let expected = [
        (1, Code::InvalidArgument, "wildcard"),
        (2, Code::ResourceExhausted, "limit 4193792"),
        (4, Code::InvalidArgument, "message_id"),
        (5, Code::InvalidArgument, "topic"),
    ];
    assert_eq!(told.failures.len(), expected.len());
    for (failure, (index, code, word)) in told.failures.iter().zip(expected) {
        assert_eq!((failure.index, failure.code), (index, code as i32), "{failure:?}");
        assert!(failure.message.contains(word), "{failure:?}");
    }
    for number in ["0", "3", "6"] {
        assert_eq!(stream.payload().await, number);
    }
    stream.quiet().await;
    assert_eq!(broker.stats().await.counters["publish_failed"], 4);
}

#[tokio::test]
async fn more_failures_than_one_confirm_holds_are_all_told() {
    let broker = Broker::start();
    let publisher = broker.client().await.publisher().await;
    for number in 0..5000 {
        publisher.send(message(if number % 2 == 0 { "*" } else { "a" }, "x"));
    }
    let told = publisher.finish().await;
    let failed: Vec<u64> = told.failures.iter().map(|failure| failure.index).collect();
    assert_eq!(failed, (0..5000).step_by(2).collect::<Vec<u64>>());
    assert_eq!((told.confirmed, told.unheard), (5000, 2500));
}

#[tokio::test]
async fn a_full_subscription_refuses_and_takes_again() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut member, id) =
        client.subscribe(OpenSubscription { max_pending: 2, ..balanced("g", &["a"]) }).await;
    let mut publisher = client.publisher().await;
    publisher.send_numbers("a", 0, 4);
    publisher.settled(5).await;
    let failed: Vec<u64> = publisher.told.failures.iter().map(|failure| failure.index).collect();
    assert_eq!(failed, [3, 4]);
    for failure in &publisher.told.failures {
        assert_eq!(failure.code, Code::ResourceExhausted as i32);
        assert!(failure.message.contains(&id) && failure.message.contains("limit 2"), "{failure:?}");
    }
    assert_eq!([member.take().await, member.take().await], ["0", "1"]);
    broker.stats_when("room", |stats| stats.waiting == 0).await;
    publisher.send(message("a", "5"));
    publisher.settled(6).await;
    assert_eq!(publisher.told.failures.len(), 2);
    assert_eq!([member.take().await, member.take().await], ["2", "5"]);
    member.quiet().await;
}

#[tokio::test]
async fn what_reached_nobody_is_told_as_unheard() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (_stream, _) = client.subscribe(multi(&["heard"])).await;
    let publisher = client.publisher().await;
    for topic in ["heard", "unheard", "heard", "not*", "unheard", "unheard"] {
        publisher.send(message(topic, "x"));
    }
    let told = publisher.finish().await;
    assert_eq!((told.confirmed, told.unheard, told.failures.len()), (6, 3, 1));
    let counters = broker.stats().await.counters;
    assert_eq!((counters["published"], counters["unheard"], counters["publish_failed"]), (5, 3, 1));
}

/// Subscriptions of every mode, on all shards.
async fn many_subscriptions(client: &Client) -> Vec<Stream> {
    let mut streams = Vec::new();
    for number in 0..8 {
        let wide = |open| OpenSubscription { max_in_flight: 100_000, ..open };
        streams.push(client.subscribe(wide(balanced(&format!("b{number}"), &["a"]))).await.0);
        streams.push(client.subscribe(wide(singleton(&format!("s{number}"), &["a"]))).await.0);
        streams.push(client.subscribe(multi(&["a"])).await.0);
    }
    streams
}

#[tokio::test]
async fn order_is_kept_in_every_subscription() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut streams = many_subscriptions(&client).await;
    let publisher = broker.client().await.publisher().await;
    publisher.send_numbers("a", 1, 500);
    for stream in &mut streams {
        for number in 1..=500 {
            assert_eq!(stream.payload().await, number.to_string());
        }
    }
    assert_eq!(publisher.finish().await.confirmed, 500);
}

/// One that may refuse: each publish asks all shards first.
#[tokio::test]
async fn order_is_kept_while_a_subscription_may_refuse() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut streams = many_subscriptions(&client).await;
    let (mut full, _) =
        client.subscribe(OpenSubscription { max_pending: 20, ..balanced("full", &["a"]) }).await;
    let mut publisher = broker.client().await.publisher().await;
    publisher.send_numbers("a", 0, 49);
    publisher.settled(50).await;
    assert_eq!(publisher.told.failures.len(), 29, "one is in flight, twenty wait");
    publisher.send_numbers("a", 50, 499);
    let publishing = async {
        let told = publisher.finish().await;
        while client.try_publish(message("a", "end")).await.is_err() {
            tokio::task::yield_now().await;
        }
        told
    };
    let taking = async {
        let mut taken = Vec::new();
        loop {
            match full.take().await.parse::<u64>() {
                Ok(number) => taken.push(number),
                Err(_) => return taken,
            }
        }
    };
    let (told, taken) = tokio::join!(publishing, taking);
    let failed: Vec<u64> = told.failures.iter().map(|failure| failure.index).collect();
    let published: Vec<u64> = (0..500).filter(|index| !failed.contains(index)).collect();
    assert_eq!(taken, published);
    for stream in &mut streams {
        for number in &published {
            assert_eq!(stream.payload().await, number.to_string());
        }
        assert_eq!(stream.payload().await, "end");
    }
}

#[tokio::test]
async fn thousands_are_pipelined_and_a_confirm_settles_many() {
    const MESSAGES: u32 = 20_000;
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) =
        client.subscribe(OpenSubscription { max_in_flight: MESSAGES, ..balanced("g", &["a"]) }).await;
    let mut publisher = client.publisher().await;
    publisher.send_numbers("a", 1, MESSAGES);
    publisher.half_close();
    let mut confirms = 0;
    while publisher.next().await.expect("no error").is_some() {
        confirms += 1;
    }
    assert_eq!((publisher.told.confirmed, publisher.told.failures.len()), (MESSAGES.into(), 0));
    assert!(confirms < MESSAGES, "{confirms} confirms");
    for number in 1..=MESSAGES {
        assert_eq!(stream.payload().await, number.to_string());
    }
}

#[tokio::test]
async fn unreadable_protobuf_ends_that_call_alone() {
    let broker = Broker::start();
    let client = broker.client().await;
    let wire = WireClient::connect(&broker).await;
    let (mut stream, _) = client.subscribe(multi(&["a"])).await;
    let mut body = BytesMut::from(&framed(&message("a", "before").encode_to_vec())[..]);
    body.put_slice(&framed(b"\xff\xff"));
    body.put_slice(&framed(&message("a", "behind").encode_to_vec()));
    let status = wire.call_unfinished(PUBLISH_STREAM, &[], body.freeze()).await;
    assert_invalid(&status, "request", &["protobuf"]);
    let publish = framed(&message("a", "another call").encode_to_vec());
    assert_eq!(wire.call(PUBLISH, &[], publish).await.code(), Code::Ok);
    assert_eq!([stream.payload().await, stream.payload().await], ["before", "another call"]);
}

#[tokio::test]
async fn what_was_read_before_a_cancel_is_published() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(multi(&["a"])).await;
    for _ in 0..10 {
        let mut publisher = client.publisher().await;
        publisher.send_numbers("a", 1, 300);
        publisher.next().await.expect("no error").expect("a confirm");
        let confirmed = publisher.told.confirmed;
        publisher.send_numbers("a", 301, 600);
        drop(publisher);
        client.publish("a", "end").await;
        // What was confirmed and perhaps some more, in order and without a gap.
        let mut taken = 0;
        loop {
            let text = stream.payload().await;
            if text == "end" {
                break;
            }
            taken += 1;
            assert_eq!(text, taken.to_string());
        }
        assert!(taken >= confirmed, "{confirmed} were confirmed, {taken} came");
    }
    broker.stats_when("no message is held", |stats| stats.message_bytes == 0).await;
}

#[tokio::test]
async fn while_the_broker_drains_each_message_fails_and_new_streams_are_refused() {
    let broker = Broker::with(&["--drain-timeout", "1h"]);
    let client = broker.client().await;
    let (mut holder, id) = client.subscribe(balanced("g", &["a"])).await;
    let mut publisher = client.publisher().await;
    let mut idle = client.publisher().await;
    publisher.send(message("a", "1"));
    publisher.settled(1).await;
    let held = holder.message().await;
    broker.signal(libc::SIGTERM);
    broker_drains(&broker).await;
    publisher.send_numbers("a", 2, 3);
    publisher.settled(3).await;
    for (failure, index) in publisher.told.failures.iter().zip(1..) {
        assert_eq!((failure.index, failure.code), (index, Code::Unavailable as i32));
        assert!(failure.message.contains("shutting down"));
    }
    assert_eq!(publisher.told.failures.len(), 2);
    let status = client.try_publish_stream().await.err().expect("no new stream");
    assert_status(&status, Code::Unavailable, &["shutting down"]);
    client.ack(ack_by_system_id(&id, &held.system_id)).await.expect("acks are served");
    for publisher in [&mut publisher, &mut idle] {
        assert_status(&publisher.end().await, Code::Unavailable, &["shutting down"]);
    }
}

#[tokio::test]
async fn the_broker_ends_it_at_its_grpc_timeout() {
    let broker = Broker::start();
    let wire = WireClient::connect(&broker).await;
    let (mut stream, _) = broker.client().await.subscribe(multi(&["a"])).await;
    let body = framed(&message("a", "in time").encode_to_vec());
    let status = wire.call_unfinished(PUBLISH_STREAM, &[("grpc-timeout", "300m")], body).await;
    assert_status(&status, Code::DeadlineExceeded, &["deadline"]);
    assert_eq!(stream.payload().await, "in time");
    let publish = framed(&message("a", "later").encode_to_vec());
    assert_eq!(wire.call(PUBLISH, &[], publish).await.code(), Code::Ok);
    assert_eq!(stream.payload().await, "later");
}

#[tokio::test]
async fn streams_and_calls_of_one_connection_go_side_by_side() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut worker, id) = client.subscribe(balanced("g", &["*"])).await;
    let mut publishers = [client.publisher().await, client.publisher().await, client.publisher().await];
    for round in 1..=20 {
        for publisher in &mut publishers {
            publisher.send(message("a", "x"));
            publisher.settled(round).await;
            let message = worker.message().await;
            assert_eq!(client.ack(ack_by_system_id(&id, &message.system_id)).await.expect("OK"), 1);
        }
        client.publish("b", "y").await;
        assert_eq!(worker.take().await, "y");
    }
}
