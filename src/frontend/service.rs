//! The generated server's trait: tonic's types on one side, our calls on the other.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, Stream, StreamExt};
use send_wrapper::SendWrapper;
use tonic::{Request, Response, Status, Streaming};

use super::convert::SettleRequest;
use super::hub::Frontend;
use super::net::Turn;
use super::request::{Deadline, Spawn};
use super::{Failure, FrontendCounter, WireEvent, convert, rpc};
use crate::limits;
use crate::model::Message;
use crate::proto::{
    AckRequest, AckResponse, ExtendRequest, ExtendResponse, NackRequest, NackResponse, PublishBatchRequest,
    PublishBatchResponse, PublishConfirm, PublishResponse,
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
    turn: Rc<Turn>,
    subscriptions: Rc<Cell<usize>>,
}

impl BrokerService {
    pub fn new(frontend: Rc<Frontend>, spawn: Spawn, turn: Rc<Turn>) -> Self {
        let subscriptions = Rc::default();
        BrokerService(SendWrapper::new(Rc::new(Inner { frontend, spawn, turn, subscriptions })))
    }

    fn frontend(&self) -> SendWrapper<Rc<Frontend>> {
        SendWrapper::new(self.0.frontend.clone())
    }

    /// Runs the driver of a stream beside its response side.
    fn run(&self, driver: LocalBoxFuture<'static, ()>) {
        let counters = self.0.frontend.counters.clone();
        (self.0.spawn)(Box::pin(async move {
            if AssertUnwindSafe(driver).catch_unwind().await.is_err() {
                counters.count(FrontendCounter::Panics);
            }
        }));
    }

    async fn settle(&self, (id, target, action): SettleRequest) -> Result<u32, Status> {
        let frontend = self.frontend();
        let call = async move { rpc::settle::settle(&frontend, id, target, action).await };
        Ok(SendWrapper::new(call).await?)
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

/// A message that the broker has room for, as it will go out.
fn message(frontend: &Frontend, publish: convert::Publish<'_>) -> Result<Message, Failure> {
    frontend.admit_message()?;
    let (number, published_at) = (frontend.next_number(), frontend.node.time.wall());
    let mut message = publish.into_message(number, &frontend.bounds, published_at)?;
    frontend.count_in(&mut message);
    Ok(message)
}

fn deadline<T>(request: &Request<T>) -> Option<Instant> {
    request.extensions().get::<Deadline>().map(|deadline| deadline.0)
}

type ConfirmStream = Pin<Box<dyn Stream<Item = Result<PublishConfirm, Status>> + Send>>;
type EventStream = Pin<Box<dyn Stream<Item = Result<WireEvent, Status>> + Send>>;

#[tonic::async_trait]
impl generated::broker_server::Broker for BrokerService {
    type SubscribeStream = EventStream;
    type PublishStreamStream = ConfirmStream;

    async fn publish(&self, request: Request<Bytes>) -> Result<Response<PublishResponse>, Status> {
        let frontend = self.frontend();
        let call = async move {
            let request = request.into_inner();
            let message = Arc::new(message(&frontend, convert::Publish::read(&request)?)?);
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
        let settled = self.settle(convert::ack(request.into_inner())?).await?;
        Ok(Response::new(AckResponse { settled }))
    }

    async fn nack(&self, request: Request<NackRequest>) -> Result<Response<NackResponse>, Status> {
        let settled = self.settle(convert::nack(request.into_inner())?).await?;
        Ok(Response::new(NackResponse { settled }))
    }

    async fn extend(&self, request: Request<ExtendRequest>) -> Result<Response<ExtendResponse>, Status> {
        let settled = self.settle(convert::extend(request.into_inner())?).await?;
        Ok(Response::new(ExtendResponse { settled }))
    }

    async fn publish_batch(
        &self,
        request: Request<PublishBatchRequest>,
    ) -> Result<Response<PublishBatchResponse>, Status> {
        let frontend = self.frontend();
        let call = async move {
            let requests = request.into_inner().messages.into_iter();
            let messages = requests.map(|request| message(&frontend, convert::Publish::from(&request)));
            rpc::publish_batch::publish_batch(&frontend, messages).await
        };
        let published: Result<_, Failure> = SendWrapper::new(call).await;
        Ok(Response::new(convert::batch_response(published?)))
    }

    async fn publish_stream(
        &self,
        request: Request<Streaming<Bytes>>,
    ) -> Result<Response<ConfirmStream>, Status> {
        let frontend = self.0.frontend.clone();
        let deadline = deadline(&request);
        let reader = frontend.clone();
        let requests =
            request.into_inner().map(move |request| Ok(message(&reader, convert::Publish::read(&request?)?)));
        let (confirms, driver) =
            rpc::publish_stream::publish_stream(&frontend, self.0.turn.clone(), deadline, requests)?;
        self.run(driver);
        let confirms = confirms.map(|confirm| Ok(convert::confirm(confirm?)));
        Ok(Response::new(Box::pin(SendWrapper::new(confirms))))
    }

    async fn subscribe(&self, request: Request<Streaming<Bytes>>) -> Result<Response<EventStream>, Status> {
        let inner = &self.0;
        let seat = Seat::take(&inner.subscriptions)?;
        let deadline = deadline(&request);
        let bounds = inner.frontend.bounds.clone();
        let commands = request.into_inner().map(move |command| convert::read_command(&command?, &bounds));
        let (events, driver) = rpc::subscribe::subscribe(&inner.frontend, commands, deadline, seat)?;
        self.run(driver);
        Ok(Response::new(Box::pin(SendWrapper::new(events.map(|event| event.map_err(Status::from))))))
    }
}
