use std::rc::Rc;
use std::sync::Arc;

use crate::frontend::Failure;
use crate::frontend::hub::Frontend;
use crate::frontend::series::{Outcome, Series};
use crate::model::Message;

/// A message that went through.
pub struct Published {
    pub message: Arc<Message>,
    /// How many subscriptions took it.
    pub subscriptions: u32,
}

/// Publishes the messages of a batch in order, each for itself; answered when all are settled.
pub async fn publish_batch(
    frontend: &Frontend,
    messages: impl IntoIterator<Item = Result<Message, Failure>>,
) -> Result<Vec<Result<Published, Failure>>, Failure> {
    frontend.admit()?;
    let series = Rc::new(Series::default());
    let mut started = Vec::new();
    for message in messages {
        let message = match message {
            Ok(message) => Arc::new(message),
            Err(failure) => {
                frontend.fail_in(&series, failure);
                started.push(None);
                continue;
            }
        };
        frontend.credits.take(message.cost()).await;
        series.ready().await;
        frontend.start_in(&series, message.clone());
        started.push(Some(message));
    }
    series.settled().await;
    let outcomes = std::iter::from_fn(|| series.take_settled()).map(|(_, outcome)| outcome);
    let published = |(message, outcome): (Option<Arc<Message>>, Outcome)| {
        let subscriptions = outcome?;
        message.map(|message| Published { message, subscriptions }).ok_or(Failure::Internal)
    };
    Ok(started.into_iter().zip(outcomes).map(published).collect())
}
