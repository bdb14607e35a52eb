use crate::lines::{ClosedPort, Sub, run, with_broker};
use crate::support::*;

#[tokio::test]
async fn several_patterns_print_topic_and_payload() {
    let broker = Broker::start();
    let mut sub = Sub::open(&broker, &["order.*", "payment.*"]).await;
    let client = broker.client().await;
    client.publish("order.placed", "one").await;
    client.publish("auth.login", "not this").await;
    client.publish("payment.charge.failed", "two").await;
    assert_eq!(sub.out.next().await, "order.placed\tone");
    assert_eq!(sub.out.next().await, "payment.charge.failed\ttwo");
}

#[tokio::test]
async fn payloads_cannot_command_the_terminal() {
    let broker = Broker::start();
    let mut sub = Sub::open(&broker, &["*"]).await;
    let client = broker.client().await;
    let mut request = message("a", "");
    request.payload = b"\x1b[2J\n\xff".as_slice().into();
    client.try_publish(request).await.expect("it is confirmed");
    assert_eq!(sub.out.next().await, "a\t\\u{1b}[2J\\n\u{fffd}");
}

#[tokio::test]
async fn group_members_share_the_messages_and_ack_each() {
    let broker = Broker::start();
    let mut one = Sub::open(&broker, &["jobs.*", "--group", "g"]).await;
    let mut two = Sub::open(&broker, &["jobs.*", "--group", "g"]).await;
    let client = broker.client().await;
    for round in ["1", "2", "3"] {
        client.publish("jobs.x", round).await;
        client.publish("jobs.x", round).await;
        assert_eq!(one.out.next().await, format!("jobs.x\t{round}"));
        assert_eq!(two.out.next().await, format!("jobs.x\t{round}"));
        settled(&broker).await;
    }
}

#[tokio::test]
async fn multi_with_max_in_flight_acks_too() {
    let broker = Broker::start();
    let mut sub = Sub::open(&broker, &["*", "--max-in-flight", "2"]).await;
    broker.client().await.publish_numbers("a", 1, 10).await;
    for number in 1..=10 {
        assert_eq!(sub.out.next().await, format!("a\t{number}"));
    }
    settled(&broker).await;
}

#[tokio::test]
async fn ack_none_holds_as_many_as_may_be_in_flight() {
    let broker = Broker::start();
    let mut sub = Sub::open(&broker, &["*", "--group", "g", "--ack", "none", "--max-in-flight", "3"]).await;
    broker.client().await.publish_numbers("a", 1, 5).await;
    for number in 1..=3 {
        assert_eq!(sub.out.next().await, format!("a\t{number}"));
    }
    sub.out.quiet().await;
    let stats = broker.stats().await;
    assert_eq!((stats.in_flight, stats.waiting), (3, 2), "{stats:?}");
}

#[tokio::test]
async fn a_count_that_ack_none_can_never_reach_is_refused() {
    let ended = run(&["sub", "*", "--group", "g", "--ack", "none", "--count", "2"]).await;
    ended.fails_with(&["--ack none", "--max-in-flight 2"]);
}

#[tokio::test]
async fn json_messages_have_every_field() {
    let broker = Broker::start();
    let mut sub = Sub::start(broker.address(), &["*", "--json"]);
    let subscribed = sub.out.json().await;
    assert_eq!(subscribed["event"], "subscribed");
    assert!(subscribed["subscription_id"].as_str().is_some_and(|id| !id.is_empty()), "{subscribed}");

    let client = broker.client().await;
    let mut request = message("a", "é\n\"");
    request.message_id = "mine".into();
    request.headers.insert("kind".into(), "json".into());
    let published = client.try_publish(request).await.expect("it is confirmed");
    let object = sub.out.json().await;
    assert_eq!(object["system_id"], published.system_id);
    assert_eq!(object["message_id"], "mine");
    assert_eq!(object["topic"], "a");
    assert_eq!(object["payload"], "é\n\"");
    assert_eq!(object["headers"], serde_json::json!({ "kind": "json" }));
    assert_eq!(object["delivery_attempt"], 1);
    assert_eq!(object["epoch"], 0);
    let published_at = object["published_at"].as_str().expect("a time");
    humantime::parse_rfc3339(published_at).expect("RFC 3339");
    assert!(object.get("payload_base64").is_none() && object.get("event").is_none(), "{object}");

    let mut request = message("a", "");
    request.payload = b"\xff\x00".as_slice().into();
    client.try_publish(request).await.expect("it is confirmed");
    let object = sub.out.json().await;
    assert_eq!(object["payload_base64"], "/wA=");
    assert!(object.get("payload").is_none(), "{object}");
}

