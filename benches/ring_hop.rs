//! What a batch needs from one executor to another and back, while both are awake.

mod common;

use std::hint::{black_box, spin_loop};
use std::thread;
use std::time::{Duration, Instant};

use core_affinity::CoreId;
use criterion::measurement::WallTime;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tinybroker::core::Input;
use tinybroker::limits::{PUMP_TURN_ITEMS, RING_SLOTS};
use tinybroker::model::MemberId;
use tinybroker::ring::{Mesh, Port};

/// What crosses the rings: an input of the size that they really carry.
fn input(number: usize) -> Input {
    Input::Leave { member: MemberId { frontend: 0, number: number as u64 } }
}

/// Until a batch has come.
fn receive(port: &mut Port<Input>, inputs: &mut Vec<Input>) {
    inputs.clear();
    while inputs.is_empty() {
        port.drain(PUMP_TURN_ITEMS, |_, input| inputs.push(input));
        spin_loop();
    }
}

fn send(port: &mut Port<Input>, to: usize, inputs: impl IntoIterator<Item = Input>) {
    for input in inputs {
        port.send(to, input);
    }
    assert!(port.flush(), "a ring with one batch on its way has room");
}

/// Sends so many batches and waits for the echo of each.
fn echo(batches: u64, size: usize, cores: [CoreId; 2]) -> Duration {
    let mut ports = Mesh::new(2, RING_SLOTS).into_ports().into_iter();
    let (Some(mut near), Some(mut far)) = (ports.next(), ports.next()) else { panic!("two ports") };
    thread::scope(|scope| {
        scope.spawn(move || {
            core_affinity::set_for_current(cores[1]);
            let mut inputs = Vec::new();
            // One more, which tells that this thread runs.
            for _ in 0..=batches {
                receive(&mut far, &mut inputs);
                send(&mut far, 0, inputs.drain(..));
            }
        });
        core_affinity::set_for_current(cores[0]);
        let mut inputs = Vec::new();
        send(&mut near, 1, [input(0)]);
        receive(&mut near, &mut inputs);
        let begun = Instant::now();
        for _ in 0..batches {
            send(&mut near, 1, (0..size).map(input));
            receive(&mut near, &mut inputs);
            black_box(&inputs);
        }
        begun.elapsed()
    })
}

/// One element is one item, there and back.
fn ring_hop(c: &mut Criterion) {
    let allowed = core_affinity::get_core_ids().unwrap_or_default();
    let &[near, far, ..] = &allowed[..] else {
        eprintln!("ring_hop needs two cores: not measured");
        return;
    };
    let mut group = c.benchmark_group("ring_hop/echo");
    for size in [1, 16, 64, 256] {
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(format!("batches_of_{size}"), |b| {
            b.iter_custom(|batches| echo(batches, size, [near, far]));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = common::criterion(WallTime);
    targets = ring_hop
}
criterion_main!(benches);
