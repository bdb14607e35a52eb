//! How a run ends where there is nothing to blame the broker for, or no broker to speak of.

use std::io::Write;
use std::net::TcpListener;

use futures_util::future::join_all;
use serde_json::json;

use super::*;

const SCENARIOS: &str =
    "queue fanout latency patterns confirm failover churn slow connections soak prefetch scale all";

#[tokio::test]
async fn refusals_are_counted_and_told_and_no_failure() {
    for publish in ["unary", "stream", "batch=16"] {
        for (fault, refuses_all) in [(Fault::Refuse, false), (Fault::RefuseAll, true)] {
            let said = against(fault, &format!("queue --publish {publish}")).await;
            assert_eq!(said.code, 0, "{said}");
            assert!(said.words().contains("publishes were refused: "), "{said}");
            let sent = said.count("sent");
            let refused = if refuses_all { sent } else { STRUCK.len() as u64 };
            assert!(sent > 0, "{said}");
            assert_eq!((said.count("refused"), said.count("delivered")), (refused, sent - refused), "{said}");
            assert_eq!(said.verdict()["broken"], json!({}), "{said}");
        }
    }
}

#[tokio::test]
async fn a_call_that_the_broker_does_not_serve_ends_the_run() {
    cannot_be_made(&against(Fault::NoStream, QUEUE).await, "UNIMPLEMENTED");
}

#[tokio::test]
async fn a_broker_that_dies_ends_the_run() {
    for arguments in [QUEUE, FANOUT, "queue --publish unary", "queue --rate 500 --ack unary"] {
        cannot_be_made(&against(Fault::Die, arguments).await, "HTTP/2");
    }
}

#[tokio::test]
async fn a_broker_that_does_not_confirm_ends_the_run() {
    let runs = ["unary", "stream", "batch=16"].map(|publish| async move {
        let said = against(Fault::NeverConfirm, &format!("queue --publish {publish} --drain 500ms")).await;
        cannot_be_made(&said, "settling what was published took more than 500ms");
    });
    join_all(runs).await;
}

#[tokio::test]
async fn a_broker_that_falls_silent_ends_the_run() {
    let (frozen, mute) = tokio::join!(against(Fault::Freeze, QUEUE), against(Fault::Mute, QUEUE));
    cannot_be_made(&frozen, "took more than 10s");
    cannot_be_made(&mute, "took more than 10s");
}

#[tokio::test]
async fn where_no_broker_is_the_run_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    drop(listener);
    cannot_be_made(&run(&format!("queue --broker {address}")).await, &format!("no connection to {address}"));
}

#[tokio::test]
async fn what_is_no_broker_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    cannot_be_made(&run(&format!("queue --broker {address}")).await, "HTTP/2");
}

#[tokio::test]
async fn options_that_make_no_sense_are_told_from_failures() {
    let broker = FakeBroker::start(Fault::None);
    for (arguments, why) in [
        ("queue --groups 3 --workers 2", "--workers"),
        ("queue --serve=--shards=1", "--spawn"),
        ("queue --publish carrier-pigeon", "batch=SIZE"),
        ("queue --workers 0", "--workers"),
        ("latency --rate 5", "--rates"),
        ("all --only queue,teleport", "`teleport`"),
        ("teleport", "teleport"),
    ] {
        let said = run(&format!("{arguments} --broker {}", broker.address)).await;
        assert_eq!(said.code, 2, "{arguments}: {said}");
        assert!(said.stderr.contains(why) && said.report.is_null(), "{arguments}: {said}");
    }
}

#[tokio::test]
async fn help_names_every_scenario_and_each_has_its_own() {
    let help = run("--help").await;
    for scenario in SCENARIOS.split(' ') {
        let listed = help.stdout.lines().any(|line| line.split_whitespace().next() == Some(scenario));
        assert!(help.code == 0 && listed, "{scenario}: {help}");
        let own = run(&format!("{scenario} --help")).await;
        assert!(own.code == 0 && own.stdout.contains("--duration"), "{own}");
    }
}

#[tokio::test]
async fn a_set_is_gone_through_as_often_as_asked() {
    let broker = FakeBroker::start(Fault::None);
    let said = run(&format!("all --smoke --only fanout --repeat 2 --broker {}", broker.address)).await;
    assert_eq!(said.code, 0, "{said}");
    assert!(said.words().contains("the round of the median rate of 2, from "), "{said}");
    let rounds = said.report["runs"][0]["rounds"].as_array().expect("rounds");
    let sent: Vec<u64> = rounds.iter().filter_map(|round| round["verdict"]["sent"].as_u64()).collect();
    assert!(matches!(sent[..], [first, second] if first + second == said.count("sent")), "{said}");
}
