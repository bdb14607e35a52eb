use std::rc::Rc;
use std::sync::Arc;

use futures_util::StreamExt;

use super::Call;
use crate::frontend::convert::SettleRequest;
use crate::frontend::grpc::{Ending, decode, frame, guarded};
use crate::frontend::hub::Frontend;
use crate::frontend::{Failure, FrontendCounter, convert, rpc};
use crate::model::Message;
use crate::proto::{
    AckRequest, AckResponse, ExtendRequest, ExtendResponse, NackRequest, NackResponse, PublishBatchRequest,
    PublishBatchResponse, PublishRequest, PublishResponse,
};

pub async fn publish(call: Call) {
    answer(call, async |frontend: Rc<Frontend>, request: PublishRequest| {
        let published = try_publish(&frontend, request).await;
        if published.is_err() {
            frontend.counters.count(FrontendCounter::PublishFailed);
        }
        published
    })
    .await;
}

async fn try_publish(frontend: &Frontend, request: PublishRequest) -> Result<PublishResponse, Failure> {
    let message = Arc::new(message(frontend, request)?);
    let subscriptions = rpc::publish::publish(frontend, message.clone()).await?;
    Ok(convert::publish_response(&message, subscriptions))
}

pub async fn publish_batch(call: Call) {
    answer(call, async |frontend: Rc<Frontend>, request: PublishBatchRequest| {
        let messages = request.messages.into_iter().map(|request| message(&frontend, request));
        let published = rpc::publish_batch::publish_batch(&frontend, messages).await?;
        Ok::<PublishBatchResponse, _>(convert::batch_response(published))
    })
    .await;
}

pub async fn ack(call: Call) {
    answer(call, async |frontend: Rc<Frontend>, request: AckRequest| {
        Ok(AckResponse { settled: settle(&frontend, convert::ack(request)?).await? })
    })
    .await;
}

pub async fn nack(call: Call) {
    answer(call, async |frontend: Rc<Frontend>, request: NackRequest| {
        Ok(NackResponse { settled: settle(&frontend, convert::nack(request)?).await? })
    })
    .await;
}

pub async fn extend(call: Call) {
    answer(call, async |frontend: Rc<Frontend>, request: ExtendRequest| {
        Ok(ExtendResponse { settled: settle(&frontend, convert::extend(request)?).await? })
    })
    .await;
}

async fn settle(frontend: &Frontend, (id, target, action): SettleRequest) -> Result<u32, Failure> {
    rpc::settle::settle(frontend, id, target, action).await
}

/// A message that the broker has room for, as it will go out.
pub fn message(frontend: &Frontend, request: PublishRequest) -> Result<Message, Failure> {
    frontend.admit_message()?;
    let mut message = convert::message(request, frontend.next_number(), &frontend.bounds)?;
    frontend.node.shared.memory.hold(&mut message);
    Ok(message)
}

/// Answers a call of one message with one.
async fn answer<Q, A>(call: Call, handler: impl AsyncFnOnce(Rc<Frontend>, Q) -> Result<A, Failure>)
where
    Q: prost::Message + Default,
    A: prost::Message,
{
    let Call { frontend, mut messages, mut reply, mut deadline } = call;
    let work = async move {
        let mut request = None;
        // What comes after the first is read, since it would be charged to the connection.
        while let Some(message) = messages.next().await {
            let message = decode(message?)?;
            request.get_or_insert(message);
        }
        let reason = "the request has no message";
        let request = request.ok_or(Failure::Framing { reason })?;
        Ok(frame(&handler(frontend, request).await?))
    };
    match guarded(&mut reply, &mut deadline, work).await {
        Ok(message) => reply.answer(message),
        Err(Ending::Failed(failure)) => reply.fail(failure),
        Err(Ending::Gone) => {}
    }
}
