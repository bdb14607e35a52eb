//! SPEC by promise: a file a promise, against the built binary over real sockets.

#[path = "../support/mod.rs"]
mod support;

mod wire;
mod workers;

mod ack;
mod ack_in_stream;
mod balanced;
mod commands;
mod deadlines;
mod disconnect;
mod drain;
mod first_frame;
mod health;
mod lagged;
mod leaving;
mod linger;
mod listen;
mod malformed;
mod membership;
mod message;
mod multi;
mod options;
mod order;
mod panics;
mod pattern_errors;
mod patterns;
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
mod unserved;
