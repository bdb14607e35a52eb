//! The calls of one connection: which is meant, and how each lives on HTTP/2.
//!
//! Those of the Broker service are served here, on our own types; all others by the generated services of tonic.

mod publish_stream;
mod subscribe;
mod unary;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use h2::RecvStream;
use h2::server::SendResponse;
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};

use super::Failure;
use super::grpc::{Deadline, Messages, Refusal, Reply, RequestBody, bridge, check, check_encoding};
use super::hub::Frontend;
use super::net::Turn;
use super::tasks::{Spawner, Task};

/// The services beside the Broker service, whatever they are: a request in, a response out.
pub trait Services {
    /// Called as every call begins, those of the Broker service too. A panic is that call's.
    fn begin(&self, headers: &HeaderMap);
    fn route(&self, request: Request<RequestBody>) -> LocalBoxFuture<'static, Response<tonic::body::Body>>;
}

/// What begins the calls of one connection.
pub struct Calls {
    frontend: Rc<Frontend>,
    services: Rc<dyn Services>,
    spawner: Spawner,
    turn: Rc<Turn>,
    subscriptions: Rc<Cell<usize>>,
}

/// A call whose head was read.
struct Call {
    frontend: Rc<Frontend>,
    messages: Messages,
    reply: Reply,
    deadline: Option<Deadline>,
}

/// What comes before the name of a method in the path of a request.
const BROKER: &str = "/tinybroker.v1.Broker/";

impl Calls {
    pub fn new(frontend: Rc<Frontend>, services: Rc<dyn Services>, spawner: Spawner, turn: Rc<Turn>) -> Self {
        Calls { frontend, services, spawner, turn, subscriptions: Rc::default() }
    }

    /// Begins a call, whatever it is.
    pub fn begin(&self, request: Request<RecvStream>, response: SendResponse<Bytes>) -> Task {
        let (head, body) = request.into_parts();
        let body = RequestBody::new(body, self.spawner.clone());
        let mut reply = Reply::new(response, self.frontend.counters.clone());
        let timeout = match check(&head) {
            Ok(timeout) => timeout,
            Err(Refusal::Foreign) => {
                let text = "this is a gRPC server; send POST with content-type application/grpc\n";
                reply.say(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
                return nothing();
            }
            Err(Refusal::Failed(failure)) => return failed(reply, failure),
        };
        let deadline = timeout.and_then(Deadline::after);
        match catch_unwind(AssertUnwindSafe(|| self.services.begin(&head.headers))) {
            Ok(()) => self.route(head, body, reply, deadline),
            Err(_) => {
                let failure = reply.panicked();
                failed(reply, failure)
            }
        }
    }

    fn route(&self, head: Parts, body: RequestBody, reply: Reply, deadline: Option<Deadline>) -> Task {
        let method: fn(&Calls, Call) -> Task = match head.uri.path().strip_prefix(BROKER) {
            Some("Publish") => |_, call| unary::publish(call).boxed_local(),
            Some("PublishBatch") => |_, call| unary::publish_batch(call).boxed_local(),
            Some("Ack") => |_, call| unary::ack(call).boxed_local(),
            Some("Nack") => |_, call| unary::nack(call).boxed_local(),
            Some("Extend") => |_, call| unary::extend(call).boxed_local(),
            Some("Subscribe") => |calls, call| subscribe::subscribe(call, &calls.subscriptions),
            Some("PublishStream") => |calls, call| publish_stream::publish_stream(call, calls.turn.clone()),
            _ => {
                let service = self.services.route(Request::from_parts(head, body));
                return bridge(reply, deadline, service).boxed_local();
            }
        };
        if let Err(failure) = check_encoding(&head.headers) {
            return failed(reply, failure);
        }
        let messages = Messages::new(body);
        method(self, Call { frontend: self.frontend.clone(), messages, reply, deadline })
    }
}

/// A call that fails as it begins.
fn failed(mut reply: Reply, failure: Failure) -> Task {
    reply.fail(failure);
    nothing()
}

fn nothing() -> Task {
    std::future::ready(()).boxed_local()
}
