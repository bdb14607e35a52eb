use std::sync::Arc;

use futures_channel::oneshot;

use crate::frontend::Failure;
use crate::frontend::hub::Frontend;
use crate::frontend::publishing::{Publishing, Waiter};
use crate::model::Message;

/// Publishes one message; answered when every shard that it concerns has it in its queues. Returns
/// how many subscriptions took it.
pub async fn publish(frontend: &Frontend, message: Arc<Message>) -> Result<u32, Failure> {
    frontend.admit()?;
    frontend.credits.take(message.cost()).await;
    let (done, taken) = oneshot::channel();
    frontend.start_publish(Publishing::new(&frontend.node.shared, message, Waiter::Call(done)));
    taken.await.map_err(|_| Failure::Internal)?
}
