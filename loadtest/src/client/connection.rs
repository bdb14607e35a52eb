//! One HTTP/2 connection: unary calls and streams.

use std::io;

use bytes::Bytes;
use h2::client::{self, SendRequest};
use http::{Method, Request, Version};
use prost::Message;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::CallError;
use super::frame::frame;
use super::stream::{Receiver, Sender};

/// Receive windows that a connection grants, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Windows {
    pub stream: u32,
    pub connection: u32,
}

impl Default for Windows {
    /// So wide that they never hold the broker back.
    fn default() -> Self {
        Windows { stream: 4 << 20, connection: 256 << 20 }
    }
}

/// An open connection. Dropping it closes it once its calls have ended; [`Connection::cut`] does at once.
pub struct Connection {
    requests: SendRequest<Bytes>,
    /// A request without its path.
    template: Request<()>,
    authority: String,
    driver: JoinHandle<()>,
}

impl Connection {
    /// To `HOST:PORT`.
    pub async fn open(address: &str) -> Result<Connection, CallError> {
        Self::with_windows(address, Windows::default()).await
    }

    pub async fn with_windows(address: &str, windows: Windows) -> Result<Connection, CallError> {
        let failed = |source| CallError::Connect { address: address.to_owned(), source };
        let socket = TcpStream::connect(address).await.map_err(failed)?;
        socket.set_nodelay(true).map_err(failed)?;
        let (requests, connection) = client::Builder::new()
            .initial_window_size(windows.stream)
            .initial_connection_window_size(windows.connection)
            .max_send_buffer_size(1 << 20)
            .initial_max_send_streams(100)
            .handshake::<_, Bytes>(socket)
            .await?;
        let driver = tokio::spawn(async move {
            // How a connection ends is seen by its calls.
            let _ = connection.await;
        });
        let template = template(address).map_err(|error| failed(io::Error::other(error)))?;
        Ok(Connection { requests, template, authority: address.to_owned(), driver })
    }

    /// A call with one request, already framed, and one answer.
    pub async fn unary_framed(&self, rpc: &str, request: Bytes) -> Result<Bytes, CallError> {
        let (mut sender, mut receiver) = self.call(rpc).await?;
        sender.send_last(request)?;
        receiver.only().await
    }

    /// A call with one request and one answer.
    pub async fn unary<A: Message + Default>(
        &self,
        rpc: &str,
        request: &impl Message,
    ) -> Result<A, CallError> {
        let answer = self.unary_framed(rpc, frame(request)).await?;
        A::decode(answer).map_err(CallError::from)
    }

    /// Begins a call; its request may be sent and its answer read independently.
    pub async fn call(&self, rpc: &str) -> Result<(Sender, Receiver), CallError> {
        let mut requests = self.requests.clone().ready().await?;
        let mut request = self.template.clone();
        let uri = format!("http://{}{rpc}", self.authority);
        *request.uri_mut() =
            uri.parse().map_err(|error| CallError::Protocol(format!("path {rpc}: {error}")))?;
        let (response, body) = requests.send_request(request, false)?;
        Ok((Sender::new(body), Receiver::new(response)))
    }

    /// Closes the socket without a goodbye, as the death of the process would.
    pub fn cut(&self) {
        self.driver.abort();
    }
}

/// What every gRPC request has.
fn template(address: &str) -> Result<Request<()>, http::Error> {
    Request::builder()
        .method(Method::POST)
        .version(Version::HTTP_2)
        .uri(format!("http://{address}/"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
}
