//! The side of an executor that speaks to clients.
//!
//! | file | what it is |
//! | --- | --- |
//! | `net` | sockets: listen, accept, options, reading in turns; knows glommio |
//! | `connection` | one HTTP/2 connection with all its calls in one task |
//! | `call` | around each call: deadline, panic, what is no gRPC; `request` its body |
//! | `service` | the generated server's trait: tonic's types in and out, nothing else |
//! | `rpc/` | one file an rpc, on our own types |
//! | `session` | one Subscribe stream |
//! | `publishing` | one publish on its way through the shards; `series` those that keep their order |
//! | `confirms` | what a stream of publishes is told |
//! | `dead_letters`, `reissue` | what subscriptions give up, until it is published anew |
//! | `hub` | what a frontend keeps: sessions, answers waited for |
//! | `convert/` | between contract and model; `event` the hot half of it, encoded by hand |
//! | `failure`, `status` | why a call fails; what that is on the wire |

mod call;
mod confirms;
mod connection;
pub mod convert;
mod counters;
mod credits;
mod dead_letters;
mod event;
mod failure;
mod hub;
pub mod net;
mod publishing;
mod reissue;
mod request;
mod rpc;
mod series;
pub mod service;
mod session;
mod status;
mod table;
mod waker;

pub use call::Services;
pub use connection::{MakeServices, serve_with};
pub use counters::{FrontendCounter, FrontendCounters};
pub use event::{EventCodec, ProtoCodec, RawCodec, WireEvent};
pub use failure::Failure;
pub use hub::Frontend;
pub use request::RequestBody;
