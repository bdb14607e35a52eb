//! What the streams of a load test do: publish, work, listen.

mod completion;
mod publisher;
mod publishing;
mod session;
mod worker;

pub use completion::Completion;
pub use publisher::{Pace, Publisher};
pub use publishing::Publishing;
pub use session::{Arrival, Session};
pub use worker::{Acking, Worker};
