use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;

use super::Call;
use crate::frontend::convert::SettleRequest;
use crate::frontend::grpc::{Ending, decode, frame, guarded, put_framed};
use crate::frontend::hub::Frontend;
use crate::frontend::{Failure, FrontendCounter, convert, rpc};
use crate::model::Message;
use crate::proto::{
    AckRequest, AckResponse, ExtendRequest, ExtendResponse, NackRequest, NackResponse, PublishResponse,
};

pub async fn publish(call: Call) {
    answer(call, async |frontend: Rc<Frontend>, request: Bytes| {
        let published = try_publish(&frontend, &request).await;
        if published.is_err() {
            frontend.counters.count(FrontendCounter::PublishFailed);
        }
        Ok(frame(&published?))
    })
    .await;
}

async fn try_publish(frontend: &Frontend, request: &[u8]) -> Result<PublishResponse, Failure> {
    let publish = convert::Publish::read(request)?;
    let message = message(frontend, publish)?;
    let number = message.number();
    let subscriptions = rpc::publish::publish(frontend, message).await?;
    Ok(publish.response(number, subscriptions))
}

pub async fn publish_batch(call: Call) {
    answer(call, async |frontend: Rc<Frontend>, request: Bytes| {
        let batch = convert::Publish::read_batch(&request)?;
        let messages = batch.iter().map(|&publish| message(&frontend, publish));
        let published = rpc::publish_batch::publish_batch(&frontend, messages).await?;
        let mut response = BytesMut::new();
        put_framed(&mut response, |out| convert::put_batch_response(&batch, published, out));
        Ok(response.freeze())
    })
    .await;
}

pub async fn ack(call: Call) {
    answer(call, async |frontend: Rc<Frontend>, request: Bytes| {
        let request: AckRequest = decode(request)?;
        Ok(frame(&AckResponse { settled: settle(&frontend, convert::ack(request)?).await? }))
    })
    .await;
}

pub async fn nack(call: Call) {
    answer(call, async |frontend: Rc<Frontend>, request: Bytes| {
        let request: NackRequest = decode(request)?;
        Ok(frame(&NackResponse { settled: settle(&frontend, convert::nack(request)?).await? }))
    })
    .await;
}

pub async fn extend(call: Call) {
    answer(call, async |frontend: Rc<Frontend>, request: Bytes| {
        let request: ExtendRequest = decode(request)?;
        Ok(frame(&ExtendResponse { settled: settle(&frontend, convert::extend(request)?).await? }))
    })
    .await;
}

async fn settle(frontend: &Frontend, (id, target, action): SettleRequest) -> Result<u32, Failure> {
    rpc::settle::settle(frontend, id, target, action).await
}

/// A message that the broker has room for, as it will go out.
pub fn message(frontend: &Frontend, publish: convert::Publish<'_>) -> Result<Message, Failure> {
    frontend.admit_message()?;
    let (number, published_at) = (frontend.next_number(), frontend.node.time.wall());
    let mut message = publish.into_message(number, &frontend.bounds, published_at)?;
    frontend.count_in(&mut message);
    Ok(message)
}

/// Answers a call of one message with one, framed.
async fn answer(call: Call, handler: impl AsyncFnOnce(Rc<Frontend>, Bytes) -> Result<Bytes, Failure>) {
    let Call { frontend, mut messages, mut reply, mut deadline } = call;
    let work = async move {
        let mut request = None;
        // What comes after the first is read, since it would be charged to the connection.
        while let Some(message) = messages.next().await {
            let message = message?;
            request.get_or_insert(message);
        }
        let reason = "the request has no message";
        let request = request.ok_or(Failure::Framing { reason })?;
        handler(frontend, request).await
    };
    match guarded(&mut reply, &mut deadline, work).await {
        Ok(message) => reply.answer(message),
        Err(Ending::Failed(failure)) => reply.fail(failure),
        Err(Ending::Gone) => {}
    }
}
