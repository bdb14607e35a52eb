//! Executors: each is one pinned thread that may hold a shard of the subscriptions, a frontend, or both.
//!
//! | file | what it is |
//! | --- | --- |
//! | `layout` | how many executors, on which cores, with which roles; which shard a name belongs to |
//! | `clock` | the clock, and the time of a turn |
//! | `seat` | a shard, for whoever runs it: applies inputs to its core, routes effects |
//! | `node` | one executor: runs its own shard, and those of others that sleep |
//! | `pump` | drains rings, applies, flushes, sleeps until rung |
//! | `merger` | the thread that packs pattern indices anew |
//! | `shared` | what the executors of a process share: flags, gauges, the phase of its life |
//! | `directory` | which shard holds a subscription id |
//! | `runtime` | the only file beside `frontend/net` that knows the runtime |

mod clock;
mod directory;
mod layout;
mod merger;
mod node;
mod pump;
pub mod runtime;
mod seat;
mod shared;
#[cfg(test)]
mod tests;

pub use clock::Clock;
pub use directory::{Claim, Directory, IdTaken, Owner};
pub use layout::{Layout, LayoutError, Placement};
pub use merger::Merger;
pub use node::{Frame, Node, NodeConfig, Receiver};
pub use shared::{Phase, Shared};