#[tokio::test]
async fn a_standby_shows_its_place_and_its_promotion() {
    let broker = Broker::start();
    let args = ["schedule.*", "--group", "g", "--singleton"];
    let mut active = Sub::start(broker.address(), &args);
    active.err.find("active, epoch ").await;
    let mut next = Sub::start(broker.address(), &args);
    assert_eq!(next.err.next().await, "standing by, position 1");
    let mut last = Sub::start(broker.address(), &[&args[..], &["--json"]].concat());
    let standby = last.out.json().await;
    assert_eq!((&standby["event"], &standby["role"]), (&"role".into(), &"standby".into()));
    assert_eq!(standby["position"], 2);

    active.signal(libc::SIGKILL);
    let promoted = next.err.find("active, epoch ").await;
    let client = broker.client().await;
    client.publish("schedule.tick", "1").await;
    assert_eq!(next.out.next().await, "schedule.tick\t1");
    loop {
        let event = last.out.json().await;
        assert_eq!((&event["event"], &event["role"]), (&"role".into(), &"standby".into()));
        if event["position"] == 1 && promoted.ends_with(&format!(" {}", event["epoch"])) {
            break;
        }
    }

    settled(&broker).await;
    next.signal(libc::SIGKILL);
    let mut events = Vec::new();
    while !is_promoted(&events) {
        events.push(last.out.json().await);
    }
    client.publish("schedule.tick", "2").await;
    let object = last.out.json().await;
    assert_eq!(object["payload"], "2");
    let role = events.iter().find(|event| event["role"] == "active").expect("it was promoted");
    assert_eq!(object["epoch"], role["epoch"]);
}

fn is_promoted(events: &[serde_json::Value]) -> bool {
    let came = |key: &str, value: &str| events.iter().any(|event| event[key] == value);
    came("role", "active") && came("event", "subscribed")
}

#[tokio::test]
async fn singleton_needs_a_group() {
    let ended = run(&["sub", "*", "--singleton"]).await;
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("--group"), "{ended:?}");
}

#[tokio::test]
async fn options_come_from_the_environment_too() {
    let broker = Broker::start();
    let mut command = crate::lines::command(&["sub", "*"]);
    command.env("TINYBROKER_BROKER", broker.address().to_string());
    command.env("TINYBROKER_GROUP", "g").env("TINYBROKER_SINGLETON", "true").env("TINYBROKER_JSON", "true");
    command.env("TINYBROKER_ACK", "none").env("TINYBROKER_MAX_IN_FLIGHT", "2");
    let mut sub = Sub::spawn(command);
    assert_eq!(sub.out.json().await["event"], sub_event(&mut sub).await);
    broker.client().await.publish_numbers("a", 1, 3).await;
    assert_eq!(sub.out.json().await["payload"], "1");
    assert_eq!(sub.out.json().await["payload"], "2");
    sub.out.quiet().await;
}

/// The other of the two events that a promotion brings, in whatever order.
async fn sub_event(sub: &mut Sub) -> serde_json::Value {
    let second = sub.out.json().await["event"].clone();
    if second == "role" { "subscribed".into() } else { "role".into() }
}

#[tokio::test]
async fn a_bad_pattern_is_explained_by_the_broker() {
    let broker = Broker::start();
    let address = broker.address().to_string();
    let ended = run(&with_broker("sub", &["order.[a"], &address)).await;
    ended.fails_with(&["INVALID_ARGUMENT", "topic_patterns", "unclosed `[` at byte 6"]);
}

#[tokio::test]
async fn a_group_that_differs_is_explained_by_the_broker() {
    let broker = Broker::start();
    let _sub = Sub::open(&broker, &["a.*", "--group", "g"]).await;
    let address = broker.address().to_string();
    let ended = run(&with_broker("sub", &["b.*", "--group", "g"], &address)).await;
    ended.fails_with(&["FAILED_PRECONDITION", "pattern"]);
}

#[tokio::test]
async fn no_broker_at_first_is_an_error_at_once() {
    let closed = ClosedPort::new();
    let ended = run(&with_broker("sub", &["*"], closed.address())).await;
    ended.fails_with(&["no broker answers at", closed.address(), "tinybroker serve"]);
}

/// Until nothing waits and nothing is in flight.
async fn settled(broker: &Broker) {
    broker.stats_when("all is settled", |stats| stats.waiting == 0 && stats.in_flight == 0).await;
}
