//! SPEC §5: where the broker listens.

use crate::options::refusal;
use crate::support::*;

#[tokio::test]
async fn every_kind_of_address_is_served() {
    for listen in ["127.0.0.1:0", "[::1]:0", "[::]:0", "0.0.0.0:0", "localhost:0"] {
        let broker = Broker::with(&["--listen", listen]);
        for address in &broker.addresses {
            let channel =
                tonic::transport::Endpoint::from_shared(format!("http://{address}")).expect("a URI");
            let channel = channel.connect().await.unwrap_or_else(|error| panic!("{listen}: {error}"));
            Client(tinybroker::proto::broker_client::BrokerClient::new(channel)).publish("a", "x").await;
        }
    }
}

#[tokio::test]
async fn every_address_that_a_name_resolves_to_is_listened_on_with_one_port() {
    let broker = Broker::with(&["--listen", "localhost:0"]);
    let resolved: std::collections::BTreeSet<_> =
        tokio::net::lookup_host("localhost:0").await.expect("it resolves").map(|it| it.ip()).collect();
    let listening: std::collections::BTreeSet<_> = broker.addresses.iter().map(|it| it.ip()).collect();
    assert_eq!(listening, resolved);
    assert!(broker.addresses.iter().all(|it| it.port() == broker.address().port()));
}

#[tokio::test]
async fn several_addresses_are_all_listened_on() {
    let broker = Broker::with(&["--listen", "127.0.0.1:0", "--listen", "[::1]:0"]);
    assert_eq!(broker.addresses.len(), 2);
}

#[test]
fn a_second_broker_on_a_port_in_use_does_not_start() {
    let broker = Broker::start();
    let address = broker.address().to_string();
    let line = refusal(&["--listen", &address]);
    assert!(line.contains(&address) && line.contains("in use"), "{line}");
    let line = refusal(&["--listen", "127.0.0.1:0", "--listen", &address]);
    assert!(line.contains(&address) && line.contains("in use"), "{line}");
}

#[test]
fn a_port_is_free_again_after_its_broker() {
    let mut broker = Broker::start();
    let address = broker.address().to_string();
    let _open = std::net::TcpStream::connect(&address).expect("the broker accepts");
    broker.signal(libc::SIGKILL);
    broker.wait();
    assert_eq!(Broker::with(&["--listen", &address]).address().to_string(), address);
}

#[test]
fn a_bad_address_is_one_line() {
    for bad in ["not-a-host.invalid:1", "127.0.0.1", "127.0.0.1:99999", ":::", "", "192.0.2.1:0"] {
        let line = refusal(&["--listen", bad]);
        assert!(line.contains("--listen") && line.contains(bad), "{line}");
    }
}
