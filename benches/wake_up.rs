//! What it takes to wake a sleeper on another core by its doorbell: a plain thread, and an executor.
//!
//! Two players throw one ball to and fro and sleep while it is away.

mod common;

use std::future::poll_fn;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use core_affinity::CoreId;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use tinybroker::limits::RING_SLOTS;
use tinybroker::ring::{Mesh, Port};
use tinybroker::shard::runtime;

/// The executor that starts a game, and tells how long it took.
const UMPIRE: usize = 0;
const SERVER: usize = 1;
const RECEIVER: usize = 2;

type Group<'a> = BenchmarkGroup<'a, WallTime>;

enum Ball {
    /// From the umpire: throw the ball so many times and catch it again.
    Serve(u64),
    Throw,
    Return,
    /// To the umpire.
    Over(Duration),
}

fn send(port: &mut Port<Ball>, to: usize, ball: Ball) {
    port.send(to, ball);
    assert!(port.flush(), "a ring with one ball on its way has room");
}

/// Sleeps until a ball comes.
async fn catch(port: &mut Port<Ball>) -> Ball {
    let doorbell = port.doorbell().clone();
    poll_fn(|cx| {
        doorbell.unpark();
        loop {
            let mut caught = None;
            port.drain(1, |_, ball| caught = Some(ball));
            if let Some(ball) = caught {
                return Poll::Ready(ball);
            }
            if doorbell.park(cx.waker(), || port.has_work()) {
                return Poll::Pending;
            }
        }
    })
    .await
}

/// Plays either part for as long as the process lives.
async fn play(mut port: Port<Ball>) {
    let mut left = 0;
    let mut begun = Instant::now();
    loop {
        match catch(&mut port).await {
            Ball::Serve(throws) => {
                left = throws;
                begun = Instant::now();
                send(&mut port, RECEIVER, Ball::Throw);
            }
            Ball::Throw => send(&mut port, SERVER, Ball::Return),
            Ball::Return if left > 1 => {
                left -= 1;
                send(&mut port, RECEIVER, Ball::Throw);
            }
            Ball::Return => send(&mut port, UMPIRE, Ball::Over(begun.elapsed())),
            Ball::Over(_) => unreachable!("only the umpire is told"),
        }
    }
}

fn play_on_thread(core: CoreId, port: Port<Ball>) {
    thread::spawn(move || {
        core_affinity::set_for_current(core);
        pollster::block_on(play(port));
    });
}

/// As the pump of an executor that does not spin.
fn play_on_executor(core: CoreId, port: Port<Ball>) {
    let main = move || async move {
        runtime::spawn_pump(play(port));
        std::future::pending().await
    };
    runtime::start(core.id, core.id, main).expect("the executor starts");
}

/// Two players on a core each, and a game a measurement.
fn game(group: &mut Group<'_>, kind: &str, cores: [CoreId; 2], start: impl Fn(CoreId, Port<Ball>)) {
    let mut ports = Mesh::new(3, RING_SLOTS).into_ports().into_iter();
    let Some(mut umpire) = ports.next() else { panic!("three ports") };
    for (core, port) in cores.into_iter().zip(ports) {
        start(core, port);
    }
    group.bench_function(kind, |b| {
        b.iter_custom(|throws| {
            send(&mut umpire, SERVER, Ball::Serve(throws));
            match pollster::block_on(catch(&mut umpire)) {
                Ball::Over(elapsed) => elapsed,
                _ => unreachable!("the umpire does not play"),
            }
        });
    });
}

/// One element is one wake-up: a throw and its return are two.
fn wake_up(c: &mut Criterion) {
    let allowed = core_affinity::get_core_ids().unwrap_or_default();
    let &[server, receiver, ..] = &allowed[..] else {
        eprintln!("wake_up needs two cores: not measured");
        return;
    };
    let mut group = c.benchmark_group("wake_up/there_and_back");
    group.throughput(Throughput::Elements(2));
    game(&mut group, "thread", [server, receiver], play_on_thread);
    game(&mut group, "executor", [server, receiver], play_on_executor);
    group.finish();
}

criterion_group! {
    name = benches;
    config = common::criterion(WallTime);
    targets = wake_up
}
criterion_main!(benches);
