//! gRPC on HTTP/2, as much of it as a sound client needs.

use std::cell::RefCell;
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::server::{self, SendResponse};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use prost::Message;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::task::spawn_local;

use super::broker::{Broker, Opened, Outcome};
use super::fault::Fault;
use super::proto::subscribe_command::Command;
use super::proto::{
    AckRequest, AckResponse, GetServerInfoResponse, GetStatsResponse, PublishBatchRequest,
    PublishBatchResponse, PublishConfirm, PublishFailure, PublishRequest, PublishResponse, SubscribeCommand,
    SubscribeEvent,
};

/// A flag byte and a length before each message.
const HEADER: usize = 5;

/// Why a call ends otherwise than well.
enum End {
    /// By this status.
    Status(i32, &'static str),
    /// The client is gone.
    Gone,
}

const FULL: End = End::Status(8, "a subscription is full");
const NOT_FOUND: End = End::Status(5, "nothing was settled");
const UNIMPLEMENTED: End = End::Status(12, "not served");
const INVALID: End = End::Status(3, "that is no request");

impl From<h2::Error> for End {
    fn from(_: h2::Error) -> Self {
        End::Gone
    }
}

pub async fn serve(socket: TcpStream, broker: Rc<RefCell<Broker>>) {
    if broker.borrow().fault == Fault::Mute {
        pending::<()>().await;
    }
    let mut builder = server::Builder::new();
    builder.initial_window_size(4 << 20).initial_connection_window_size(64 << 20);
    let Ok(mut connection) = builder.handshake(socket).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        spawn_local(call(request, respond, Rc::clone(&broker)));
    }
}

async fn call(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, broker: Rc<RefCell<Broker>>) {
    let head =
        Response::builder().header("content-type", "application/grpc").body(()).expect("sound headers");
    let Ok(mut answers) = respond.send_response(head, false) else { return };
    let rpc = request.uri().path().to_owned();
    let requests = Requests { body: request.into_body(), rest: BytesMut::new() };
    let end = serve_call(&rpc, requests, &mut answers, &broker).await;
    let (code, message) = match end {
        Ok(()) => (0, ""),
        Err(End::Status(code, message)) => (code, message),
        Err(End::Gone) => return,
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.into());
    trailers.insert("grpc-message", http::HeaderValue::from_static(message));
    // Who does not want to hear it is gone.
    let _ = answers.send_trailers(trailers);
}

async fn serve_call(
    rpc: &str,
    mut requests: Requests,
    answers: &mut SendStream<Bytes>,
    broker: &Rc<RefCell<Broker>>,
) -> Result<(), End> {
    let answer = match rpc {
        "/tinybroker.v1.Broker/Publish" => {
            let request = requests.only().await?;
            let outcome = broker.borrow_mut().publish(request);
            frame(&published(outcome).await?)
        }
        "/tinybroker.v1.Broker/PublishBatch" => frame(&batch(requests.only().await?, broker).await?),
        "/tinybroker.v1.Broker/PublishStream" => return stream(requests, answers, broker).await,
        "/tinybroker.v1.Broker/Subscribe" => return subscribe(requests, answers, broker).await,
        "/tinybroker.v1.Broker/Ack" => frame(&ack(requests.only().await?, broker).await?),
        "/tinybroker.v1.Admin/GetServerInfo" => {
            frame(&GetServerInfoResponse { version: "0.0.0".into(), shards: 1, ..Default::default() })
        }
        "/tinybroker.v1.Admin/GetStats" => {
            frame(&GetStatsResponse { resident_bytes: 1 << 20, ..Default::default() })
        }
        _ => return Err(UNIMPLEMENTED),
    };
    Ok(answers.send_data(answer, false)?)
}

async fn published(outcome: Outcome) -> Result<PublishResponse, End> {
    match outcome {
        Outcome::Published(subscriptions) => Ok(PublishResponse { subscriptions, ..Default::default() }),
        Outcome::Refused => Err(FULL),
        Outcome::Silence => pending().await,
    }
}

async fn batch(
    request: PublishBatchRequest,
    broker: &Rc<RefCell<Broker>>,
) -> Result<PublishBatchResponse, End> {
    let mut response = PublishBatchResponse::default();
    for (index, request) in (0..).zip(request.messages) {
        let outcome = broker.borrow_mut().publish(request);
        match published(outcome).await {
            Ok(result) => response.results.push(result),
            Err(_) => {
                response.results.push(PublishResponse::default());
                response.failures.push(failure(index));
            }
        }
    }
    Ok(response)
}

fn failure(index: u64) -> PublishFailure {
    let End::Status(code, message) = FULL else { unreachable!("a status") };
    PublishFailure { index, code, message: message.into() }
}

