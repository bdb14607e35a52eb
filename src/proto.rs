//! The wire contract as generated from `proto/`: messages and clients, and the server of the admin service.

#![allow(missing_docs, clippy::all)]

tonic::include_proto!("tinybroker.v1");

/// All files of the contract, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
