use crate::core::{Action, Answer, Input, SettleCall, SettleTarget, Settlement};
use crate::frontend::Failure;
use crate::frontend::hub::Frontend;
use crate::model::SubscriptionId;

/// Acks, nacks or extends deliveries from whatever connection. Returns how many.
pub async fn settle(
    frontend: &Frontend,
    id: SubscriptionId,
    target: SettleTarget,
    action: Action,
) -> Result<u32, Failure> {
    let settlement = match ask(frontend, &id, &target, action).await? {
        // The subscription may have come anew on another shard since this frontend saw it.
        Settlement::UnknownSubscription if frontend.forget_shard_of(&id) => {
            ask(frontend, &id, &target, action).await?
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

async fn ask(
    frontend: &Frontend,
    id: &SubscriptionId,
    target: &SettleTarget,
    action: Action,
) -> Result<Settlement, Failure> {
    let Some(shard) = frontend.shard_of(id) else { return Ok(Settlement::UnknownSubscription) };
    let (subscription_id, target) = (id.clone(), target.clone());
    let question =
        |ticket| Input::SettleCall(Box::new(SettleCall { ticket, subscription_id, target, action }));
    match frontend.ask(shard, question).await? {
        Answer::Settled(settlement) => Ok(settlement),
        _ => Err(Failure::Internal),
    }
}
