//! The side of an executor that speaks to clients.
//!
//! | file | what it is |
//! | --- | --- |
//! | `net` | sockets: listen, accept, options, reading in turns; knows tokio |
//! | `connection` | one HTTP/2 connection with all its calls in one task; `tasks` what runs within it |
//! | `keepalive` | signs of life, asked for |
//! | `grpc/` | requests and responses of gRPC, by hand over HTTP/2 |
//! | `calls/` | which call is meant, and how each lives on HTTP/2 |
//! | `rpc/` | one file an rpc, on our own types |
//! | `session` | one Subscribe stream |
//! | `publishing` | a run of messages on its way through the shards; `series` those that keep their order |
//! | `unstarted` | the messages of a series that are to start next, together where they may |
//! | `confirms` | what a stream of publishes is told |
//! | `dead_letters`, `reissue` | what subscriptions give up, until it is published anew |
//! | `hub` | what a frontend keeps: sessions, answers waited for |
//! | `convert/` | between contract and model; `event` the hot half of it, encoded by hand |
//! | `failure`, `status` | why a call fails; what that is on the wire |

mod calls;
mod confirms;
mod connection;
pub mod convert;
mod counters;
mod credits;
mod dead_letters;
mod event;
mod failure;
mod grpc;
mod hub;
mod keepalive;
pub mod net;
mod publishing;
mod reissue;
mod rpc;
mod series;
mod session;
mod status;
mod table;
mod tasks;
mod unstarted;
mod waker;

pub use calls::Services;
pub use connection::{MakeServices, serve_with};
pub use counters::{FrontendCounter, FrontendCounters};
pub use event::WireEvent;
pub use failure::Failure;
pub use grpc::RequestBody;
pub use hub::Frontend;
