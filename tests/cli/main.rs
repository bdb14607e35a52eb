//! The client commands of the binary, run as a person or a script would.

#[path = "../support/mod.rs"]
mod support;

mod endings;
mod lines;
mod options;
mod publish;
mod subscribe;
