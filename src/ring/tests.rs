use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::{Doorbell, Drained, Mesh, Port};

fn pair<T: Send>(ring_slots: usize) -> (Port<T>, Port<T>) {
    let mut ports = Mesh::new(2, ring_slots).into_ports().into_iter();
    (ports.next().expect("port 0"), ports.next().expect("port 1"))
}

fn drain_all<T>(port: &mut Port<T>) -> Vec<(usize, T)> {
    let mut items = Vec::new();
    port.drain(usize::MAX, |from, item| items.push((from, item)));
    items
}

fn assert_at_rest<T>(ports: &[Port<T>]) {
    for port in ports {
        for (from, counts) in port.incoming_counts() {
            assert!(counts.holds_at_rest(), "I9, ring {from}→{}: {counts:?}", port.me());
        }
    }
}

/// The waker of a plain thread, which counts how often it was woken.
struct WakesThread {
    thread: Thread,
    wakes: AtomicUsize,
}

impl WakesThread {
    fn current() -> Arc<Self> {
        Arc::new(WakesThread { thread: thread::current(), wakes: AtomicUsize::new(0) })
    }
}

impl Wake for WakesThread {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        self.thread.unpark();
    }
}

#[test]
fn every_port_knows_itself_and_its_peers() {
    let ports = Mesh::<u8>::new(3, 4).into_ports();
    let peers: Vec<_> = ports.iter().map(|port| (port.me(), port.peers().collect())).collect();
    assert_eq!(peers, [(0, vec![1, 2]), (1, vec![0, 2]), (2, vec![0, 1])]);
}

#[test]
fn a_mesh_of_one_has_no_rings() {
    let mut ports = Mesh::<u8>::new(1, 4).into_ports();
    ports[0].flush();
    assert_eq!(ports[0].drain(10, |_, _| ()), Drained { items: 0, more: false });
    assert!(!ports[0].has_work());
}

#[test]
#[should_panic(expected = "there is no ring to 0")]
fn a_port_does_not_send_to_itself() {
    let (mut port, _peer) = pair(1);
    port.send(0, ());
}

#[test]
fn order_is_kept_for_each_pair() {
    let mut ports = Mesh::new(3, 64).into_ports();
    for number in 0..60 {
        for port in &mut ports {
            for to in port.peers() {
                port.send(to, number);
            }
            if number % (port.me() + 2) == 0 {
                port.flush();
            }
        }
    }
    for port in &mut ports {
        assert!(port.flush());
    }
    for port in &mut ports {
        let items = drain_all(port);
        for peer in port.peers() {
            let numbers = items.iter().filter(|(from, _)| *from == peer).map(|(_, number)| *number);
            assert!(numbers.eq(0..60), "from {peer} to {}", port.me());
        }
    }
    assert_at_rest(&ports);
}

#[test]
fn nothing_travels_before_a_flush() {
    let (mut port, mut peer) = pair(2);
    port.send(1, 'a');
    assert!(!peer.has_work() && port.has_work());
    port.flush();
    assert!(peer.has_work() && !port.has_work());
    assert_eq!(drain_all(&mut peer), [(0, 'a')]);
}

#[test]
fn a_full_ring_keeps_order_and_loses_nothing() {
    let (mut port, mut peer) = pair(2);
    for number in 0..10 {
        port.send(1, number);
        assert_eq!(port.flush(), number < 2);
    }
    assert!(!port.has_work(), "no outbox can move while the ring is full");
    assert_eq!(drain_all(&mut peer), [(0, 0), (0, 1)]);
    assert!(port.has_work());
    port.flush();
    assert_eq!(drain_all(&mut peer), (2..10).map(|number| (0, number)).collect::<Vec<_>>());
    assert_at_rest(&[port, peer]);
}

#[test]
fn room_rings_the_producer_that_waits_and_nobody_else() {
    let (mut port, mut peer) = pair(1);
    let waker = WakesThread::current();
    let wakes = || waker.wakes.load(Ordering::Relaxed);
    port.send(1, 1);
    port.flush();
    assert!(port.doorbell().park(&Waker::from(Arc::clone(&waker)), || port.has_work()));
    drain_all(&mut peer);
    assert_eq!(wakes(), 0, "nobody waited for room");
    for number in 2..4 {
        port.send(1, number);
        port.flush();
    }
    drain_all(&mut peer);
    assert_eq!(wakes(), 1);
    port.flush();
    assert_eq!(drain_all(&mut peer), [(0, 3)]);
}

