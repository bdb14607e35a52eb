//! One file an rpc. Handlers know decoded calls and [`super::Failure`]s, not the transport.

pub mod publish;
pub mod publish_batch;
pub mod publish_stream;
pub mod settle;
pub mod subscribe;
