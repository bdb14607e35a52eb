//! SPEC by promise: a file a promise, against the built binary over real sockets.

#[path = "../support/mod.rs"]
mod support;

mod balanced;
