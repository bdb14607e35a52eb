//! The wire contract's messages as generated from `proto/`.

#![allow(missing_docs, clippy::all)]

include!(concat!(env!("OUT_DIR"), "/tinybroker.v1.rs"));
