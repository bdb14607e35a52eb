//! Batches between executors: one ring for every ordered pair, one doorbell for every executor.
//!
//! ```text
//!   executor i                                              executor j
//!   Port ── outbox[j] ──flush──▶ ══ ring i→j ══ ──drain──▶ Port
//!             ring the bell of j ───────────────▶ wakes the pump of j, if it sleeps
//!        wakes the pump of i ◀─────────────────── ring the bell of i, if i waits for room
//! ```
//!
//! | what | who holds it |
//! | --- | --- |
//! | [`Port`] | the executor it was made for; it moves there once and never again |
//! | producer end of ring i→j, and its outbox | the port of i |
//! | consumer end of ring i→j | the port of j |
//! | [`Outlet`] and [`Inlet`]: ends of rings that have another purpose, such as from shards to frontends | whoever sends, and one executor |
//! | [`Doorbell`] of j, to park on | the pump of j |
//! | [`Doorbell`] of j, to ring | the port of every other executor, and the control thread |
//!
//! The pump is the one task of an executor that sleeps on its doorbell:
//!
//! ```text
//! loop {
//!     bell.unpark();
//!     drained = port.drain(BATCH, apply); … ; port.flush();
//!     if drained.more { yield and go on }
//!     else if bell.park(waker, || port.has_work()) { sleep until polled again }
//! }
//! ```
//!
//! Nothing here blocks. A full ring leaves the outbox where it is, so two full rings that face each
//! other are drained by their pumps; what an outbox may hold is for its users to bound.
//! The runtime is unknown here: all that is asked of it is a [`std::task::Waker`].

mod doorbell;
mod ends;
mod mesh;
mod spare;
mod spsc;
mod sync;

#[cfg(all(test, loom))]
mod loom;
#[cfg(all(test, not(loom)))]
mod tests;

pub use doorbell::Doorbell;
pub use ends::{Inlet, Outlet, rings};
pub use mesh::{Drained, Mesh, Port};
pub use spare::Spare;
pub use spsc::RingCounts;
