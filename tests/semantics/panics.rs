//! SPEC §5: a panic in a handler is INTERNAL on that call, one in an executor ends the process.

use tonic::{Code, Request};

use crate::support::*;

fn faulty<T>(message: T, fault: &'static str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("tinybroker-fault", fault.parse().expect("a header value"));
    request
}

#[tokio::test]
async fn a_panic_in_a_handler_is_internal_on_that_call_only() {
    let broker = Broker::with_env(&[], &[("TINYBROKER_FAULTS", "1")]);
    let client = broker.client().await;
    let mut stub = client.0.clone();
    let (mut stream, _) = client.subscribe(multi(&["*"])).await;
    for panics in 1..=3 {
        let status = stub.publish(faulty(message("a", "lost"), "handler")).await.expect_err("it panics");
        assert_status(&status, Code::Internal, &["bug"]);
        let commands = tokio_stream::pending();
        let status = stub.subscribe(faulty(commands, "handler")).await.expect_err("it panics");
        assert_status(&status, Code::Internal, &["bug"]);
        client.publish("a", "x").await;
        assert_eq!(stream.payload().await, "x");
        assert_eq!(broker.stats().await.counters["handler_panics"], 2 * panics);
    }
}

#[tokio::test]
async fn a_panic_in_an_executor_ends_the_process() {
    let mut broker = Broker::with_env(&[], &[("TINYBROKER_FAULTS", "1")]);
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(multi(&["*"])).await;
    let _ = client.0.clone().publish(faulty(message("b", "x"), "executor")).await;
    let status = broker.wait();
    assert!(status.code().is_some_and(|code| code != 0), "{status:?}");
    stream.end().await;
}

#[tokio::test]
async fn faults_are_made_only_where_they_are_allowed() {
    let broker = Broker::start();
    let client = broker.client().await;
    for fault in ["handler", "executor"] {
        client.0.clone().publish(faulty(message("a", "x"), fault)).await.expect("nothing panics");
    }
    client.publish("a", "x").await;
}
