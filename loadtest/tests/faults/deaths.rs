//! Members that die: what they held must come to others, in its old order and as a further attempt.

use serde_json::json;

use super::*;

const WORKERS: &str = "failover --modes workers --workers 2 --held 3 --rate 400 --drain 1s";
const SINGLETONS: &str = "failover --modes singletons --held 3 --rate 400 --drain 1s";

const CHURN: &str = "churn --groups 6 --singletons 3 --churn 60 --rate 600 --publishers 2 --connections 2";

/// Fails with nothing but this promise broken, said in these words.
async fn breaks(fault: Fault, arguments: &str, (kind, promise): Promise, how: &str) {
    let said = against_for(fault, "600ms", &format!("{arguments} --kills 2 --ways cancel,cut")).await;
    assert_eq!(said.code, 1, "{arguments}: {said}");
    let kinds: Vec<_> =
        said.verdict()["broken"].as_object().into_iter().flatten().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, [kind], "{arguments}: {said}");
    let words = said.words();
    assert!(words.contains(&format!("{promise}: message")) && words.contains(how), "{arguments}: {said}");
}

#[tokio::test]
async fn a_sound_broker_passes_deaths_of_every_kind() {
    for arguments in [WORKERS, SINGLETONS] {
        let said = against_for(Fault::None, "1s", &format!("{arguments} --kills 4")).await;
        assert_eq!((said.code, &said.verdict()["broken"]), (0, &json!({})), "{said}");
        assert!(said.count("redelivered") > 0, "{said}");
        for killed in ["processes killed", "streams cancelled", "connections cut"] {
            let figures = said.report["runs"][0]["figures"].as_array().expect("figures");
            let figure = figures
                .iter()
                .find(|figure| figure["name"] == killed)
                .unwrap_or_else(|| panic!("{killed}: {said}"));
            assert!(figure["value"].as_f64() >= Some(1.0), "{killed}: {said}");
        }
    }
}

#[tokio::test]
async fn a_sound_broker_passes_comings_and_goings() {
    for ack in ["stream", "unary", "bulk"] {
        let said = against_for(Fault::None, "600ms", &format!("{CHURN} --ack {ack}")).await;
        assert_eq!((said.code, &said.verdict()["broken"]), (0, &json!({})), "{said}");
        assert!(said.count("delivered") > 0, "{said}");
    }
}

#[tokio::test]
async fn what_dies_with_its_holder_is_lost() {
    let breaks = |arguments| {
        breaks(Fault::BuryWithMember, arguments, LOST, "never came again after the death of member")
    };
    tokio::join!(breaks(WORKERS), breaks(SINGLETONS));
}

#[tokio::test]
async fn what_is_not_handed_on_within_the_limit_is_named() {
    let said = against(Fault::BuryWithMember, &format!("{WORKERS} --kills 1 --ways cut --limit 50ms")).await;
    assert_eq!((said.code, &said.verdict()["broken"]["not_handed_on"]), (1, &json!(1)), "{said}");
    let words = said.words();
    assert!(words.contains("not handed on as it should be: of what member 0 had when it died"), "{said}");
    assert!(words.contains("messages had not come to another after 50ms"), "{said}");
}

#[tokio::test]
async fn what_comes_back_in_another_order_is_named() {
    let breaks = |arguments| breaks(Fault::TurnRound, arguments, REORDERED, "after message");
    tokio::join!(breaks(WORKERS), breaks(SINGLETONS));
}

#[tokio::test]
async fn what_comes_back_as_the_same_attempt_is_named() {
    let breaks =
        |arguments| breaks(Fault::ForgetAttempt, arguments, MISNUMBERED, "as attempt 1, after attempt 1");
    tokio::join!(breaks(WORKERS), breaks(SINGLETONS));
}

#[tokio::test]
async fn a_second_active_member_is_named() {
    let said = against_for(Fault::TwoActive, "600ms", &format!("{SINGLETONS} --kills 1")).await;
    // What the first one held when it died may break the order at the second.
    assert_eq!(said.code, 1, "{said}");
    assert!(said.verdict()["broken"]["two_holders"].as_u64() > Some(0), "{said}");
    assert!(
        said.words().contains("with two holders at once: message") && said.words().contains("was active"),
        "{said}"
    );
}
