//! SPEC §3.4: SINGLETON.

use tinybroker::proto::OpenSubscription;

use crate::support::*;

/// A candidate that may hold so many.
fn candidate(max_in_flight: u32) -> OpenSubscription {
    OpenSubscription { max_in_flight, ..singleton("s", &["a"]) }
}

/// Opens a standby and waits until the broker has it in its line as the `place`th.
async fn stand_by(broker: &Broker, client: &Client, place: u64) -> Stream {
    let stream = client.open(candidate(5)).await;
    broker.stats_when("one more standby", |stats| stats.standbys == place).await;
    stream
}

#[tokio::test]
async fn the_active_member_alone_gets_messages_also_while_others_join() {
    let broker = Broker::start();
    let (client, other) = (broker.client().await, broker.client().await);
    let (mut active, _) = client.subscribe(candidate(0)).await;
    for round in 0..30 {
        let (standby, published) = tokio::join!(other.open(candidate(0)), client.publish("a", "x"));
        let message = active.message().await;
        assert_eq!((message.system_id.as_str(), message.delivery_attempt), (&*published.system_id, 1));
        active.ack(&message);
        drop(standby);
        broker.stats_when("the standby's end", |stats| stats.standbys == 0 && stats.in_flight == 0).await;
        let delivered = broker.stats().await.counters["delivered"];
        assert_eq!(delivered, round + 1, "one copy of each");
    }
    active.quiet().await;
}

#[tokio::test]
async fn a_newcomer_does_not_unseat_the_leader() {
    let broker = Broker::start();
    let clients = [broker.client().await, broker.client().await, broker.client().await];
    let (mut leader, _) = clients[1].subscribe(candidate(0)).await;
    clients[1].publish_numbers("a", 1, 20).await;
    let held = leader.message().await;
    let mut standbys = vec![stand_by(&broker, &clients[0], 1).await, stand_by(&broker, &clients[2], 2).await];
    leader.quiet().await;
    leader.ack(&held);
    for number in 2..=20 {
        assert_eq!(leader.take().await, number.to_string());
    }
    for standby in &mut standbys {
        standby.quiet().await;
    }
    assert_eq!(broker.stats().await.counters["redelivered"], 0);
}

#[tokio::test]
async fn one_in_flight_is_the_default() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut active, _) = client.subscribe(candidate(0)).await;
    client.publish_numbers("a", 1, 2).await;
    let first = active.message().await;
    active.quiet().await;
    active.ack(&first);
    assert_eq!(active.payload().await, "2");
}

#[tokio::test]
async fn the_next_gets_what_its_predecessor_held_then_the_rest() {
    let broker = Broker::start();
    let clients = [broker.client().await, broker.client().await, broker.client().await];
    let (mut leader, id) = clients[0].subscribe(candidate(3)).await;
    let mut next = stand_by(&broker, &clients[1], 1).await;
    let mut last = stand_by(&broker, &clients[2], 2).await;
    clients[0].publish_numbers("a", 1, 20).await;
    for number in 1..=4 {
        assert_eq!(leader.take().await, number.to_string());
    }
    for number in 5..=7 {
        assert_eq!(leader.payload().await, number.to_string());
    }
    drop((leader, clients[0].clone()));
    assert_eq!(next.subscription_id().await, id);
    for number in 5..=20 {
        let message = next.message().await;
        assert_eq!(payload(&message), number.to_string());
        assert_eq!(message.delivery_attempt, if number <= 7 { 2 } else { 1 });
        next.ack(&message);
    }
    last.quiet().await;
}

#[tokio::test]
async fn who_left_the_waiting_line_is_never_promoted() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (active, id) = client.subscribe(candidate(0)).await;
    let cancelled = stand_by(&broker, &client, 1).await;
    let doomed = broker.client().await;
    let killed = stand_by(&broker, &doomed, 2).await;
    let mut heir = stand_by(&broker, &client, 3).await;
    drop(cancelled);
    drop((killed, doomed));
    broker.stats_when("one standby", |stats| stats.standbys == 1).await;
    client.publish("a", "1").await;
    drop(active);
    assert_eq!(heir.subscription_id().await, id);
    let message = heir.message().await;
    // To the first and to the heir, and to nobody in between.
    assert_eq!((payload(&message).as_str(), message.delivery_attempt), ("1", 2));
}

#[tokio::test]
async fn standbys_are_promoted_in_the_order_of_their_opens() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut active, id) = client.subscribe(candidate(0)).await;
    let mut line = Vec::new();
    for place in 1..=4 {
        line.push(stand_by(&broker, &client, place).await);
    }
    for mut heir in line {
        drop(active);
        assert_eq!(heir.subscription_id().await, id);
        client.publish("a", "x").await;
        assert_eq!(heir.take().await, "x");
        broker.stats_when("its ack", |stats| stats.in_flight == 0).await;
        active = heir;
    }
    active.quiet().await;
}

#[tokio::test]
async fn each_promotion_raises_the_epoch_that_every_delivery_carries() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut first, _) = client.subscribe(candidate(0)).await;
    let mut second = stand_by(&broker, &client, 1).await;
    client.publish_numbers("a", 1, 2).await;
    let epoch = first.message().await.epoch;
    assert!(epoch > 0);
    drop(first);
    second.subscription_id().await;
    let returned = second.message().await;
    assert!(returned.epoch > epoch, "also the message that comes again carries the new one");
    second.ack(&returned);
    assert_eq!(second.message().await.epoch, returned.epoch);
    let last = returned.epoch;

    // The group empties and returns.
    drop(second);
    broker.stats_when("the group's end", |stats| stats.subscriptions == 0).await;
    let (mut anew, _) = client.subscribe(candidate(0)).await;
    client.publish("a", "3").await;
    assert!(anew.message().await.epoch > last);
}

#[tokio::test]
async fn the_epoch_grows_over_a_restart_of_the_broker() {
    let mut last = 0;
    for _ in 0..3 {
        let broker = Broker::start();
        let client = broker.client().await;
        // Several promotions in each life.
        for _ in 0..5 {
            let (mut active, _) = client.subscribe(candidate(0)).await;
            client.publish("a", "x").await;
            let epoch = active.message().await.epoch;
            assert!(epoch > last);
            last = epoch;
            drop(active);
            broker.stats_when("the group's end", |stats| stats.subscriptions == 0).await;
        }
    }
}

#[tokio::test]
async fn other_modes_have_no_epoch() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut one, _) = client.subscribe(multi(&["a"])).await;
    let (mut two, _) = client.subscribe(balanced("g", &["a"])).await;
    client.publish("a", "x").await;
    assert_eq!((one.message().await.epoch, two.message().await.epoch), (0, 0));
}
