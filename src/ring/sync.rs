//! The primitives of the doorbell: std's, or loom's under `--cfg loom`, which then tries every
//! interleaving and every value that a weak memory model allows a load to return.

#[cfg(loom)]
pub(super) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering, fence},
};
#[cfg(not(loom))]
pub(super) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering, fence},
};
