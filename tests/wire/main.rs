//! A hostile peer against the built binary: HTTP/2 and gRPC used as no client library uses them.
//!
//! Whatever the peer does, the process lives, others are served (the canary), and what the protocol
//! lets live lives on: the call's neighbours, or the connection's.

#[path = "../support/mod.rs"]
mod support;

mod canary;
mod grpc;
mod process;
mod raw;

mod alive;
mod churn;
mod flood;
mod frames;
mod goodbye;
mod headers;
mod last_words;
mod leaving;
mod malformed;
mod publishing;
mod stalled;
mod strangers;
mod streams;
