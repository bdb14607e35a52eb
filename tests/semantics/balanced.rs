//! SPEC §3.3: BALANCED.

use tinybroker::proto::OpenSubscription;

use crate::support::*;
use crate::workers::Workers;

#[tokio::test]
async fn each_message_goes_to_exactly_one_member() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut one, _) = client.subscribe(balanced("g", &["jobs.*"])).await;
    let (mut two, _) = client.subscribe(balanced("g", &["jobs.*"])).await;
    client.publish_numbers("jobs.x", 1, 2).await;
    let mut got = [one.take().await, two.take().await];
    got.sort();
    assert_eq!(got, ["1", "2"]);
    one.quiet().await;
    two.quiet().await;
}

#[tokio::test]
async fn each_group_gets_each_message() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut streams = Vec::new();
    for number in 0..8 {
        streams.push(client.subscribe(balanced(&format!("g{number}"), &["a"])).await.0);
    }
    assert_eq!(client.publish("a", "1").await.subscriptions, 8);
    for stream in &mut streams {
        assert_eq!(stream.take().await, "1");
    }
}

#[tokio::test]
async fn the_turn_goes_round_the_members_that_have_room() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = || OpenSubscription { max_in_flight: 2, ..balanced("g", &["a"]) };
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(client.subscribe(open()).await.0);
    }
    client.publish_numbers("a", 1, 6).await;
    for (stream, expected) in streams.iter_mut().zip([["1", "4"], ["2", "5"], ["3", "6"]]) {
        assert_eq!([stream.payload().await, stream.payload().await], expected);
    }
}

#[tokio::test]
async fn the_limit_is_per_stream_and_one_by_default() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push(client.subscribe(balanced("g", &["a"])).await.0);
    }
    client.publish_numbers("a", 1, 20).await;
    let mut held = Vec::new();
    for stream in &mut streams {
        held.push(stream.message().await);
    }
    let stats = broker.stats().await;
    assert_eq!((stats.in_flight, stats.waiting), (8, 12));
    streams[5].ack(&held[5]);
    assert_eq!(streams[5].payload().await, "9");
    for stream in &mut streams {
        stream.quiet().await;
    }
}

#[tokio::test]
async fn max_in_flight_is_each_members_own() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = |max_in_flight| OpenSubscription { max_in_flight, ..balanced("g", &["a"]) };
    let (mut wide, _) = client.subscribe(open(3)).await;
    let (mut narrow, _) = client.subscribe(open(0)).await;
    client.publish_numbers("a", 1, 6).await;
    for number in ["1", "3", "4"] {
        assert_eq!(wide.payload().await, number);
    }
    assert_eq!(narrow.payload().await, "2");
    wide.quiet().await;
    narrow.quiet().await;
}

#[tokio::test]
async fn a_member_gets_messages_from_the_moment_it_joins() {
    let broker = Broker::start();
    let (busy, late) = (broker.client().await, broker.client().await);
    let (mut first, _) = busy.subscribe(balanced("g", &["a"])).await;
    busy.publish_numbers("a", 1, 3).await;
    assert_eq!(first.payload().await, "1");
    let (mut second, _) = late.subscribe(balanced("g", &["a"])).await;
    assert_eq!([second.take().await, second.take().await], ["2", "3"]);
    first.quiet().await;
}

#[tokio::test]
async fn shares_are_even_over_joins_and_leaves() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut workers = Workers::new();
    for _ in 0..5 {
        workers.join(&client, balanced("g", &["a"])).await;
    }
    let within_one = |shares: &[u32], even: u32| shares.iter().all(|&share| share.abs_diff(even) <= 1);
    let shares = workers.share(&client, "a", 100).await;
    assert!(within_one(&shares, 20), "{shares:?}");

    workers.join(&client, balanced("g", &["a"])).await;
    let shares = workers.share(&client, "a", 120).await;
    assert!(within_one(&shares, 20), "{shares:?}");

    workers.leave(1);
    broker.stats_when("five members", |stats| stats.members == 5).await;
    let mut shares = workers.share(&client, "a", 100).await;
    assert_eq!(shares.remove(1), 0);
    assert!(within_one(&shares, 20), "{shares:?}");
}

#[tokio::test]
async fn one_stuck_member_holds_up_nobody() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stuck, _) = client.subscribe(balanced("g", &["a"])).await;
    client.publish("a", "0").await;
    assert_eq!(stuck.payload().await, "0");
    let mut workers = Workers::new();
    workers.join(&client, balanced("g", &["a"])).await;
    assert_eq!(workers.share(&client, "a", 99).await, [99]);
    stuck.quiet().await;
    drop(stuck);
    assert_eq!(workers.next().await, (0, "0".into()));
}
