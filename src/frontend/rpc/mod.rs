//! One file an rpc. Handlers know decoded calls and [`super::Failure`]s, not the transport.

pub mod ack;
pub mod publish;
pub mod subscribe;
