//! Each promise: kept, and broken in a known way.

use futures_util::future::join_all;
use serde_json::json;

use super::*;

/// Ways to publish that keep the order.
const IN_ORDER: [&str; 3] = ["unary --outstanding 1", "stream", "batch=16 --outstanding 16"];

#[tokio::test]
async fn a_sound_broker_passes_a_queue() {
    for publish in ["unary", "stream", "batch=16"] {
        for ack in ["stream", "unary", "bulk"] {
            passes(
                Fault::None,
                &format!("queue --groups 2 --max-in-flight 8 --publish {publish} --ack {ack}"),
                1,
            )
            .await;
        }
    }
}

#[tokio::test]
async fn a_sound_broker_passes_a_queue_in_order() {
    for publish in IN_ORDER {
        passes(Fault::None, &format!("queue --workers 3 --max-in-flight 2 --publish {publish}"), 1).await;
    }
}

#[tokio::test]
async fn a_sound_broker_passes_at_a_rate_and_with_threads() {
    passes(Fault::None, "queue --rate 500 --threads 2", 1).await;
}

#[tokio::test]
async fn a_sound_broker_passes_a_queue_behind_a_backlog() {
    const BACKLOG: u64 = 601;
    for publish in ["unary", "stream"] {
        let arguments = format!("queue --publish {publish} --groups 2 --backlog {BACKLOG} --in-broker 50");
        let said = against(Fault::None, &arguments).await;
        assert_eq!((said.code, &said.verdict()["broken"]), (0, &json!({})), "{said}");
        let (sent, delivered) = (said.count("sent"), said.count("delivered"));
        assert!(sent > BACKLOG && delivered == sent, "{said}");
    }
}

#[tokio::test]
async fn a_sound_broker_passes_as_its_work_grows() {
    let broker = FakeBroker::start(Fault::None);
    let counts = "--groups 1,20 --members 1,20 --waiting 10,500 --duration 200ms --warm-up 0s";
    let said = run(&format!("scale {counts} --broker {}", broker.address)).await;
    assert_eq!(said.code, 0, "{said}");
    let runs = said.report["runs"].as_array().expect("runs");
    let told = |field| runs.iter().filter_map(|run| run[field].as_str()).collect::<Vec<_>>();
    let rows = ["groups: 1", "groups: 20", "members: 1", "members: 20", "waiting: 10", "waiting: 500"];
    assert_eq!(told("name"), rows);
    assert_eq!(told("compared_with"), [rows[0], rows[0], rows[2], rows[2], rows[4], rows[4]]);
    assert!(runs.iter().all(|run| run["verdict"]["sent"].as_u64() > Some(0)), "{said}");
}

#[tokio::test]
async fn a_sound_broker_passes_a_fanout() {
    for publish in ["unary", "stream", "batch=16"] {
        passes(Fault::None, &format!("fanout --subscribers 5 --publish {publish}"), 5).await;
    }
}

#[tokio::test]
async fn lost_messages_are_named() {
    let queue = IN_ORDER.map(|publish| async move {
        let arguments = format!("queue --publishers 1 --publish {publish} {LOSSY}");
        fails(Fault::Lose, &arguments, &[(LOST, STRUCK)], 1).await;
    });
    let fanout = format!("{FANOUT} {LOSSY}");
    tokio::join!(join_all(queue), fails(Fault::Lose, &fanout, &[(LOST, STRUCK)], 3));
}

#[tokio::test]
async fn doubled_messages_are_named() {
    for ack in ["stream", "unary", "bulk"] {
        fails(Fault::Double, &format!("{QUEUE} --ack {ack}"), &[(DOUBLED, STRUCK)], 1).await;
    }
    fails(Fault::Double, FANOUT, &[(DOUBLED, STRUCK)], 3).await;
}

#[tokio::test]
async fn messages_that_come_again_though_they_were_acked_are_named() {
    // With one worker: another could get it before the first hears that its ack has arrived, and would hold it too.
    for ack in ["stream", "unary", "bulk"] {
        fails(Fault::ForgetAck, &format!("{QUEUE} --workers 1 --ack {ack}"), &[(DOUBLED, STRUCK)], 1).await;
    }
}

#[tokio::test]
async fn messages_with_two_holders_are_named() {
    fails(Fault::TwoHolders, &format!("{QUEUE} --ack unary"), &[(TWO_HOLDERS, STRUCK)], 1).await;
}

#[tokio::test]
async fn messages_out_of_order_are_named() {
    for publish in IN_ORDER {
        let queue = format!("queue --publishers 1 --workers 1 --publish {publish}");
        fails(Fault::Reorder, &queue, &[(REORDERED, STRUCK)], 1).await;
    }
    // In the backlog itself.
    let queue = format!("{QUEUE} --workers 1 --backlog {}", 2 * STRUCK[2]);
    fails(Fault::Reorder, &queue, &[(REORDERED, STRUCK)], 1).await;
    fails(Fault::Reorder, FANOUT, &[(REORDERED, STRUCK)], 3).await;
}

#[tokio::test]
async fn where_no_order_is_promised_none_is_missed() {
    passes(Fault::Reorder, "queue --publishers 1 --workers 1 --publish unary --outstanding 64", 1).await;
}

#[tokio::test]
async fn refused_messages_that_come_are_named() {
    for publish in IN_ORDER {
        fails(
            Fault::Ghost,
            &format!("queue --publishers 1 --publish {publish}"),
            &[(UNPUBLISHED, STRUCK)],
            1,
        )
        .await;
    }
}

#[tokio::test]
async fn messages_that_nobody_sent_are_named() {
    let garbled = STRUCK.map(|sequence| sequence ^ 0x40 << 56);
    let runs = [QUEUE, "fanout --subscribers 1 --publish stream"].map(|arguments| async move {
        let arguments = format!("{arguments} {LOSSY}");
        fails(Fault::Garble, &arguments, &[(LOST, STRUCK), (UNPUBLISHED, garbled)], 1).await;
    });
    join_all(runs).await;
}

#[tokio::test]
async fn messages_that_come_to_another_group_are_named() {
    // The lanes take turns: messages 1 and 7 are the first and the fourth of the second lane, 4 the third of the first.
    fails(Fault::Misdeliver, &format!("{QUEUE} --groups 2"), &[(MISDELIVERED, [0, 2, 3])], 1).await;
}

#[tokio::test]
async fn wrong_counts_are_named() {
    for publish in ["unary --outstanding 1", "batch=16 --outstanding 16"] {
        fails(
            Fault::Miscount,
            &format!("queue --publishers 1 --publish {publish}"),
            &[(MISCOUNTED, STRUCK)],
            1,
        )
        .await;
    }
    let said = against(Fault::Miscount, QUEUE).await;
    // A stream's confirm says how many were unheard, and not which.
    assert_eq!((said.code, &said.verdict()["broken"]), (1, &json!({"miscounted": 3})), "{said}");
}

#[tokio::test]
async fn wrong_attempts_are_named() {
    fails(Fault::Misnumber, QUEUE, &[(MISNUMBERED, STRUCK)], 1).await;
}

#[tokio::test]
async fn messages_that_cannot_be_settled_are_named() {
    fails(Fault::DenyAck, &format!("{QUEUE} --ack unary {LOSSY}"), &[(UNSETTLED, STRUCK)], 1).await;
}
