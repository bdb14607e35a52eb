//! SPEC §3.10: order.

use tinybroker::proto::OpenSubscription;

use crate::support::*;

#[tokio::test]
async fn calls_that_begin_after_the_last_was_answered_keep_their_order_over_all_connections() {
    let broker = Broker::start();
    let publishers = [broker.client().await, broker.client().await, broker.client().await];
    let client = broker.client().await;
    let mut streams = Vec::new();
    for number in 0..4 {
        streams.push(client.subscribe(multi(&["a"])).await.0);
        let open = OpenSubscription { max_in_flight: 1000, ..singleton(&format!("s{number}"), &["a"]) };
        streams.push(client.subscribe(open).await.0);
    }
    for number in 0..100 {
        publishers[number % 3].publish("a", &number.to_string()).await;
    }
    for stream in &mut streams {
        for number in 0..100 {
            assert_eq!(stream.payload().await, number.to_string());
        }
    }
}

#[tokio::test]
async fn a_redelivery_comes_before_what_is_newer() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = |max_in_flight| OpenSubscription { max_in_flight, ..balanced("g", &["a"]) };
    let (mut holder, _) = client.subscribe(open(3)).await;
    let (mut busy, _) = client.subscribe(open(1)).await;
    client.publish_numbers("a", 1, 9).await;
    for number in ["1", "3", "4"] {
        assert_eq!(holder.payload().await, number);
    }
    let held = busy.message().await;
    assert_eq!(payload(&held), "2");
    drop(holder);
    broker.stats_when("its leaving", |stats| stats.members == 1).await;
    busy.ack(&held);
    for number in ["1", "3", "4", "5", "6", "7", "8", "9"] {
        assert_eq!(busy.take().await, number);
    }
}
