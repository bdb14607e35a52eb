//! gRPC over HTTP/2: what is the same for every call.
//!
//! | file | what it is |
//! | --- | --- |
//! | `head` | what a request must say before its body |
//! | `body` | the bytes of a request; `messages` what is framed in them |
//! | `reply` | head, messages and trailers of a response |
//! | `guard` | deadline, reset and panic of a call that waits |
//! | `bridge` | calls to the generated services of tonic |

mod body;
mod bridge;
mod deadline;
mod guard;
mod head;
mod messages;
mod reply;

pub use body::RequestBody;
pub use bridge::answer as bridge;
pub use deadline::Deadline;
pub use guard::{Ending, guarded};
pub use head::{Refusal, check, check_encoding};
pub use messages::{Messages, decode, frame, put_framed};
pub use reply::Reply;

/// Bytes before each message: a flag and its length.
const PREFIX: usize = 5;
