//! tinybroker: work queues, leader election and fan-out over gRPC, single node, in memory.
//!
//! Layers, lowest first: `limits`, `memory`, `model`, `pattern`, `core`, `ring`, `shard`, `frontend`; who may
//! import whom is checked by `tests/tidy.rs` and told in `docs/architecture.md`.

#![forbid(unsafe_code)]

pub mod admin;
pub mod cli;
pub mod config;
pub mod core;
pub mod frontend;
pub mod limits;
pub mod memory;
pub mod model;
pub mod pattern;
pub mod proto;
pub mod ring;
pub mod shard;
