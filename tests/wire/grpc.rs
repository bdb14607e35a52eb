//! gRPC by hand over the h2 crate's client: any body, any header, and flow control left to the test.

use bytes::{Buf, Bytes, BytesMut};
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use prost::Message;
use tinybroker::proto::subscribe_event::Event;
use tinybroker::proto::{OpenSubscription, SubscribeCommand, SubscribeEvent, subscribe_command::Command};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::{Code, Status};

use crate::raw;
use crate::support::{Broker, LIMIT};

pub const PUBLISH: &str = "/tinybroker.v1.Broker/Publish";
pub const PUBLISH_STREAM: &str = "/tinybroker.v1.Broker/PublishStream";
pub const SUBSCRIBE: &str = "/tinybroker.v1.Broker/Subscribe";
pub const ACK: &str = "/tinybroker.v1.Broker/Ack";

/// One connection.
pub struct Connection {
    requests: SendRequest<Bytes>,
    driver: JoinHandle<()>,
}

impl Connection {
    /// With a window so wide that the client's own budget for small unread frames, which grows with
    /// it, never runs out.
    pub async fn connect(broker: &Broker) -> Self {
        Self::with(broker, Builder::new().initial_connection_window_size(raw::WIDE)).await
    }

    pub async fn with(broker: &Broker, options: &mut Builder) -> Self {
        let stream = TcpStream::connect(broker.address()).await.expect("the broker accepts");
        stream.set_nodelay(true).expect("an option of every socket");
        let (requests, connection) = options.handshake(stream).await.expect("the broker speaks HTTP/2");
        let driver = tokio::spawn(async move {
            let _ = connection.await;
        });
        Connection { requests, driver }
    }

    /// Sends the headers of a call and nothing more.
    pub async fn call(&self, path: &str) -> Call {
        self.request(Method::POST, path, &[("content-type", "application/grpc")]).await
    }

    pub async fn request(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Call {
        let mut request = Request::builder().method(method).uri(format!("http://broker{path}"));
        for &(name, value) in headers {
            request = request.header(name, value);
        }
        let ready = timeout(LIMIT, self.requests.clone().ready()).await.expect("a stream is free");
        let mut requests = ready.expect("the connection lives");
        let request = request.body(()).expect("a request");
        let (response, sender) = requests.send_request(request, false).expect("the headers are sent");
        Call { sender, answer: Answer::Awaited(response), buffer: BytesMut::new(), trailers: None }
    }

    /// A unary call from a whole body to its status and the bytes of its response.
    pub async fn unary(&self, path: &str, body: &[u8]) -> (Status, Bytes) {
        let mut call = self.call(path).await;
        call.finish(body);
        let mut answer = Bytes::new();
        while let Some(message) = call.message().await {
            answer = message;
        }
        (call.status().await, answer)
    }

    pub async fn publish(&self, topic: &str, payload: &str) {
        let (status, _) = self.unary(PUBLISH, &raw::grpc(&crate::support::message(topic, payload))).await;
        assert_eq!(status.code(), Code::Ok, "{status:?}");
    }

    pub async fn subscribe(&self, open: OpenSubscription) -> Call {
        let mut call = self.call(SUBSCRIBE).await;
        call.command(Command::Open(open));
        call
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

enum Answer {
    Awaited(ResponseFuture),
    Begun(Response<RecvStream>),
    Failed(h2::Error),
}

/// One call. Dropping it resets its stream.
pub struct Call {
    sender: SendStream<Bytes>,
    answer: Answer,
    buffer: BytesMut,
    /// What came after the body: `None` while it lasts.
    trailers: Option<HeaderMap>,
}

impl Call {
    pub fn send(&mut self, bytes: &[u8]) {
        self.sender.send_data(Bytes::copy_from_slice(bytes), false).expect("the stream is open");
    }

    /// Sends the last of the body.
    pub fn finish(&mut self, bytes: &[u8]) {
        self.sender.send_data(Bytes::copy_from_slice(bytes), true).expect("the stream is open");
    }

    pub fn command(&mut self, command: Command) {
        self.send(&raw::grpc(&SubscribeCommand { command: Some(command) }));
    }

    async fn begin(&mut self) -> Result<&mut Response<RecvStream>, &h2::Error> {
        if let Answer::Awaited(response) = &mut self.answer {
            self.answer = match timeout(LIMIT, response).await.expect("response headers come") {
                Ok(response) => Answer::Begun(response),
                Err(error) => Answer::Failed(error),
            };
        }
        match &mut self.answer {
            Answer::Begun(response) => Ok(response),
            Answer::Failed(error) => Err(error),
            Answer::Awaited(_) => unreachable!("it was just awaited"),
        }
    }

    /// The HTTP status and headers of the response.
    pub async fn response(&mut self) -> (StatusCode, HeaderMap) {
        let response = self.begin().await.expect("the call is answered");
        (response.status(), response.headers().clone())
    }

    /// The next message of the response; `None` at its end.
    pub async fn message(&mut self) -> Option<Bytes> {
        loop {
            if let Some(message) = raw::grpc_message(&mut self.buffer) {
                return Some(message);
            }
            if self.trailers.is_some() {
                return None;
            }
            let body = self.begin().await.ok()?.body_mut();
            let chunk = match timeout(LIMIT, body.data()).await.expect("data or an end comes") {
                Some(Ok(chunk)) => chunk,
                Some(Err(error)) => {
                    self.answer = Answer::Failed(error);
                    return None;
                }
                None => {
                    let trailers = timeout(LIMIT, body.trailers()).await.expect("an end comes");
                    self.trailers = Some(trailers.ok().flatten().unwrap_or_default());
                    return None;
                }
            };
            body.flow_control().release_capacity(chunk.len()).expect("it was just received");
            self.buffer.extend_from_slice(chunk.chunk());
        }
    }

    pub async fn event(&mut self) -> Event {
        let Some(message) = self.message().await else {
            panic!("the stream ended: {:?}", self.status().await);
        };
        SubscribeEvent::decode(message).expect("an event").event.expect("an event of a known kind")
    }

    pub async fn subscription_id(&mut self) -> String {
        match self.event().await {
            Event::SubscriptionId(id) => id,
            other => panic!("a subscription id was due, {other:?} came"),
        }
    }

    pub async fn delivery(&mut self) -> tinybroker::proto::Message {
        match self.event().await {
            Event::Message(message) => message,
            other => panic!("a message was due, {other:?} came"),
        }
    }

    /// How the call ends; what comes before is passed over. UNKNOWN: without a status of its own.
    pub async fn status(&mut self) -> Status {
        while self.message().await.is_some() {}
        if let Some(status) = self.trailers.as_ref().and_then(Status::from_header_map) {
            return status;
        }
        let unknown = |error: &dyn std::fmt::Display| Status::unknown(error.to_string());
        match self.begin().await {
            Ok(response) => Status::from_header_map(response.headers())
                .unwrap_or_else(|| unknown(&format!("{:?}", response.status()))),
            Err(error) => unknown(error),
        }
    }
}
