use futures_channel::oneshot;
use smallvec::smallvec;

use crate::frontend::Failure;
use crate::frontend::hub::Frontend;
use crate::frontend::publishing::Waiter;
use crate::model::Message;

/// Publishes one message; answered when every shard that it concerns has it in its queues. Returns
/// how many subscriptions took it.
pub async fn publish(frontend: &Frontend, message: Message) -> Result<u32, Failure> {
    frontend.admit()?;
    frontend.credits.take(message.cost()).await;
    let (done, published) = oneshot::channel();
    frontend.start_publish(frontend.way(), smallvec![message], Waiter::Call(done));
    let published = published.await.map_err(|_| Failure::Internal)?;
    published.map_err(|refusal| Failure::Publish(*refusal))
}
