use std::rc::Rc;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use http::{HeaderValue, Request, Response};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::NamedService;
use tonic::{Code, Status};
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::HealthService;

use super::info::{AdminService, ServerFacts};
use super::reflection::{self, Described};
use crate::frontend::service::BrokerService;
use crate::frontend::service::generated::broker_server::BrokerServer;
use crate::frontend::{MakeServices, RequestBody, Services};
use crate::limits;
use crate::proto::admin_server::AdminServer;

/// All services of one connection, found by the first part of a request's path.
struct Routes {
    broker: BrokerServer<BrokerService>,
    admin: AdminServer<AdminService>,
    health: HealthServer<HealthService>,
    reflection: reflection::v1::Server,
    reflection_alpha: reflection::v1alpha::Server,
}

/// Makes the services of each connection of a frontend.
pub fn make_services(
    facts: Arc<ServerFacts>,
    health: HealthServer<HealthService>,
    described: Described,
) -> MakeServices {
    Box::new(move |frontend, spawn, turn| {
        let broker = BrokerService::new(frontend.clone(), spawn, turn);
        let admin = AdminService::new(frontend.clone(), facts.clone());
        Rc::new(Routes {
            broker: BrokerServer::new(broker).max_decoding_message_size(limits::REQUEST_BYTES),
            admin: AdminServer::new(admin),
            health: health.clone(),
            reflection: reflection::v1::Server::new(described.clone()),
            reflection_alpha: reflection::v1alpha::Server::new(described.clone()),
        })
    })
}

impl Services for Routes {
    fn route(&self, request: Request<RequestBody>) -> LocalBoxFuture<'static, Response<Body>> {
        #[cfg(debug_assertions)]
        super::faults::inject(request.headers());
        let path = request.uri().path();
        let service = path.strip_prefix('/').and_then(|path| path.split_once('/')).map(|(name, _)| name);
        match service {
            Some(name) if name == self.broker.name() => call(&self.broker, request),
            Some(name) if name == self.admin.name() => call(&self.admin, request),
            Some(name) if name == self.health.name() => call(&self.health, request),
            Some(name) if name == self.reflection.name() => call(&self.reflection, request),
            Some(name) if name == self.reflection_alpha.name() => call(&self.reflection_alpha, request),
            _ => {
                let status =
                    Status::new(Code::Unimplemented, "no such service; list them by server reflection");
                std::future::ready(status.into_http()).boxed_local()
            }
        }
    }
}

/// A generated server, which never fails itself.
fn call<S>(server: &S, request: Request<RequestBody>) -> LocalBoxFuture<'static, Response<Body>>
where
    S: Service<Request<RequestBody>, Response = Response<Body>, Error = std::convert::Infallible>
        + Clone
        + 'static,
{
    let mut server = server.clone();
    async move {
        match server.call(request).await {
            Ok(mut response) => {
                let headers = response.headers_mut();
                // What the generated servers say of a method that they do not know.
                if headers.get("grpc-status").is_some_and(|status| status == "12")
                    && !headers.contains_key("grpc-message")
                {
                    let text = "no such method; list them by server reflection";
                    headers.insert("grpc-message", HeaderValue::from_static(text));
                }
                response
            }
            Err(never) => match never {},
        }
    }
    .boxed_local()
}

/// The name under which requests come.
trait Named {
    fn name(&self) -> &'static str;
}

impl<S: NamedService> Named for S {
    fn name(&self) -> &'static str {
        S::NAME
    }
}
