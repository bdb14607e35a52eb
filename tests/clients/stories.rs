//! The stories, told of each language's programs.

use std::net::TcpListener;

use tinybroker::proto::GetStatsResponse;

use crate::language::{Language, payload, run, text};
use crate::support::Broker;

pub async fn an_ack_by_the_unary_call_brings_the_next(language: Language) {
    acks_bring_the_next(language, "unary").await;
}

pub async fn an_ack_in_the_stream_brings_the_next(language: Language) {
    acks_bring_the_next(language, "stream").await;
}

async fn acks_bring_the_next(language: Language, way: &str) {
    let broker = Broker::start();
    let options = format!("--mode balanced --group g --ack {way} jobs.*");
    let mut worker = language.started(&broker, &options).await;
    language.publish(&broker, "jobs.x 1 2 3 4 5").await;
    assert_eq!(worker.payloads(5).await, ["1", "2", "3", "4", "5"]);
    all_is_acked(&broker, 5).await;
}

pub async fn work_is_shared_and_none_is_done_twice(language: Language) {
    let broker = Broker::start();
    let mut one = language.started(&broker, "--mode balanced --group g --ack unary jobs.*").await;
    let mut two = language.started(&broker, "--mode balanced --group g --ack stream jobs.*").await;
    language.publish(&broker, "jobs.x 1 2 3 4 5 6 7 8").await;
    all_is_acked(&broker, 8).await;
    for worker in [&mut one, &mut two] {
        assert!(worker.terminate().await.success());
    }
    let shares = [one.last_lines().await, two.last_lines().await];
    assert!(shares.iter().all(|share| !share.is_empty()), "{shares:?}");
    let mut payloads: Vec<_> = shares.concat().iter().map(|line| payload(line)).collect();
    payloads.sort();
    assert_eq!(payloads, ["1", "2", "3", "4", "5", "6", "7", "8"]);
}

pub async fn work_of_a_killed_worker_goes_to_the_other(language: Language) {
    let broker = Broker::start();
    let mut holder = language.started(&broker, "--mode balanced --group g --ack none jobs.*").await;
    language.publish(&broker, "jobs.x 1").await;
    let held = holder.message().await;
    assert_eq!(held.attempt, 1);
    let mut other = language.started(&broker, "--mode balanced --group g jobs.*").await;
    holder.kill().await;
    let again = other.message().await;
    assert_eq!((again.payload.as_str(), again.attempt), ("1", 2));
    assert_eq!(again.message_id, held.message_id);
    assert_eq!(again.system_id, format!("{}.2", held.system_id));
    all_is_acked(&broker, 1).await;
}

pub async fn a_standby_takes_over_where_the_killed_leader_was(language: Language) {
    let broker = Broker::start();
    let options = "--mode singleton --group g --max-in-flight 3 --ack none jobs.*";
    let mut leader = language.started(&broker, options).await;
    let mut standby = language.worker(&broker, "--mode singleton --group g jobs.*");
    broker.stats_when("a standby", |stats| stats.standbys == 1).await;
    language.publish(&broker, "jobs.x 1 2 3 4 5").await;
    let held = leader.message().await;
    assert_eq!(held.payload, "1");
    assert_eq!(leader.payloads(2).await, ["2", "3"]);
    leader.kill().await;
    standby.started().await;
    let first = standby.message().await;
    assert_eq!((first.payload.as_str(), first.attempt), ("1", 2));
    assert!(first.epoch > held.epoch && held.epoch > 0, "{} after {}", first.epoch, held.epoch);
    let rest = standby.attempts(4).await;
    assert_eq!(rest, [("2", 2), ("3", 2), ("4", 1), ("5", 1)].map(|(payload, n)| (payload.to_owned(), n)));
    all_is_acked(&broker, 5).await;
}

pub async fn every_multi_worker_gets_everything(language: Language) {
    let broker = Broker::start();
    let mut one = language.started(&broker, "jobs.*").await;
    let mut two = language.started(&broker, "jobs.x other").await;
    let answers = language.publish(&broker, "jobs.x 1 2 3").await;
    assert!(answers.iter().all(|answer| answer["subscriptions"] == 2), "{answers:?}");
    for worker in [&mut one, &mut two] {
        assert_eq!(worker.payloads(3).await, ["1", "2", "3"]);
    }
}

