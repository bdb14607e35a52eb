//! What protobuf and the rules of the contract cost: requests and commands in, events out.

mod common;
#[path = "common/cpu_time.rs"]
mod cpu_time;

use std::collections::HashMap;
use std::hint::black_box;
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use prost::Message as _;
use tinybroker::core::Delivery;
use tinybroker::frontend::WireEvent;
use tinybroker::frontend::convert::{self, Bounds, Publish};
use tinybroker::limits::{MAX_PENDING, MESSAGE_BYTES};
use tinybroker::model::MessageNumber;
use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::{Ack, PublishRequest, SubscribeCommand};

use cpu_time::CpuTime;

const PAYLOADS: [(&str, usize); 3] = [("100_B", 100), ("1_KiB", 1024), ("64_KiB", 64 * 1024)];
const BOUNDS: Bounds = Bounds { max_message_bytes: MESSAGE_BYTES, max_pending: MAX_PENDING };

fn number() -> MessageNumber {
    MessageNumber::from_u64(17_660_000_000_000_000 << 8)
}

fn request(payload_bytes: usize) -> PublishRequest {
    PublishRequest {
        topic: "tenant-17.order.placed".into(),
        payload: vec![b'x'; payload_bytes].into(),
        message_id: String::new(),
        headers: HashMap::from([("content-type".into(), "application/json".into())]),
    }
}

/// From the bytes of a request to the message that all receivers share.
fn decode_publish(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("frames/decode_publish");
    group.throughput(Throughput::Elements(1));
    for (name, payload_bytes) in PAYLOADS {
        let frame = Bytes::from(request(payload_bytes).encode_to_vec());
        group.bench_function(name, |b| {
            b.iter(|| {
                let publish = Publish::read(black_box(&frame)).expect("it is a request");
                publish.into_message(number(), &BOUNDS, SystemTime::UNIX_EPOCH).expect("it is valid")
            });
        });
    }
    group.finish();
}

/// From a delivery to the bytes of its event, into a buffer that has room.
fn encode_event(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("frames/encode_event");
    group.throughput(Throughput::Elements(1));
    for (name, payload_bytes) in PAYLOADS {
        let request = request(payload_bytes).encode_to_vec();
        let publish = Publish::read(&request).expect("it is a request");
        let message = publish.into_message(number(), &BOUNDS, SystemTime::UNIX_EPOCH).expect("it is valid");
        let event = WireEvent::Message(Delivery { message, delivery: 1, attempt: 1, epoch: 0 });
        let mut out = BytesMut::with_capacity(2 * payload_bytes + 1024);
        group.bench_function(name, |b| {
            b.iter(|| {
                out.clear();
                black_box(&event).encode(&mut out).expect("it is encoded");
                black_box(&out);
            });
        });
    }
    group.finish();
}

/// From the bytes of an ack in a stream to what the core is given.
fn decode_ack(c: &mut Criterion<CpuTime>) {
    let ack = Ack { system_id: number().to_string(), ..Ack::default() };
    let frame = Bytes::from(SubscribeCommand { command: Some(Command::Ack(ack)) }.encode_to_vec());
    let mut group = c.benchmark_group("frames/decode_ack");
    group.throughput(Throughput::Elements(1));
    group.bench_function("system_id", |b| {
        b.iter(|| convert::read_command(black_box(&frame), &BOUNDS).expect("it is valid"));
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = common::criterion(CpuTime);
    targets = decode_publish, encode_event, decode_ack
}
criterion_main!(benches);
