//! SPEC §3.4: what control_events tell.

use tinybroker::proto::{OpenSubscription, Role};

use crate::support::*;

fn watcher() -> OpenSubscription {
    OpenSubscription { control_events: true, ..singleton("s", &["a"]) }
}

#[tokio::test]
async fn a_member_is_told_its_role_at_once_and_at_each_change() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut active, id) = client.subscribe(watcher()).await;
    let role = active.role().await;
    assert_eq!((role.role(), role.position), (Role::Active, 0));
    let epoch = role.epoch;

    let mut line = Vec::new();
    for position in 1..=3 {
        let mut standby = client.open(watcher()).await;
        let role = standby.role().await;
        assert_eq!((role.role(), role.epoch, role.position), (Role::Standby, epoch, position));
        line.push(standby);
    }
    // Who is ahead of one that leaves is told nothing.
    drop(line.remove(1));
    let role = line[1].role().await;
    assert_eq!((role.role(), role.epoch, role.position), (Role::Standby, epoch, 2));
    line[0].quiet().await;
    active.quiet().await;

    client.publish("a", "x").await;
    drop(active);
    let mut heir = line.remove(0);
    assert_eq!(heir.subscription_id().await, id);
    let role = heir.role().await;
    assert_eq!((role.role(), role.position), (Role::Active, 0));
    assert!(role.epoch > epoch);
    assert_eq!(heir.message().await.epoch, role.epoch);
    let told = line[0].role().await;
    assert_eq!((told.role(), told.epoch, told.position), (Role::Standby, role.epoch, 1));
}

#[tokio::test]
async fn who_does_not_ask_is_told_nothing() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut active, _) = client.subscribe(watcher()).await;
    active.role().await;
    let mut deaf = client.open(singleton("s", &["a"])).await;
    broker.stats_when("a standby", |stats| stats.standbys == 1).await;
    let mut watching = client.open(watcher()).await;
    assert_eq!(watching.role().await.position, 2);
    deaf.quiet().await;
    drop(active);
    deaf.subscription_id().await;
    deaf.quiet().await;
}

#[tokio::test]
async fn other_modes_have_no_roles() {
    let broker = Broker::start();
    let client = broker.client().await;
    for open in [multi(&["a"]), balanced("g", &["a"])] {
        let (mut stream, _) = client.subscribe(OpenSubscription { control_events: true, ..open }).await;
        stream.quiet().await;
    }
}
