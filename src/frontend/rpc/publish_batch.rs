use std::future::poll_fn;
use std::rc::Rc;

use crate::frontend::Failure;
use crate::frontend::hub::Frontend;
use crate::frontend::series::Series;
use crate::frontend::unstarted::Unstarted;
use crate::model::{Message, MessageNumber};

/// A message that went through.
pub struct Published {
    pub number: MessageNumber,
    /// How many subscriptions took it.
    pub subscriptions: u32,
}

/// Publishes the messages of a batch in order, each for itself; answered when all are settled.
pub async fn publish_batch(
    frontend: &Frontend,
    messages: impl ExactSizeIterator<Item = Result<Message, Failure>>,
) -> Result<Vec<Result<Published, Failure>>, Failure> {
    frontend.admit()?;
    let series = Rc::new(Series::default());
    let (mut unstarted, mut numbers) = (Unstarted::default(), Vec::with_capacity(messages.len()));
    for message in messages {
        match message {
            Ok(message) => {
                numbers.push(Some(message.number()));
                unstarted.push(message);
                if unstarted.is_full() {
                    start(frontend, &series, &mut unstarted).await;
                }
            }
            Err(failure) => {
                numbers.push(None);
                start(frontend, &series, &mut unstarted).await;
                frontend.fail_in(&series, failure);
            }
        }
    }
    start(frontend, &series, &mut unstarted).await;
    series.settled().await;
    let outcomes = std::iter::from_fn(|| series.take_settled()).map(|(_, outcome)| outcome);
    let mut published = Vec::with_capacity(numbers.len());
    published.extend(numbers.into_iter().zip(outcomes).map(|(number, outcome)| {
        let subscriptions = outcome?;
        number.map(|number| Published { number, subscriptions }).ok_or(Failure::Internal)
    }));
    Ok(published)
}

async fn start(frontend: &Frontend, series: &Rc<Series>, unstarted: &mut Unstarted) {
    poll_fn(|cx| {
        series.remember(cx);
        unstarted.poll_start(frontend, series, cx)
    })
    .await;
}
