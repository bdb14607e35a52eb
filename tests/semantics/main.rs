//! SPEC by promise: a file a promise, against the built binary over real sockets.

#[path = "../support/mod.rs"]
mod support;

#[path = "../pattern_index/chance.rs"]
#[allow(dead_code, reason = "the pattern index's own tests use the rest")]
mod chance;
#[path = "../pattern_syntax/reference.rs"]
mod reference;

mod wire;
mod workers;

mod ack;
mod ack_in_stream;
mod ack_timeout;
mod all_or_nothing;
mod balanced;
mod batches;
mod commands;
mod contract;
mod dead_letters;
mod deadlines;
mod disconnect;
mod drain;
mod extend;
mod first_frame;
mod health;
mod lagged;
mod leaving;
mod linger;
mod listen;
mod malformed;
mod max_deliveries;
mod membership;
mod memory;
mod memory_limit;
mod message;
mod multi;
mod nack;
mod options;
mod order;
mod panics;
mod pattern_churn;
mod pattern_errors;
mod patterns;
mod publish_batch;
mod publish_stream;
mod reflection;
mod reject;
mod resign;
mod resources;
mod roles;
mod singleton;
mod size;
mod slow;
mod stats;
mod topics;
