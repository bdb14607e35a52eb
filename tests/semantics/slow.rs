//! SPEC §3.12 and §3.13: a slow member harms only itself, and may take its time.

use tinybroker::proto::OpenSubscription;
use tinybroker::proto::broker_client::BrokerClient;
use tonic::Code;
use tonic::transport::Endpoint;

use crate::support::*;

/// A client whose connection has room beside a stream that is not read.
async fn roomy(broker: &Broker) -> Client {
    let endpoint = Endpoint::from_shared(format!("http://{}", broker.address())).expect("a URI");
    let endpoint = endpoint.initial_connection_window_size(8 * 1024 * 1024);
    Client(BrokerClient::new(endpoint.connect().await.expect("the broker accepts")))
}

#[tokio::test]
async fn a_stream_that_is_not_read_holds_up_neither_its_neighbours_nor_publishers() {
    let broker = Broker::start();
    let client = roomy(&broker).await;
    let (_unread, _) = client.subscribe(multi(&["a"])).await;
    let (mut neighbour, _) = client.subscribe(multi(&["a"])).await;
    let (mut worker, _) = client.subscribe(balanced("g", &["a"])).await;
    let big = "x".repeat(10_000);
    for _ in 0..300 {
        assert_eq!(client.publish("a", &big).await.subscriptions, 3);
        assert_eq!(neighbour.payload().await.len(), big.len());
        assert_eq!(worker.take().await.len(), big.len());
    }
}

#[tokio::test]
async fn a_member_that_is_not_read_keeps_only_what_it_may_hold() {
    let broker = Broker::start();
    let client = roomy(&broker).await;
    let open = |max_in_flight| OpenSubscription { max_in_flight, ..balanced("g", &["a"]) };
    let (_unread, _) = client.subscribe(open(2)).await;
    let (mut worker, _) = client.subscribe(open(1)).await;
    let mut passed = 0;
    for number in 1..=30 {
        client.publish("a", &number.to_string()).await;
        // 1 and 3 go to the one that is not read, which then has no room.
        if ![1, 3].contains(&number) {
            assert_eq!(worker.take().await, number.to_string());
            broker.stats_when("its ack", |stats| stats.in_flight <= 2).await;
            passed += 1;
        }
    }
    assert_eq!(passed, 28);
}

#[tokio::test]
async fn one_that_falls_behind_is_ended_alone() {
    let broker = Broker::start();
    let client = roomy(&broker).await;
    let (mut unread, _) = client.subscribe(OpenSubscription { max_pending: 50, ..multi(&["a"]) }).await;
    let (mut neighbour, _) = client.subscribe(multi(&["a"])).await;
    let big = "x".repeat(50_000);
    let mut subscriptions = 2;
    while subscriptions == 2 {
        subscriptions = client.publish("a", &big).await.subscriptions;
        assert_eq!(neighbour.payload().await.len(), big.len());
    }
    assert_status(&unread.end().await, Code::ResourceExhausted, &["fell 50 messages behind"]);
}

#[tokio::test]
async fn a_member_may_hold_a_message_while_others_are_idle() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut holder, id) = client.subscribe(balanced("g", &["a"])).await;
    client.publish("a", "1").await;
    let held = holder.message().await;
    let (mut idle, _) = client.subscribe(balanced("g", &["a"])).await;
    idle.quiet().await;
    assert_eq!(client.ack(ack_by_system_id(&id, &held.system_id)).await.expect("still its own"), 1);
}
