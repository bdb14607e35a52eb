//! HTTP/2 by hand: frames written as bytes and read as they come, so that every rule can be broken.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use prost::Message as _;
use socket2::SockRef;
use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::subscribe_event::Event;
use tinybroker::proto::{Ack, Message, OpenSubscription, SubscribeCommand, SubscribeEvent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::grpc::SUBSCRIBE;
use crate::support::{Broker, LIMIT};

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;

pub const MAX_CONCURRENT_STREAMS: u16 = 3;
pub const INITIAL_WINDOW_SIZE: u16 = 4;

const CANCEL: u32 = 8;

/// A window that no test uses up.
pub const WIDE: u32 = 1 << 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Bytes,
}

impl Frame {
    pub fn ends(&self, stream: u32) -> bool {
        let closes = self.kind == RST_STREAM || self.flags & END_STREAM != 0;
        self.stream == stream && matches!(self.kind, DATA | HEADERS | RST_STREAM) && closes
    }
}

/// Any frame, whether it may be sent or not.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

pub fn data(stream: u32, payload: &[u8]) -> Vec<u8> {
    frame(DATA, 0, stream, payload)
}

pub fn cancel(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
}

pub fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

pub fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let value = |&(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat();
    frame(SETTINGS, 0, 0, &values.iter().flat_map(value).collect::<Vec<u8>>())
}

/// The header fields of a gRPC call.
pub fn call_fields(path: &str) -> Vec<(&str, &str)> {
    vec![
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "broker"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ]
}

/// A call begins; its body is to follow.
pub fn call(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &header_block(&call_fields(path)))
}

/// HPACK: each field literal, not indexed, not compressed.
pub fn header_block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            put_length(text.len(), &mut block);
            block.extend(text.as_bytes());
        }
    }
    block
}

/// An HPACK integer with a prefix of 7 bits.
fn put_length(length: usize, block: &mut Vec<u8>) {
    let Some(mut rest) = length.checked_sub(127) else { return block.push(length as u8) };
    block.push(127);
    while rest >= 128 {
        block.push(rest as u8 | 128);
        rest /= 128;
    }
    block.push(rest as u8);
}

/// A message with the prefix that gRPC puts before it.
pub fn grpc(message: &impl prost::Message) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend((message.encoded_len() as u32).to_be_bytes());
    bytes.extend(message.encode_to_vec());
    bytes
}

/// Takes the first message from a body, if it is there as a whole.
pub fn grpc_message(body: &mut BytesMut) -> Option<Bytes> {
    let prefix = body.first_chunk::<5>()?;
    let end = 5 + u32::from_be_bytes(*prefix.last_chunk()?) as usize;
    (body.len() >= end).then(|| body.split_to(end).split_off(5).freeze())
}

fn command(command: Command) -> Vec<u8> {
    grpc(&SubscribeCommand { command: Some(command) })
}

/// A Subscribe stream begins, with its `open`.
pub fn open(stream: u32, open: OpenSubscription) -> Vec<u8> {
    [call(stream, SUBSCRIBE), open_data(stream, open)].concat()
}

/// The `open` alone.
pub fn open_data(stream: u32, open: OpenSubscription) -> Vec<u8> {
    data(stream, &command(Command::Open(open)))
}

/// The body of an ack command.
pub fn ack_body(system_id: &str) -> Vec<u8> {
    command(Command::Ack(Ack { system_id: system_id.into(), ..Default::default() }))
}

/// An ack in a DATA frame of its own.
pub fn ack(stream: u32, system_id: &str) -> Vec<u8> {
    data(stream, &ack_body(system_id))
}

/// A connection of bytes. What comes is read all the time, so that writing never waits for reading.
pub struct Peer {
    writer: Option<OwnedWriteHalf>,
    frames: mpsc::UnboundedReceiver<Frame>,
    /// Frames that came while another was waited for.
    kept: VecDeque<Frame>,
    /// What came of each stream's body and is no whole message yet.
    bodies: HashMap<u32, BytesMut>,
    reader: JoinHandle<()>,
}

impl Peer {
    /// A connection on which nothing was said.
    pub async fn silent(broker: &Broker) -> Self {
        let stream = TcpStream::connect(broker.address()).await.expect("the broker accepts");
        stream.set_nodelay(true).expect("an option of every socket");
        let (reader, writer) = stream.into_split();
        let (sender, frames) = mpsc::unbounded_channel();
        let reader = tokio::spawn(read_frames(reader, sender));
        Peer { writer: Some(writer), frames, kept: VecDeque::new(), bodies: HashMap::new(), reader }
    }

    /// A connection that may send and receive as much as it likes.
    pub async fn connect(broker: &Broker) -> Self {
        let mut peer = Self::with_settings(broker, &[(INITIAL_WINDOW_SIZE, WIDE)]).await;
        peer.write(&window_update(0, WIDE)).await;
        peer
    }

    /// A connection that has exchanged its settings.
    pub async fn with_settings(broker: &Broker, values: &[(u16, u32)]) -> Self {
        let mut peer = Self::silent(broker).await;
        peer.write(&[PREFACE, &settings(values)].concat()).await;
        peer.until("the settings are confirmed", |frame| frame.kind == SETTINGS && frame.flags == ACK).await;
        peer.write(&frame(SETTINGS, ACK, 0, &[])).await;
        peer
    }

