use std::sync::Arc;

use crate::frontend::Failure;
use crate::frontend::hub::Frontend;
use crate::model::Message;

/// Publishes one message; answered when every shard that it concerns has it in its queues. Returns
/// how many subscriptions took it.
pub async fn publish(frontend: &Frontend, message: Arc<Message>) -> Result<u32, Failure> {
    frontend.admit()?;
    frontend.publish(message).await
}
