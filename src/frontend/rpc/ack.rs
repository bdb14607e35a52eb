use crate::core::{Answer, Input, Settle, SettleTarget, Settlement};
use crate::frontend::Failure;
use crate::frontend::hub::Frontend;
use crate::model::SubscriptionId;

/// Settles deliveries from whatever connection. Returns how many.
pub async fn ack(frontend: &Frontend, id: SubscriptionId, target: SettleTarget) -> Result<u32, Failure> {
    let settlement = match settle(frontend, &id, &target).await? {
        // The subscription may have come anew on another shard since this frontend saw it.
        Settlement::UnknownSubscription if frontend.forget_shard_of(&id) => {
            settle(frontend, &id, &target).await?
        }
        settlement => settlement,
    };
    match settlement {
        Settlement::Done { settled } => Ok(settled),
        Settlement::NotAsked => Ok(0),
        Settlement::NotInFlight => Err(Failure::NotInFlight),
        Settlement::UnknownSubscription => Err(Failure::NoSubscription),
    }
}

async fn settle(
    frontend: &Frontend,
    id: &SubscriptionId,
    target: &SettleTarget,
) -> Result<Settlement, Failure> {
    let Some(shard) = frontend.shard_of(id) else { return Ok(Settlement::UnknownSubscription) };
    let (subscription_id, target) = (id.clone(), target.clone());
    let question = |ticket| Input::Settle(Box::new(Settle { ticket, subscription_id, target }));
    match frontend.ask(shard, question).await? {
        Answer::Settled(settlement) => Ok(settlement),
        _ => Err(Failure::Internal),
    }
}
