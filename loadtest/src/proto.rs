//! The wire contract's messages as generated from `proto/`.

#![allow(missing_docs, dead_code, clippy::all, reason = "generated, and used in part")]

include!(concat!(env!("OUT_DIR"), "/tinybroker.v1.rs"));
