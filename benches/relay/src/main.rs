//! The least that a server of the contract can be, on tokio and tonic: it answers publishes and relays each to every open
//! stream. Nothing is matched, queued or acked, nothing is remembered. What it costs is what a broker on them would
//! cost before it does anything.
//!
//! `relay HOST:PORT`, until it is stopped. `tinybroker-loadtest confirm` and `fanout` run against it.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{BufMut, Bytes};
use prost::Message as _;
use tokio::sync::mpsc::{Sender, channel};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Request, Response, Status, Streaming};

use proto::subscribe_event::Event;

mod proto {
    #![allow(dead_code, clippy::all)]
    tonic::include_proto!("tinybroker.v1");
}

mod generated {
    #![allow(clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/tinybroker.v1.Broker.rs"));
    include!(concat!(env!("OUT_DIR"), "/tinybroker.v1.Admin.rs"));
}

/// Events that a stream may be behind; then its publishers wait.
const BEHIND: usize = 4096;
/// Requests that one confirm speaks of at most, so that a publisher hears while it sends.
const CONFIRM_EACH: u64 = 64;

#[derive(Clone, Default)]
struct Relay {
    streams: Arc<Mutex<Vec<Sender<Result<Bytes, Status>>>>>,
    numbers: Arc<AtomicU64>,
}

impl Relay {
    /// Sends a message to all streams, encoded once. Returns its number, and how many they are.
    async fn relay(&self, request: proto::PublishRequest) -> (String, u32) {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let number = self.numbers.fetch_add(1, Relaxed).to_string();
        let message = proto::Message {
            system_id: number.clone(),
            message_id: request.message_id,
            topic: request.topic,
            payload: request.payload,
            headers: request.headers,
            delivery_attempt: 1,
            ..proto::Message::default()
        };
        let event = Bytes::from(event(Event::Message(message)).encode_to_vec());
        for stream in &streams {
            // A stream that has gone misses nothing.
            let _ = stream.send(Ok(event.clone())).await;
        }
        (number, streams.len() as u32)
    }
}

fn event(event: Event) -> proto::SubscribeEvent {
    proto::SubscribeEvent { event: Some(event) }
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl generated::broker_server::Broker for Relay {
    type PublishStreamStream = Answers<proto::PublishConfirm>;
    type SubscribeStream = ReceiverStream<Result<Bytes, Status>>;

    async fn publish(
        &self,
        request: Request<proto::PublishRequest>,
    ) -> Result<Response<proto::PublishResponse>, Status> {
        let (system_id, subscriptions) = self.relay(request.into_inner()).await;
        let message_id = system_id.clone();
        Ok(Response::new(proto::PublishResponse { system_id, message_id, subscriptions }))
    }

    async fn publish_stream(
        &self,
        request: Request<Streaming<proto::PublishRequest>>,
    ) -> Result<Response<Self::PublishStreamStream>, Status> {
        let (relay, mut requests) = (self.clone(), request.into_inner());
        let (confirms, told) = channel(16);
        tokio::spawn(async move {
            let (mut confirmed, mut told) = (0, 0);
            loop {
                // Confirms what was read together.
                let next = tokio::select! {
                    biased;
                    next = requests.next() => next,
                    () = std::future::ready(()), if told < confirmed => {
                        told = confirmed;
                        let confirm = proto::PublishConfirm { confirmed, ..Default::default() };
                        if confirms.send(Ok(confirm)).await.is_err() { return }
                        continue;
                    }
                };
                let Some(Ok(request)) = next else { return };
                relay.relay(request).await;
                confirmed += 1;
                if confirmed - told >= CONFIRM_EACH {
                    told = confirmed;
                    let confirm = proto::PublishConfirm { confirmed, ..Default::default() };
                    if confirms.send(Ok(confirm)).await.is_err() {
                        return;
                    }
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(told))))
    }

    async fn subscribe(
        &self,
        request: Request<Streaming<proto::SubscribeCommand>>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let (events, stream) = channel(BEHIND);
        let (relay, mut commands) = (self.clone(), request.into_inner());
        tokio::spawn(async move {
            if commands.next().await.is_none() {
                return;
            }
            let started = event(Event::SubscriptionId("relay".into())).encode_to_vec();
            if events.send(Ok(started.into())).await.is_ok() {
                relay.streams.lock().unwrap_or_else(PoisonError::into_inner).push(events.clone());
            }
            while commands.next().await.is_some_and(|command| command.is_ok()) {}
            let mut streams = relay.streams.lock().unwrap_or_else(PoisonError::into_inner);
            streams.retain(|other| !other.same_channel(&events));
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

/// The load test asks what it measures.
#[tonic::async_trait]
impl generated::admin_server::Admin for Relay {
    async fn get_server_info(
        &self,
        _: Request<proto::GetServerInfoRequest>,
    ) -> Result<Response<proto::GetServerInfoResponse>, Status> {
        Ok(Response::new(proto::GetServerInfoResponse::default()))
    }
}

/// Commands as they are; events encoded already.
#[derive(Default)]
struct EventCodec;

impl Codec for EventCodec {
    type Encode = Bytes;
    type Decode = proto::SubscribeCommand;
    type Encoder = Encoded;
    type Decoder = Commands;

    fn encoder(&mut self) -> Encoded {
        Encoded
    }

    fn decoder(&mut self) -> Commands {
        Commands
    }
}

struct Encoded;

impl Encoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, event: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put_slice(&event);
        Ok(())
    }
}

struct Commands;

impl Decoder for Commands {
    type Item = proto::SubscribeCommand;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        let command = proto::SubscribeCommand::decode(bytes);
        command.map(Some).map_err(|error| Status::invalid_argument(error.to_string()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:50052".into()).parse()?;
    let relay = Relay::default();
    tonic::transport::Server::builder()
        .tcp_nodelay(true)
        .initial_stream_window_size(1024 * 1024)
        .initial_connection_window_size(16 * 1024 * 1024)
        .max_concurrent_streams(20_000)
        .add_service(generated::broker_server::BrokerServer::new(relay.clone()))
        .add_service(generated::admin_server::AdminServer::new(relay))
        .serve(address)
        .await?;
    Ok(())
}
