//! A small broker in the test's own process: it keeps the contract as far as the load test asks for it, but for
//! the one [`Fault`] that is planted in it.
//!
//! ```text
//! load test ──h2──▶ wire ──▶ Broker: subscriptions, members, who holds what ──▶ events
//! ```

mod broker;
mod fault;
#[path = "../../../src/proto.rs"]
mod proto;
mod subscription;
mod wire;

use std::cell::RefCell;
use std::rc::Rc;
use std::thread;

use broker::Broker;
pub use fault::{Fault, STRUCK};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{LocalSet, spawn_local};

/// One that listens until it is dropped, on a thread of its own.
pub struct FakeBroker {
    /// `HOST:PORT`.
    pub address: String,
    _alive: oneshot::Sender<()>,
}

impl FakeBroker {
    pub fn start(fault: Fault) -> FakeBroker {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address").to_string();
        listener.set_nonblocking(true).expect("a socket of our own");
        let (alive, dropped) = oneshot::channel();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            // All that was begun ends with the set: every connection is closed.
            LocalSet::new().block_on(&runtime, run(listener, fault, dropped));
        });
        FakeBroker { address, _alive: alive }
    }
}

async fn run(listener: std::net::TcpListener, fault: Fault, dropped: oneshot::Receiver<()>) {
    let listener = TcpListener::from_std(listener).expect("a listener of our own");
    let (deathbed, mut death) = mpsc::unbounded_channel();
    let broker = Rc::new(RefCell::new(Broker::new(fault, deathbed)));
    let accept = async {
        while let Ok((socket, _)) = listener.accept().await {
            spawn_local(wire::serve(socket, Rc::clone(&broker)));
        }
    };
    tokio::select! {
        () = accept => {}
        _ = dropped => {}
        _ = death.recv() => {}
    }
}
