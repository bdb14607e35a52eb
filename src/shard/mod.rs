//! Executors: each is one pinned thread that may hold a shard of the subscriptions, a frontend, or both.
//!
//! | file | what it is |
//! | --- | --- |
//! | `layout` | how many executors, on which cores, with which roles; which shard a name belongs to |
//! | `clock` | the clock, and the time of a turn |
//! | `node` | one executor: applies inputs to its core, routes effects |
//! | `pump` | drains rings, applies, flushes, sleeps until rung |
//! | `shared` | what the executors of a process share: flags, gauges, the phase of its life |
//! | `directory` | which shard holds a subscription id |
//! | `runtime` | the only file beside `frontend/net` that knows the runtime |

mod clock;
mod directory;
mod layout;
mod node;
mod pump;
pub mod runtime;
mod shared;

pub use clock::Clock;
pub use directory::{Claim, Directory, IdTaken, Owner};
pub use layout::{Layout, LayoutError, Placement};
pub use node::{Frame, Node, NodeConfig, Receiver};
pub use shared::{Phase, Shared};
