//! The generated server's trait: tonic's types on one side, our calls on the other.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::{FutureExt, Stream, StreamExt, stream};
use send_wrapper::SendWrapper;
use tonic::{Request, Response, Status, Streaming};

use super::hub::Frontend;
use super::request::Spawn;
use super::{Failure, FrontendCounter, WireEvent, convert, rpc};
use crate::limits;
use crate::proto::{
    AckRequest, AckResponse, ExtendRequest, ExtendResponse, NackRequest, NackResponse, PublishBatchRequest,
    PublishBatchResponse, PublishConfirm, PublishRequest, PublishResponse, SubscribeCommand,
};

/// The server that build.rs describes.
pub mod generated {
    #![allow(clippy::all)]

    include!(concat!(env!("OUT_DIR"), "/tinybroker.v1.Broker.rs"));
}

/// The Broker service on one connection. Tonic wants it Send; it never leaves its executor.
#[derive(Clone)]
pub struct BrokerService(SendWrapper<Rc<Inner>>);

struct Inner {
    frontend: Rc<Frontend>,
    spawn: Spawn,
    subscriptions: Rc<Cell<usize>>,
}

impl BrokerService {
    pub fn new(frontend: Rc<Frontend>, spawn: Spawn) -> Self {
        let subscriptions = Rc::default();
        BrokerService(SendWrapper::new(Rc::new(Inner { frontend, spawn, subscriptions })))
    }

    fn frontend(&self) -> SendWrapper<Rc<Frontend>> {
        SendWrapper::new(self.0.frontend.clone())
    }
}

/// One Subscribe stream's place under the limit of its connection.
struct Seat(Rc<Cell<usize>>);

impl Seat {
    fn take(taken: &Rc<Cell<usize>>) -> Result<Seat, Failure> {
        let limit = limits::SUBSCRIPTIONS_PER_CONNECTION;
        if taken.get() >= limit {
            return Err(Failure::TooManySubscriptions { limit });
        }
        taken.set(taken.get() + 1);
        Ok(Seat(taken.clone()))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

type EventStream = Pin<Box<dyn Stream<Item = Result<WireEvent, Status>> + Send>>;

fn not_served<T>(what: &'static str) -> Result<Response<T>, Status> {
    Err(Failure::NotServed { what }.into())
}

#[tonic::async_trait]
impl generated::broker_server::Broker for BrokerService {
    type SubscribeStream = EventStream;
    type PublishStreamStream = stream::Empty<Result<PublishConfirm, Status>>;

    async fn publish(&self, request: Request<PublishRequest>) -> Result<Response<PublishResponse>, Status> {
        let frontend = self.frontend();
        let call = async move {
            let message = convert::message(request.into_inner(), frontend.next_number(), &frontend.bounds)?;
            let message = Arc::new(message);
            let subscriptions = rpc::publish::publish(&frontend, message.clone()).await?;
            Ok(convert::publish_response(&message, subscriptions))
        };
        let published: Result<_, Failure> = SendWrapper::new(call).await;
        if published.is_err() {
            self.0.frontend.counters.count(FrontendCounter::PublishFailed);
        }
        Ok(Response::new(published?))
    }

    async fn ack(&self, request: Request<AckRequest>) -> Result<Response<AckResponse>, Status> {
        let (id, target) = convert::ack(request.into_inner())?;
        let frontend = self.frontend();
        let call = async move { rpc::ack::ack(&frontend, id, target).await };
        Ok(Response::new(AckResponse { settled: SendWrapper::new(call).await? }))
    }

    async fn subscribe(
        &self,
        request: Request<Streaming<SubscribeCommand>>,
    ) -> Result<Response<EventStream>, Status> {
        let inner = &self.0;
        let seat = Seat::take(&inner.subscriptions)?;
        let bounds = inner.frontend.bounds.clone();
        let commands = request.into_inner().map(move |command| convert::command(command?, &bounds));
        let (events, driver) = rpc::subscribe::subscribe(&inner.frontend, commands, seat)?;
        let counters = inner.frontend.counters.clone();
        (inner.spawn)(Box::pin(async move {
            if AssertUnwindSafe(driver).catch_unwind().await.is_err() {
                counters.count(FrontendCounter::Panics);
            }
        }));
        Ok(Response::new(Box::pin(SendWrapper::new(events.map(|event| event.map_err(Status::from))))))
    }

    async fn publish_stream(
        &self,
        _: Request<Streaming<PublishRequest>>,
    ) -> Result<Response<Self::PublishStreamStream>, Status> {
        not_served("PublishStream")
    }

    async fn publish_batch(
        &self,
        _: Request<PublishBatchRequest>,
    ) -> Result<Response<PublishBatchResponse>, Status> {
        not_served("PublishBatch")
    }

    async fn nack(&self, _: Request<NackRequest>) -> Result<Response<NackResponse>, Status> {
        not_served("Nack")
    }

    async fn extend(&self, _: Request<ExtendRequest>) -> Result<Response<ExtendResponse>, Status> {
        not_served("Extend")
    }
}
