//! Clients below gRPC: one on HTTP/2, for what no gRPC library sends, and one on bare frames, for
//! what no HTTP/2 library sends.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use http::Request;
use prost::Message as _;
use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::subscribe_event::Event;
use tinybroker::proto::{Message, OpenSubscription, SubscribeCommand, SubscribeEvent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Status;

use crate::support::*;

pub const PUBLISH: &str = "/tinybroker.v1.Broker/Publish";
pub const PUBLISH_STREAM: &str = "/tinybroker.v1.Broker/PublishStream";
pub const SUBSCRIBE: &str = "/tinybroker.v1.Broker/Subscribe";

/// How long a call may take: longer than a stream may go without `open`.
const PATIENCE: Duration = Duration::from_secs(60);

/// An HTTP/2 connection that sends whatever bytes as a call's body.
pub struct WireClient(SendRequest<Bytes>);

impl WireClient {
    pub async fn connect(broker: &Broker) -> Self {
        let socket = TcpStream::connect(broker.address()).await.expect("the broker accepts");
        let (sender, connection) = h2::client::handshake(socket).await.expect("HTTP/2 begins");
        tokio::spawn(connection);
        WireClient(sender)
    }

    /// One call: headers beside the usual ones, and a body. How it ends.
    pub async fn call(&self, path: &str, headers: &[(&str, &str)], body: Bytes) -> Status {
        self.call_to_its_end(path, headers, body, true).await
    }

    /// The same, without an end of the request.
    pub async fn call_unfinished(&self, path: &str, headers: &[(&str, &str)], body: Bytes) -> Status {
        self.call_to_its_end(path, headers, body, false).await
    }

    async fn call_to_its_end(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
        half_close: bool,
    ) -> Status {
        let mut request = Request::post(format!("http://broker{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).expect("a request");
        let call = run(self.0.clone(), request, body, half_close);
        tokio::time::timeout(PATIENCE, call).await.expect("the call ends")
    }
}

async fn run(sender: SendRequest<Bytes>, request: Request<()>, body: Bytes, half_close: bool) -> Status {
    let mut sender = sender.ready().await.expect("the connection lives");
    let (response, mut out) = sender.send_request(request, false).expect("the request goes out");
    // Where the broker has ended the call already, the rest is of no use.
    let _ = out.send_data(body, half_close);
    let response = response.await.expect("headers come");
    if let Some(status) = Status::from_header_map(response.headers()) {
        return status;
    }
    let mut body = response.into_body();
    while let Some(data) = body.data().await {
        let data = data.expect("data, or a status");
        let _ = body.flow_control().release_capacity(data.len());
    }
    let trailers = body.trailers().await.expect("trailers come").expect("a status comes");
    Status::from_header_map(&trailers).expect("a gRPC status")
}

/// A message in gRPC's framing.
pub fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(message.len() as u32);
    frame.put_slice(message);
    frame.freeze()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const CANCEL: u32 = 8;

/// A connection with one Subscribe stream, in frames written by hand: what goes out in one segment is
/// up to the test.
pub struct RawConnection {
    socket: TcpStream,
    /// Of the response's DATA frames, what is no whole message yet.
    received: BytesMut,
}

impl RawConnection {
    pub async fn open(broker: &Broker) -> Self {
        let mut socket = TcpStream::connect(broker.address()).await.expect("the broker accepts");
        let mut hello = BytesMut::from(&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..]);
        put_frame(&mut hello, SETTINGS, 0, 0, &[]);
        socket.write_all(&hello).await.expect("written");
        RawConnection { socket, received: BytesMut::new() }
    }

    /// Begins the stream, and waits for its first event.
    pub async fn subscribe(&mut self, open: OpenSubscription) {
        let mut headers = BytesMut::new();
        for (name, value) in [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", SUBSCRIBE),
            (":authority", "broker"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ] {
            // A literal without indexing, its name too.
            headers.put_u8(0);
            for text in [name, value] {
                headers.put_u8(text.len() as u8);
                headers.put_slice(text.as_bytes());
            }
        }
        let mut frames = BytesMut::new();
        put_frame(&mut frames, HEADERS, END_HEADERS, 1, &headers);
        put_command(&mut frames, &SubscribeCommand { command: Some(Command::Open(open)) });
        self.socket.write_all(&frames).await.expect("written");
        let first = self.event().await;
        assert!(matches!(first, Event::SubscriptionId(_)), "{first:?}");
    }

    /// Sends a command and RST_STREAM in one segment.
    pub async fn say_and_cancel(&mut self, command: &SubscribeCommand) {
        let mut frames = BytesMut::new();
        put_command(&mut frames, command);
        put_frame(&mut frames, RST_STREAM, 0, 1, &CANCEL.to_be_bytes());
        self.socket.write_all(&frames).await.expect("written");
    }

    pub async fn message(&mut self) -> Message {
        match self.event().await {
            Event::Message(message) => message,
            other => panic!("a message was due, {other:?} came"),
        }
    }

    /// Closes the connection with a TCP reset.
    pub fn reset(self) {
        socket2::SockRef::from(&self.socket).set_linger(Some(Duration::ZERO)).expect("a socket");
    }

    async fn event(&mut self) -> Event {
        tokio::time::timeout(LIMIT, self.read_event()).await.expect("an event comes")
    }

    async fn read_event(&mut self) -> Event {
        loop {
            if let Some(length) = self.received.get(1..5) {
                let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
                if self.received.len() >= 5 + length {
                    let frame = self.received.split_to(5 + length);
                    let event = SubscribeEvent::decode(&frame[5..]).expect("a SubscribeEvent");
                    return event.event.expect("an event of a known kind");
                }
            }
            self.read_frame().await;
        }
    }

    async fn read_frame(&mut self) {
        let mut head = [0; 9];
        self.socket.read_exact(&mut head).await.expect("a frame comes");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        self.socket.read_exact(&mut payload).await.expect("a frame is whole");
        match (head[3], head[4] & ACK) {
            (DATA, _) => self.received.put_slice(&payload),
            (SETTINGS, 0) => {
                let mut ack = BytesMut::new();
                put_frame(&mut ack, SETTINGS, ACK, 0, &[]);
                self.socket.write_all(&ack).await.expect("written");
            }
            _ => {}
        }
    }
}

fn put_frame(out: &mut BytesMut, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.put_uint(payload.len() as u64, 3);
    out.put_u8(kind);
    out.put_u8(flags);
    out.put_u32(stream);
    out.put_slice(payload);
}

fn put_command(out: &mut BytesMut, command: &SubscribeCommand) {
    put_frame(out, DATA, 0, 1, &framed(&command.encode_to_vec()));
}