    /// Writes what the broker must take.
    pub async fn write(&mut self, bytes: &[u8]) {
        self.try_write(bytes).await.expect("the broker reads");
    }

    /// Writes what the broker may answer by closing the connection.
    pub async fn try_write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let writer = self.writer.as_mut().expect("nothing is written after the end");
        timeout(LIMIT, writer.write_all(bytes)).await.expect("the broker reads or closes")
    }

    /// The next frame; `None` when the broker has closed the connection.
    pub async fn frame(&mut self) -> Option<Frame> {
        match self.kept.pop_front() {
            Some(frame) => Some(frame),
            None => self.arrival().await,
        }
    }

    async fn arrival(&mut self) -> Option<Frame> {
        timeout(LIMIT, self.frames.recv()).await.expect("a frame or an end comes")
    }

    /// The first frame that is wanted; the others are kept in their order.
    pub async fn until(&mut self, what: &str, wanted: impl Fn(&Frame) -> bool) -> Frame {
        if let Some(place) = self.kept.iter().position(&wanted) {
            return self.kept.remove(place).expect("the place was just found");
        }
        loop {
            match self.arrival().await {
                Some(frame) if wanted(&frame) => return frame,
                Some(frame) if frame.kind == GOAWAY => panic!("GOAWAY before {what}: {frame:?}"),
                Some(frame) => self.kept.push_back(frame),
                None => panic!("the broker closed before {what}"),
            }
        }
    }

    /// The next message of a response.
    pub async fn response(&mut self, stream: u32) -> Bytes {
        loop {
            let body = self.bodies.entry(stream).or_default();
            if let Some(message) = grpc_message(body) {
                return message;
            }
            let is_data = |frame: &Frame| frame.kind == DATA && frame.stream == stream;
            let frame = self.until("a message", is_data).await;
            self.bodies.entry(stream).or_default().extend_from_slice(&frame.payload);
        }
    }

    /// The next event of a Subscribe stream.
    pub async fn event(&mut self, stream: u32) -> Event {
        let message = self.response(stream).await;
        SubscribeEvent::decode(message).expect("an event").event.expect("a known event")
    }

    /// What the next WINDOW_UPDATE of a stream grants; 0 where none comes for so long.
    pub async fn granted(&mut self, stream: u32, patience: Duration) -> usize {
        let is_grant = |frame: &Frame| frame.kind == WINDOW_UPDATE && frame.stream == stream;
        match timeout(patience, self.until("a window", is_grant)).await {
            Ok(frame) => (&frame.payload[..]).get_u32() as usize,
            Err(_) => 0,
        }
    }

    pub async fn message(&mut self, stream: u32) -> Message {
        loop {
            match self.event(stream).await {
                Event::Message(message) => return message,
                Event::SubscriptionId(_) => {}
                other => panic!("a message was due, {other:?} came"),
            }
        }
    }

    /// Opens a Subscribe stream and waits for its first event.
    pub async fn subscribe(&mut self, stream: u32, options: OpenSubscription) -> String {
        self.write(&open(stream, options)).await;
        match self.event(stream).await {
            Event::SubscriptionId(id) => id,
            other => panic!("a subscription id was due, {other:?} came"),
        }
    }

    /// The connection works: it answers a PING, so all that was written before is read.
    pub async fn assert_alive(&mut self) {
        let payload = b"alive?!?";
        self.write(&frame(PING, 0, 0, payload)).await;
        let is_answer =
            |frame: &Frame| frame.kind == PING && frame.flags == ACK && &frame.payload[..] == payload;
        self.until("the PING is answered", is_answer).await;
    }

    /// Waits for the broker to close the connection. Returns the last word of its GOAWAY, if it said one.
    pub async fn closed(&mut self) -> Option<u32> {
        let mut reason = None;
        while let Some(frame) = self.frame().await {
            if frame.kind == GOAWAY {
                reason = Some((&frame.payload[4..8]).get_u32());
            }
        }
        reason
    }

    /// Ends the connection with a FIN.
    pub async fn close(mut self) {
        drop(self.writer.take());
    }

    /// Ends the connection with a TCP reset.
    pub async fn crash(mut self) {
        let writer = self.writer.take().expect("a connection ends once");
        let no_linger = SockRef::from(writer.as_ref()).set_linger(Some(Duration::ZERO));
        no_linger.expect("an option of every socket");
        // The socket is closed, and so reset, when both halves are gone; the writer alone would send a FIN.
        self.reader.abort();
        let _ = (&mut self.reader).await;
        writer.forget();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn read_frames(mut socket: OwnedReadHalf, frames: mpsc::UnboundedSender<Frame>) {
    let mut buffer = BytesMut::new();
    loop {
        while let Some(frame) = parse(&mut buffer) {
            if frames.send(frame).is_err() {
                return;
            }
        }
        if socket.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
            return;
        }
    }
}

fn parse(buffer: &mut BytesMut) -> Option<Frame> {
    let head: [u8; 9] = buffer.get(..9)?.try_into().ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    if buffer.len() < 9 + length {
        return None;
    }
    buffer.advance(9);
    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    Some(Frame { kind: head[3], flags: head[4], stream, payload: buffer.split_to(length).freeze() })
}