pub async fn message_id_and_headers_arrive(language: Language) {
    let broker = Broker::start();
    let mut worker = language.started(&broker, "order.*").await;
    let words = "order.placed zwölf --message-id order-12 --header tenant=acme --header sum=3=1+2";
    let answers = language.publish(&broker, words).await;
    let message = worker.message().await;
    assert_eq!(message.topic, "order.placed");
    assert_eq!(message.payload, "zwölf");
    assert_eq!(message.system_id, text(&answers[0]["system_id"]));
    assert_eq!((message.message_id.as_str(), &answers[0]["message_id"]), ("order-12", &"order-12".into()));
    let header = |key: &str| message.headers.get(key).map(String::as_str);
    assert_eq!((header("tenant"), header("sum")), (Some("acme"), Some("3=1+2")));
    assert_eq!(message.headers.len(), 2);
}

pub async fn workers_come_back_after_a_restart(language: Language) {
    let address = format!("127.0.0.1:{}", free_port());
    let mut broker = Broker::with(&["--listen", &address]);
    let mut workers = Vec::new();
    for options in ["jobs.*", "--mode balanced --group b jobs.*", "--mode singleton --group s jobs.*"] {
        workers.push(language.started(&broker, options).await);
    }
    let ends = [
        (libc::SIGKILL, "killed", language.code_of_a_broken_connection()),
        (libc::SIGTERM, "drained", "UNAVAILABLE"),
    ];
    for (signal, payload, code) in ends {
        broker.signal(signal);
        broker.wait();
        for worker in &mut workers {
            assert_eq!(worker.lost().await, code, "after the broker was {payload}");
        }
        broker = Broker::with(&["--listen", &address]);
        for worker in &mut workers {
            worker.back().await;
        }
        // One subscription each, of the same mode and patterns as before.
        let answers = language.publish(&broker, &format!("jobs.x {payload}")).await;
        assert_eq!(answers[0]["subscriptions"], 3);
        for worker in &mut workers {
            assert_eq!(worker.payloads(1).await, [payload]);
        }
        all_is_acked(&broker, 2).await;
    }
}

pub async fn sigterm_gives_back_what_is_not_acked(language: Language) {
    let broker = Broker::start();
    let mut holder = language.started(&broker, "--mode balanced --group g --ack none jobs.*").await;
    language.publish(&broker, "jobs.x 1").await;
    holder.message().await;
    let mut other = language.started(&broker, "--mode balanced --group g jobs.*").await;
    assert!(holder.terminate().await.success());
    assert_eq!(other.attempts(1).await, [("1".to_owned(), 2)]);
}

pub async fn sigterm_lets_the_message_in_hand_be_finished(language: Language) {
    let broker = Broker::start();
    let mut busy = language.started(&broker, "--mode balanced --group g --work 0.5 jobs.*").await;
    language.publish(&broker, "jobs.x 1").await;
    busy.message().await;
    let mut other = language.started(&broker, "--mode balanced --group g jobs.*").await;
    assert!(busy.terminate().await.success());
    all_is_acked(&broker, 1).await;
    language.publish(&broker, "jobs.x 2").await;
    assert_eq!(other.attempts(1).await, [("2".to_owned(), 1)]);
}

pub async fn a_mistake_is_told_and_not_tried_again(language: Language) {
    let broker = Broker::start();
    let mistakes =
        [("worker", "order.[a", "unclosed `[` at byte 6"), ("publisher", "order.* payload", "wildcard")];
    for (program, words, why) in mistakes {
        let output = run(language.program(program, &broker).args(words.split(' '))).await;
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(why), "{said}");
    }
}

/// Below what systems give out by themselves: nobody else gets it while the broker is away, and no
/// client that tries to connect can meet itself there.
fn free_port() -> u16 {
    let first = 20_000 + (std::process::id() % 10_000) as u16;
    (first..32_000).find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok()).expect("some port is free")
}

/// So many acks, and nothing is left.
pub async fn all_is_acked(broker: &Broker, count: u64) {
    let done = |stats: &GetStatsResponse| {
        stats.counters.get("acked") == Some(&count) && stats.waiting == 0 && stats.in_flight == 0
    };
    broker.stats_when("all is acked", done).await;
}
