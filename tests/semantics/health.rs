//! SPEC §5: health, as probes ask for it.

use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::support::*;

pub const NAMES: [&str; 2] = ["", "tinybroker.v1.Broker"];

pub async fn status(broker: &Broker, service: &str) -> ServingStatus {
    let mut health = HealthClient::new(broker.channel().await);
    let request = HealthCheckRequest { service: service.into() };
    health.check(request).await.expect("health is served").into_inner().status()
}

#[tokio::test]
async fn the_process_and_the_broker_are_serving() {
    let broker = Broker::start();
    for name in NAMES {
        assert_eq!(status(&broker, name).await, ServingStatus::Serving, "{name:?}");
    }
}

#[tokio::test]
async fn an_unknown_service_is_not_found() {
    let broker = Broker::start();
    let mut health = HealthClient::new(broker.channel().await);
    let request = HealthCheckRequest { service: "nonsense".into() };
    let status = health.check(request).await.expect_err("there is no such service");
    assert_status(&status, Code::NotFound, &[]);
}

#[tokio::test]
async fn who_watches_is_told_of_a_drain() {
    let broker = Broker::with(&["--drain-timeout", "10m"]);
    let client = broker.client().await;
    let (mut member, id) = client.subscribe(balanced("g", &["a"])).await;
    client.publish("a", "1").await;
    let held = member.message().await;
    let mut health = HealthClient::new(broker.channel().await);
    let mut watches = Vec::new();
    for name in NAMES {
        let request = HealthCheckRequest { service: name.into() };
        let mut watch = health.watch(request).await.expect("watch is served").into_inner();
        let first = watch.message().await.expect("it goes on").expect("a status");
        assert_eq!(first.status(), ServingStatus::Serving);
        watches.push(watch);
    }
    broker.signal(libc::SIGTERM);
    for watch in &mut watches {
        let next = in_time(watch.message()).await;
        assert_eq!(next.expect("it goes on").expect("a status").status(), ServingStatus::NotServing);
    }
    client.ack(ack_by_system_id(&id, &held.system_id)).await.expect("acks are served");
}
