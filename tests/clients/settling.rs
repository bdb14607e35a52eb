//! Stories of what is not simply acked: given back, given up, held too long, or handled in batches.

use crate::language::{Delivery, Language};
use crate::stories::all_is_acked;
use crate::support::Broker;

pub async fn a_nack_with_a_delay_lets_others_go_first(language: Language) {
    let broker = Broker::start();
    let options = "--mode balanced --group g --fails 1 --nack-delay 0.3 --max-deliveries 2 jobs.*";
    let mut worker = language.started(&broker, options).await;
    // As a batch: the second waits already when the first is given back.
    language.publish(&broker, "jobs.x 1 2 --by batch").await;
    let attempts = worker.attempts(3).await;
    assert_eq!(attempts, [("1", 1), ("2", 1), ("1", 2)].map(|(payload, n)| (payload.to_owned(), n)));
    // After the second attempt it is given up.
    all_is_acked(&broker, 1).await;
}

pub async fn a_nack_with_keep_attempt_is_no_attempt(language: Language) {
    let broker = Broker::start();
    let options = "--mode balanced --group g --fails 1 --keep-attempt --nack-delay 0.1 --ack stream jobs.*";
    let mut unable = language.started(&broker, options).await;
    language.publish(&broker, "jobs.x 1").await;
    let first = unable.message().await;
    let again = unable.message().await;
    assert_eq!((first.attempt, again.attempt), (1, 1));
    assert_eq!(again.system_id, format!("{}.2", first.system_id));
    let mut able = language.started(&broker, "--mode balanced --group g jobs.*").await;
    assert_eq!(able.attempts(1).await, [("1".to_owned(), 1)]);
    all_is_acked(&broker, 1).await;
}

pub async fn what_fails_every_time_becomes_a_dead_letter(language: Language) {
    let broker = Broker::start();
    let mut undertaker = language.started(&broker, "--ack none dead.*").await;
    let options =
        "--mode balanced --group g --fails 1 --max-deliveries 3 --dead-letter-topic dead.jobs jobs.*";
    let mut worker = language.worker(&broker, options);
    let subscription = worker.started().await;
    language.publish(&broker, "jobs.x 1 --message-id job-1 --header tenant=acme").await;
    assert_eq!(worker.attempts(3).await, [1, 2, 3].map(|attempt| ("1".to_owned(), attempt)));
    let letter = undertaker.message().await;
    assert_eq!((letter.topic.as_str(), letter.payload.as_str()), ("dead.jobs", "1"));
    assert_eq!((letter.message_id.as_str(), letter.attempt), ("job-1", 1));
    assert_eq!(letter.headers.get("tenant").map(String::as_str), Some("acme"));
    assert_eq!(story_of_death(&letter), [subscription.as_str(), "jobs.x", "max_deliveries", "3"]);
}

pub async fn what_is_discarded_becomes_a_dead_letter(language: Language) {
    let broker = Broker::start();
    let mut undertaker = language.started(&broker, "--ack none dead.*").await;
    let options =
        "--mode balanced --group g --fails 1 --discard --ack stream --dead-letter-topic dead.jobs jobs.*";
    let mut worker = language.worker(&broker, options);
    let subscription = worker.started().await;
    language.publish(&broker, "jobs.x 1 2").await;
    assert_eq!(worker.payloads(2).await, ["1", "2"]);
    let letter = undertaker.message().await;
    assert_eq!(letter.payload, "1");
    assert_eq!(story_of_death(&letter), [subscription.as_str(), "jobs.x", "discarded", "1"]);
    all_is_acked(&broker, 1).await;
}

pub async fn what_is_held_too_long_goes_to_another(language: Language) {
    let broker = Broker::start();
    let group = "--mode balanced --group g --ack-timeout 0.5";
    let mut holder = language.started(&broker, &format!("{group} --ack none jobs.*")).await;
    language.publish(&broker, "jobs.x 1").await;
    let held = holder.message().await;
    assert_eq!(held.attempt, 1);
    let mut other = language.started(&broker, &format!("{group} jobs.*")).await;
    let again = other.message().await;
    assert_eq!((again.payload, again.message_id), (held.payload, held.message_id));
    assert!(again.attempt > 1, "attempt {}", again.attempt);
    all_is_acked(&broker, 1).await;
}

pub async fn a_batch_is_handled_and_acked(language: Language) {
    let broker = Broker::start();
    let mut leader = language.started(&broker, "--mode singleton --group g --ack none jobs.*").await;
    let options = "--mode singleton --group g --max-in-flight 4 --max-batch 4 jobs.*";
    let mut standby = language.worker(&broker, options);
    broker.stats_when("a standby", |stats| stats.standbys == 1).await;
    language.publish(&broker, "jobs.x 1 2 3 4 5").await;
    assert_eq!(leader.payloads(1).await, ["1"]);
    // All five wait when the standby takes over, and it has room for four.
    leader.kill().await;
    standby.started().await;
    assert_eq!(standby.batch().await, 4);
    assert_eq!(standby.payloads(5).await, ["1", "2", "3", "4", "5"]);
    all_is_acked(&broker, 5).await;
}

/// What the broker added: the subscription that gave it up, the topic there, why, and how many attempts.
fn story_of_death(letter: &Delivery) -> [&str; 4] {
    ["subscription", "topic", "reason", "attempts"]
        .map(|name| letter.headers.get(&format!("tinybroker-dead-letter-{name}")).map_or("", String::as_str))
}
