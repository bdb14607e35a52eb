//! SPEC §3.11: DROP_OLDEST and DROP_NEWEST, and how a subscription hears of it.

use tinybroker::proto::{NackRequest, OpenSubscription, OverflowPolicy};

use crate::support::*;

fn dropping(policy: OverflowPolicy, open: OpenSubscription) -> OpenSubscription {
    OpenSubscription { max_pending: 2, overflow: policy.into(), max_in_flight: 1, ..open }
}

#[tokio::test]
async fn drop_oldest_keeps_what_is_newest() {
    let broker = Broker::start();
    let client = broker.client().await;
    for open in [multi(&["a"]), balanced("g", &["a"]), singleton("s", &["a"])] {
        let (mut stream, _) = client.subscribe(dropping(OverflowPolicy::DropOldest, open)).await;
        for number in 1..=7 {
            assert_eq!(client.publish("a", &number.to_string()).await.subscriptions, 1);
        }
        assert_eq!(stream.take().await, "1");
        assert_eq!(stream.lagged().await, 4);
        assert_eq!([stream.take().await, stream.take().await], ["6", "7"]);
        stream.quiet().await;
        drop(stream);
        broker.stats_when("its end", |stats| stats.subscriptions == 0).await;
    }
    assert_eq!(broker.stats().await.counters["dropped_oldest"], 12);
}

#[tokio::test]
async fn drop_newest_keeps_what_is_oldest() {
    let broker = Broker::start();
    let client = broker.client().await;
    for open in [multi(&["a"]), balanced("g", &["a"]), singleton("s", &["a"])] {
        let (mut stream, _) = client.subscribe(dropping(OverflowPolicy::DropNewest, open)).await;
        for number in 1..=7 {
            // What is dropped on arrival is not counted in `subscriptions`.
            let subscriptions = client.publish("a", &number.to_string()).await.subscriptions;
            assert_eq!(subscriptions, u32::from(number <= 3));
        }
        assert_eq!(stream.take().await, "1");
        assert_eq!(stream.lagged().await, 4);
        assert_eq!([stream.take().await, stream.take().await], ["2", "3"]);
        stream.quiet().await;
        drop(stream);
        broker.stats_when("its end", |stats| stats.subscriptions == 0).await;
    }
    assert_eq!(broker.stats().await.counters["dropped_newest"], 12);
}

#[tokio::test]
async fn it_is_told_once_to_the_next_member_that_gets_an_event() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = || dropping(OverflowPolicy::DropOldest, balanced("g", &["a"]));
    let (mut one, _) = client.subscribe(open()).await;
    let (mut two, _) = client.subscribe(open()).await;
    client.publish_numbers("a", 1, 7).await;
    let (of_one, of_two) = (one.message().await, two.message().await);
    two.ack(&of_two);
    assert_eq!(two.lagged().await, 3);
    assert_eq!(two.take().await, "6");
    assert_eq!(two.take().await, "7");
    one.ack(&of_one);
    client.publish_numbers("a", 8, 9).await;
    let mut got = [one.take().await, two.take().await];
    got.sort();
    assert_eq!(got, ["8", "9"]);
    two.quiet().await;
    one.quiet().await;
}

#[tokio::test]
async fn each_lagged_counts_from_the_last() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(dropping(OverflowPolicy::DropNewest, multi(&["a"]))).await;
    for _ in 0..2 {
        client.publish_numbers("a", 1, 5).await;
        assert_eq!(stream.take().await, "1");
        assert_eq!(stream.lagged().await, 2);
        assert_eq!([stream.take().await, stream.take().await], ["2", "3"]);
        broker.stats_when("its acks", |stats| stats.in_flight == 0).await;
    }
}

#[tokio::test]
async fn a_full_one_refuses_no_publish_of_others() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (_full, _) = client.subscribe(dropping(OverflowPolicy::DropNewest, multi(&["a"]))).await;
    let (mut group, _) = client.subscribe(balanced("g", &["a"])).await;
    for number in 1..=20 {
        client.publish("a", &number.to_string()).await;
        assert_eq!(group.take().await, number.to_string());
    }
}

#[tokio::test]
async fn what_is_parked_is_dropped_in_its_turn() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = dropping(OverflowPolicy::DropOldest, balanced("g", &["a"]));
    let (mut stream, id) = client.subscribe(open).await;
    client.publish("a", "1").await;
    let system_id = stream.message().await.system_id;
    let nack = NackRequest { subscription_id: id, system_id, delay: ENDLESS, ..Default::default() };
    client.nack(nack).await.expect("it is in flight");
    // 2 is in flight; 1 is the oldest of those that wait.
    client.publish_numbers("a", 2, 4).await;
    let stats = broker.stats().await;
    assert_eq!((stats.parked, stats.waiting, stats.counters["dropped_oldest"]), (0, 2, 1));
    assert_eq!(stream.take().await, "2");
    assert_eq!(stream.lagged().await, 1);
    assert_eq!([stream.take().await, stream.take().await], ["3", "4"]);
}

#[tokio::test]
async fn bytes_are_a_limit_too() {
    let broker = Broker::with(&["--max-pending-bytes", "5000000"]);
    let client = broker.client().await;
    for (policy, taken, kept) in [
        (OverflowPolicy::DropOldest, [1, 1, 1, 1], ["1", "3", "4"]),
        (OverflowPolicy::DropNewest, [1, 1, 1, 0], ["1", "2", "3"]),
    ] {
        let open = OpenSubscription { max_pending: 0, ..dropping(policy, balanced("g", &["a"])) };
        let (mut stream, _) = client.subscribe(open).await;
        for (number, taken) in (1..).zip(taken) {
            let text = format!("{number}{}", " ".repeat(2_000_000));
            assert_eq!(client.publish("a", &text).await.subscriptions, taken, "{policy:?}, {number}");
        }
        assert_eq!(stream.take().await.trim_end(), kept[0]);
        assert_eq!(stream.lagged().await, 1);
        assert_eq!([stream.take().await.trim_end(), stream.take().await.trim_end()], kept[1..]);
        stream.quiet().await;
        drop(stream);
        broker.stats_when("its end", |stats| stats.subscriptions == 0).await;
    }
}
