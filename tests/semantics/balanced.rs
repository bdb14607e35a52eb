use crate::support::*;

#[tokio::test]
async fn each_message_goes_to_exactly_one_member() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut one, _) = client.subscribe(balanced("g", &["jobs.*"])).await;
    let (mut two, _) = client.subscribe(balanced("g", &["jobs.*"])).await;
    client.publish_numbers("jobs.x", 1, 2).await;
    let mut got = [one.take().await, two.take().await];
    got.sort();
    assert_eq!(got, ["1", "2"]);
    one.quiet().await;
    two.quiet().await;
}
