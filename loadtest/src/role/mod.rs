//! What the streams of a load test do: publish, work, listen.

mod completion;
mod publisher;
mod publishing;
mod session;
mod single;
mod sleeper;
mod source;
mod visitor;
mod worker;

pub use completion::Completion;
pub use publisher::Publisher;
pub use publishing::Publishing;
pub use session::{Arrival, Session};
pub use single::publish_one;
pub use sleeper::Sleeper;
pub use source::Pace;
pub use visitor::Visitor;
pub use worker::{Acking, Desk, Worker};