/// A confirm for all that came together.
async fn stream(
    mut requests: Requests,
    answers: &mut SendStream<Bytes>,
    broker: &Rc<RefCell<Broker>>,
) -> Result<(), End> {
    if broker.borrow().fault == Fault::NoStream {
        return Err(UNIMPLEMENTED);
    }
    let mut confirm = PublishConfirm::default();
    while let Some(messages) = requests.some::<PublishRequest>().await? {
        for request in messages {
            let outcome = broker.borrow_mut().publish(request);
            match outcome {
                Outcome::Published(subscriptions) => confirm.unheard += u64::from(subscriptions == 0),
                Outcome::Refused => confirm.failures.push(failure(confirm.confirmed)),
                Outcome::Silence => return pending().await,
            }
            confirm.confirmed += 1;
        }
        answers.send_data(frame(&confirm), false)?;
        confirm = PublishConfirm { confirmed: confirm.confirmed, ..Default::default() };
    }
    Ok(())
}

/// Until the client leaves, which it does not by half-closing.
async fn subscribe(
    mut requests: Requests,
    answers: &mut SendStream<Bytes>,
    broker: &Rc<RefCell<Broker>>,
) -> Result<(), End> {
    let (events, mut told) = mpsc::unbounded_channel::<SubscribeEvent>();
    let mut opened = None;
    let mut is_half_closed = false;
    let end = loop {
        tokio::select! {
            commands = requests.some::<SubscribeCommand>(), if !is_half_closed => match commands {
                Ok(Some(commands)) => {
                    for command in commands.into_iter().filter_map(|command| command.command) {
                        obey(command, &mut opened, &events, &mut broker.borrow_mut());
                    }
                }
                Ok(None) => is_half_closed = true,
                Err(end) => break Err(end),
            },
            _ = poll_fn(|context| answers.poll_reset(context)), if is_half_closed => break Err(End::Gone),
            Some(event) = told.recv() => match answers.send_data(frame(&event), false) {
                Ok(()) => {}
                Err(error) => break Err(error.into()),
            },
        }
    };
    if let Some(opened) = opened {
        broker.borrow_mut().leave(&opened);
    }
    end
}

fn obey(
    command: Command,
    opened: &mut Option<Opened>,
    events: &UnboundedSender<SubscribeEvent>,
    broker: &mut Broker,
) {
    match (command, &opened) {
        (Command::Open(open), None) => *opened = Some(broker.open(&open, events.clone())),
        (Command::Ack(ack), Some(opened)) => {
            let ids = if ack.system_ids.is_empty() { vec![ack.system_id] } else { ack.system_ids };
            broker.ack(&opened.subscription, Some(opened.member), &ids);
        }
        _ => {}
    }
}

async fn ack(request: AckRequest, broker: &Rc<RefCell<Broker>>) -> Result<AckResponse, End> {
    let AckRequest { subscription_id, system_id, system_ids, .. } = request;
    let ids = if system_ids.is_empty() { vec![system_id] } else { system_ids };
    let settled = broker.borrow_mut().ack(&subscription_id, None, &ids);
    // With two holders: until both have it, and have acked it.
    while ids.iter().any(|id| broker.borrow_mut().is_held(&subscription_id, id)) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    if settled == 0 { Err(NOT_FOUND) } else { Ok(AckResponse { settled }) }
}

/// What a client sends on a call.
struct Requests {
    body: RecvStream,
    /// What has come and is no whole message yet.
    rest: BytesMut,
}

impl Requests {
    /// Waits until more has come in, and gives what is whole of it; none once the client has said its last.
    async fn some<M: Message + Default>(&mut self) -> Result<Option<Vec<M>>, End> {
        let Some(chunk) = self.body.data().await else { return Ok(None) };
        let chunk = chunk?;
        self.body.flow_control().release_capacity(chunk.len())?;
        self.rest.extend_from_slice(&chunk);
        let mut messages = Vec::new();
        while let Some(header) = self.rest.first_chunk::<HEADER>() {
            let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
            if self.rest.len() < HEADER + length {
                break;
            }
            self.rest.advance(HEADER);
            messages.push(M::decode(self.rest.split_to(length)).map_err(|_| INVALID)?);
        }
        Ok(Some(messages))
    }

    /// The one message of a unary call.
    async fn only<M: Message + Default>(&mut self) -> Result<M, End> {
        let mut all = Vec::new();
        while let Some(messages) = self.some().await? {
            all.extend(messages);
        }
        all.pop().ok_or(INVALID)
    }
}

/// One message with its frame header.
fn frame(message: &impl Message) -> Bytes {
    let mut out = BytesMut::with_capacity(HEADER + message.encoded_len());
    out.put_u8(0);
    out.put_u32(message.encoded_len() as u32);
    message.encode_raw(&mut out);
    out.freeze()
}
