use std::time::Instant;

use crate::lines::{ClosedPort, publish, run, run_with_input, with_broker};
use crate::support::*;

#[tokio::test]
async fn says_how_many_subscriptions_took_it() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut one, _) = client.subscribe(multi(&["order.*"])).await;
    let (_two, _) = client.subscribe(multi(&["*.placed"])).await;
    let ended = publish(&broker, &["order.placed", "hello"]).await;
    assert_eq!(ended.succeeds(), "published 1 message to 2 subscriptions\n");
    assert_eq!(ended.err, "");
    let message = one.message().await;
    assert_eq!((message.topic.as_str(), &message.payload[..]), ("order.placed", &b"hello"[..]));
    assert_eq!(message.message_id, message.system_id);
}

#[tokio::test]
async fn payload_may_be_left_out_and_may_look_like_a_number() {
    let broker = Broker::start();
    let (mut stream, _) = broker.client().await.subscribe(multi(&["*"])).await;
    publish(&broker, &["a"]).await.succeeds();
    publish(&broker, &["a", "-5"]).await.succeeds();
    assert_eq!(stream.payload().await, "");
    assert_eq!(stream.payload().await, "-5");
}

#[tokio::test]
async fn warns_where_nobody_listened() {
    let broker = Broker::start();
    let ended = publish(&broker, &["order.placed", "hello"]).await;
    assert_eq!(ended.succeeds(), "published 1 message to 0 subscriptions\n");
    assert!(ended.err.contains("warning: nobody was listening"), "{ended:?}");

    let (_stream, _) = broker.client().await.subscribe(multi(&["*.2"])).await;
    let ended = publish(&broker, &["order.{n}", "--count", "3"]).await;
    assert_eq!(ended.succeeds(), "published 3 messages to 0 to 1 subscriptions\n");
    assert!(ended.err.contains("nobody was listening to 2 of 3 messages"), "{ended:?}");
}

#[tokio::test]
async fn numbers_topic_payload_and_message_id_in_order() {
    let broker = Broker::start();
    let (mut stream, _) = broker.client().await.subscribe(multi(&["t.*"])).await;
    let args = ["t.{n}", "{n} of 20, {n}", "--message-id", "id-{n}", "--count", "20"];
    assert_eq!(publish(&broker, &args).await.succeeds(), "published 20 messages to 1 subscription\n");
    for number in 1..=20 {
        let message = stream.message().await;
        assert_eq!(message.topic, format!("t.{number}"));
        assert_eq!(payload(&message), format!("{number} of 20, {number}"));
        assert_eq!(message.message_id, format!("id-{number}"));
    }
}

#[tokio::test]
async fn headers_are_sent() {
    let broker = Broker::start();
    let (mut stream, _) = broker.client().await.subscribe(multi(&["*"])).await;
    publish(&broker, &["a", "x", "--header", "kind=json", "--header", "query=a=b"]).await.succeeds();
    let headers = stream.message().await.headers;
    assert_eq!(headers.len(), 2);
    assert_eq!((headers["kind"].as_str(), headers["query"].as_str()), ("json", "a=b"));
}

#[tokio::test]
async fn bad_headers_are_explained() {
    let ended = run(&["pub", "a", "x", "--header", "kind"]).await;
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("KEY=VALUE"), "{ended:?}");
    let ended = run(&["pub", "a", "x", "--header", "kind=a", "--header", "kind=b"]).await;
    ended.fails_with(&["\"kind\"", "twice"]);
}

#[tokio::test]
async fn standard_input_is_sent_byte_for_byte() {
    let broker = Broker::start();
    let (mut stream, _) = broker.client().await.subscribe(multi(&["*"])).await;
    let address = broker.address().to_string();
    let input = b"\xff\x00{n}\n";
    run_with_input(&with_broker("pub", &["a", "-"], &address), input).await.succeeds();
    assert_eq!(&stream.message().await.payload[..], input);
}

#[tokio::test]
async fn standard_input_longer_than_any_message_is_refused() {
    let ended = run_with_input(&["pub", "a", "-"], &vec![b'x'; 5 * 1024 * 1024]).await;
    ended.fails_with(&["standard input is longer", "4193792"]);
}

#[tokio::test]
async fn a_rate_holds_messages_back() {
    let broker = Broker::start();
    let (mut stream, _) = broker.client().await.subscribe(multi(&["*"])).await;
    let start = Instant::now();
    publish(&broker, &["a", "{n}", "--count", "5", "--rate", "20"]).await.succeeds();
    // Never early, however slow the machine: the fifth is due four twentieths after the first.
    assert!(start.elapsed().as_millis() >= 200, "{:?}", start.elapsed());
    for number in 1..=5 {
        assert_eq!(stream.payload().await, number.to_string());
    }
}

#[tokio::test]
async fn numbers_out_of_bounds_are_usage_errors() {
    for args in [["--count", "0"], ["--rate", "0"], ["--rate", "NaN"], ["--broker", "nowhere"]] {
        let ended = run(&["pub", "a", "x", args[0], args[1]]).await;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.err.contains(args[0]), "{ended:?}");
    }
}

#[tokio::test]
async fn what_the_broker_refuses_is_one_line_with_code_and_reason() {
    let broker = Broker::start();
    let ended = publish(&broker, &["order.*", "x"]).await;
    ended.fails_with(&["INVALID_ARGUMENT", "topic", "*"]);
    assert_eq!(ended.out, "");
}

#[tokio::test]
async fn what_was_published_before_a_refusal_is_said() {
    let broker = Broker::start();
    let mut open = balanced("g", &["*"]);
    open.max_pending = 2;
    let (_holds_one, _) = broker.client().await.subscribe(open).await;
    let ended = publish(&broker, &["a", "x", "--count", "10"]).await;
    assert_eq!(ended.out, "published 3 messages to 1 subscription\n");
    ended.fails_with(&["RESOURCE_EXHAUSTED"]);
}

#[tokio::test]
async fn no_broker_is_said_with_what_to_do() {
    let closed = ClosedPort::new();
    let ended = run(&with_broker("pub", &["a", "x"], closed.address())).await;
    ended.fails_with(&["no broker answers at", closed.address(), "tinybroker serve"]);
}

#[tokio::test]
async fn the_broker_can_be_named_by_the_environment() {
    let broker = Broker::start();
    let mut command = crate::lines::command(&["pub", "a", "x"]);
    command.env("TINYBROKER_BROKER", broker.address().to_string());
    let output = command.output().await.expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "published 1 message to 0 subscriptions\n");
}