#[test]
fn a_drain_takes_whole_batches_up_to_its_limit() {
    let (mut port, mut peer) = pair(8);
    for number in 0..9 {
        port.send(1, number);
        if number % 3 == 2 {
            port.flush();
        }
    }
    assert_eq!(peer.drain(0, |_, _| ()), Drained { items: 0, more: true });
    assert_eq!(peer.drain(4, |_, _| ()), Drained { items: 6, more: true });
    assert_eq!(peer.drain(3, |_, _| ()), Drained { items: 3, more: false });
}

#[test]
fn two_senders_get_their_turns() {
    let mut ports = Mesh::new(3, 100).into_ports();
    for from in [1, 2] {
        for _ in 0..100 {
            ports[from].send(0, ());
            ports[from].flush();
        }
    }
    let mut got = [0_u32; 3];
    while ports[0].drain(7, |from, ()| got[from] += 1).more {
        assert!(got[1].abs_diff(got[2]) <= 1, "{got:?}");
    }
    assert_eq!(got, [0, 100, 100]);
}

#[test]
fn a_peer_that_ended_is_no_error() {
    let (mut port, peer) = pair(1);
    drop(peer);
    for _ in 0..3 {
        port.send(1, ());
        port.flush();
    }
    assert!(!port.has_work());
    port.check();
}

#[test]
fn a_park_is_answered_by_one_wake() {
    let bell = Doorbell::new();
    let waker = WakesThread::current();
    assert!(!bell.ring(), "nobody sleeps");
    assert!(bell.park(&Waker::from(Arc::clone(&waker)), || false));
    assert!(bell.ring() && !bell.ring());
    assert!(!bell.park(&Waker::from(Arc::clone(&waker)), || true));
    assert!(!bell.ring(), "work came, so it did not park");
    assert!(bell.park(&Waker::from(Arc::clone(&waker)), || false));
    bell.unpark();
    assert!(!bell.ring(), "it woke by itself");
    assert_eq!(waker.wakes.load(Ordering::Relaxed), 1);
}

#[test]
fn a_port_that_ended_is_not_woken() {
    let (port, _peer) = pair::<()>(1);
    let (bell, waker) = (Arc::clone(port.doorbell()), WakesThread::current());
    assert!(bell.park(&Waker::from(Arc::clone(&waker)), || false));
    drop(port);
    assert!(!bell.ring());
    assert_eq!(Arc::strong_count(&waker), 1, "the doorbell let go of it");
}

/// Nobody sleeps as long as this here, on however slow a machine, unless a wake-up was lost.
const FOREVER: Duration = Duration::from_secs(60);

/// Runs a pump on this thread until `turn` says that it is done and all is flushed; sleeps whenever there is nothing.
fn pump(mut port: Port<u64>, mut turn: impl FnMut(&mut Port<u64>) -> bool) -> Port<u64> {
    let waker = WakesThread::current();
    let bell = Arc::clone(port.doorbell());
    let mut parks = 0;
    loop {
        let done = turn(&mut port);
        let flushed = port.flush();
        if done && flushed {
            break;
        }
        if bell.park(&Waker::from(Arc::clone(&waker)), || port.has_work()) {
            let parked = Instant::now();
            parks += 1;
            thread::park_timeout(FOREVER);
            assert!(parked.elapsed() < FOREVER, "a lost wake-up");
            bell.unpark();
        }
    }
    assert!(waker.wakes.load(Ordering::Relaxed) <= parks, "more wakes than parks");
    port
}

fn ping_pong(items: u64, outstanding: u64, ring_slots: usize) {
    let (client, server) = pair(ring_slots);
    let server = thread::spawn(move || {
        let (mut echoed, mut inbox) = (0, Vec::new());
        pump(server, |port| {
            port.drain(256, |_, item| inbox.push(item));
            for item in inbox.drain(..) {
                assert_eq!(item, echoed, "in order, none lost, none twice");
                echoed += 1;
                port.send(0, item);
            }
            echoed == items
        })
    });
    let (mut sent, mut received) = (0, 0);
    let client = pump(client, |port| {
        port.drain(256, |_, item| {
            assert_eq!(item, received, "in order, none lost, none twice");
            received += 1;
        });
        while sent < items && sent - received < outstanding {
            port.send(1, sent);
            sent += 1;
        }
        received == items
    });
    assert_at_rest(&[client, server.join().expect("the server ends")]);
}

#[test]
fn ping_pong_of_two_threads_through_full_rings() {
    ping_pong(200_000, 64, 1);
}

#[test]
fn ping_pong_of_two_threads_that_mostly_sleep() {
    ping_pong(20_000, 1, 4);
}
