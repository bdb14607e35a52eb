//! SPEC §3.5: who leaves, when, and what becomes of what it held.

use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::{Ack, OpenSubscription, SubscribeCommand};

use crate::support::*;
use crate::wire::RawConnection;

fn member(max_in_flight: u32) -> OpenSubscription {
    OpenSubscription { max_in_flight, ..balanced("g", &["a"]) }
}

/// A member that holds "1", and another that waits for it.
async fn holder_and_heir(of_holder: &Client, of_heir: &Client) -> (Stream, Stream) {
    let (mut holder, _) = of_holder.subscribe(member(0)).await;
    of_heir.publish("a", "1").await;
    assert_eq!(holder.payload().await, "1");
    let (heir, _) = of_heir.subscribe(member(0)).await;
    (holder, heir)
}

/// The holder of "1" has left: the other gets it once, as a second attempt.
async fn assert_handed_over(broker: &Broker, mut heir: Stream) {
    let message = heir.message().await;
    assert_eq!((payload(&message).as_str(), message.delivery_attempt), ("1", 2));
    heir.ack(&message);
    broker.stats_when("the ack", |stats| stats.in_flight == 0 && stats.waiting == 0).await;
    heir.quiet().await;
}

#[tokio::test]
async fn to_half_close_and_then_end_is_leaving() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut holder, mut heir) = holder_and_heir(&client, &client).await;
    holder.half_close();
    heir.quiet().await;
    drop(holder);
    assert_handed_over(&broker, heir).await;
}

#[tokio::test]
async fn to_cancel_is_leaving_also_where_the_connection_stays_up() {
    let broker = Broker::start();
    let (own, client) = (broker.client().await, broker.client().await);
    let (mut other, _) = own.subscribe(multi(&["other"])).await;
    let (holder, heir) = holder_and_heir(&own, &client).await;
    drop(holder);
    assert_handed_over(&broker, heir).await;
    client.publish("other", "x").await;
    assert_eq!(other.payload().await, "x");
}

#[tokio::test]
async fn a_closed_connection_is_leaving() {
    let broker = Broker::start();
    let (own, client) = (broker.client().await, broker.client().await);
    let (holder, heir) = holder_and_heir(&own, &client).await;
    drop((holder, own));
    assert_handed_over(&broker, heir).await;
}

#[tokio::test]
async fn a_reset_connection_is_leaving() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut raw = RawConnection::open(&broker).await;
    raw.subscribe(member(0)).await;
    client.publish("a", "1").await;
    assert_eq!(payload(&raw.message().await), "1");
    let (heir, _) = client.subscribe(member(0)).await;
    raw.reset();
    assert_handed_over(&broker, heir).await;
}

#[tokio::test]
async fn the_late_end_of_an_old_connection_leaves_the_clients_new_one_alone() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut old = RawConnection::open(&broker).await;
    old.subscribe(member(0)).await;
    client.publish_numbers("a", 1, 3).await;
    assert_eq!(payload(&old.message().await), "1");
    // The client believes its connection dead and has come anew; the broker hears of the death later.
    let (mut new, id) = client.subscribe(member(0)).await;
    let held = new.due("2", 1).await;
    old.reset();
    broker.stats_when("the old one's leaving", |stats| stats.members == 1).await;
    new.quiet().await;
    let ack = ack_by_system_id(&id, &held.system_id);
    assert_eq!(client.ack(ack).await.expect("it still holds what it held"), 1);
    new.take_due("1", 2).await;
    new.take_due("3", 1).await;
}

#[tokio::test]
async fn half_close_is_not_leaving() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, id) = client.subscribe(member(0)).await;
    stream.half_close();
    for number in 1..=3 {
        client.publish("a", &number.to_string()).await;
        let message = stream.message().await;
        assert_eq!(payload(&message), number.to_string());
        assert_eq!(client.ack(ack_by_message_id(&id, &message.message_id)).await.expect("OK"), 1);
    }
    client.publish("a", "4").await;
    assert_eq!(stream.payload().await, "4");
    // Its later cancel is noticed, with nothing to send to it.
    let (mut other, _) = client.subscribe(member(0)).await;
    drop(stream);
    assert_eq!(other.payload().await, "4");
}

#[tokio::test]
async fn commands_that_came_before_a_reset_are_carried_out() {
    let broker = Broker::start();
    let client = broker.client().await;
    for round in 1..=20 {
        let mut raw = RawConnection::open(&broker).await;
        raw.subscribe(member(0)).await;
        let published = client.publish("a", "settled").await;
        assert_eq!(payload(&raw.message().await), "settled");
        let (mut heir, _) = client.subscribe(member(0)).await;
        let ack = Ack { system_id: published.system_id, ..Default::default() };
        raw.say_and_cancel(&SubscribeCommand { command: Some(Command::Ack(ack)) }).await;
        broker.stats_when("the leaving", |stats| stats.members == 1).await;
        client.publish("a", "next").await;
        assert_eq!(heir.payload().await, "next");
        let counters = broker.stats().await.counters;
        assert_eq!((counters["acked"], counters["redelivered"]), (round, 0));
        drop(heir);
        broker.stats_when("the group's end", |stats| stats.subscriptions == 0).await;
    }
}

#[tokio::test]
async fn what_returns_takes_its_old_place_in_whatever_order_members_leave() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut holders = Vec::new();
    for _ in 0..4 {
        holders.push(client.subscribe(member(2)).await.0);
    }
    client.publish_numbers("a", 1, 10).await;
    for holder in &mut holders {
        holder.message().await;
        holder.message().await;
    }
    let (mut late, _) = client.subscribe(member(0)).await;
    let held = late.message().await;
    assert_eq!(payload(&held), "9");
    for (leaver, left) in [(2, 4), (0, 3), (1, 2), (0, 1)] {
        drop(holders.remove(leaver));
        broker.stats_when("a leaving", |stats| stats.members == left).await;
    }
    late.ack(&held);
    for number in [1, 2, 3, 4, 5, 6, 7, 8, 10] {
        assert_eq!(late.take().await, number.to_string());
    }
}

#[tokio::test]
async fn the_rest_gets_the_share_of_the_departed() {
    let broker = Broker::start();
    let client = broker.client().await;
    let other = broker.client().await;
    let (mut survivor, _) = client.subscribe(member(0)).await;
    let (mut closed, _) = client.subscribe(member(0)).await;
    let (cancelled, _) = client.subscribe(member(0)).await;
    let (killed, _) = other.subscribe(member(0)).await;
    closed.half_close();
    drop((closed, cancelled, killed, other));
    broker.stats_when("their leaving", |stats| stats.members == 1).await;
    for number in 1..=100 {
        client.publish("a", &number.to_string()).await;
        assert_eq!(survivor.take().await, number.to_string());
    }
}

#[tokio::test]
async fn all_that_a_member_held_and_did_not_ack_returns() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut holder, _) = client.subscribe(member(50)).await;
    client.publish_numbers("a", 1, 50).await;
    for number in 1..=50 {
        let message = holder.message().await;
        if [7, 20].contains(&number) {
            holder.ack(&message);
        }
    }
    broker.stats_when("two acks", |stats| stats.in_flight == 48).await;
    let (mut heir, _) = client.subscribe(member(50)).await;
    drop(holder);
    for number in (1..=50).filter(|number| ![7, 20].contains(number)) {
        let message = heir.message().await;
        assert_eq!((payload(&message), message.delivery_attempt), (number.to_string(), 2));
    }
    heir.quiet().await;
}
