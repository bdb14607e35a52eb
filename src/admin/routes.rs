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

use super::health::BROKER;
use super::info::{AdminService, ServerFacts};
use super::reflection::{self, Described};
use crate::frontend::{MakeServices, RequestBody, Services};
use crate::proto::admin_server::AdminServer;

/// The services of one connection beside the Broker service, found by the first part of a request's path.
struct Routes {
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
    Box::new(move |frontend| {
        let admin = AdminService::new(frontend.clone(), facts.clone());
        Rc::new(Routes {
            admin: AdminServer::new(admin),
            health: health.clone(),
            reflection: reflection::v1::Server::new(described.clone()),
            reflection_alpha: reflection::v1alpha::Server::new(described.clone()),
        })
    })
}

impl Services for Routes {
    #[cfg(debug_assertions)]
    fn begin(&self, headers: &http::HeaderMap) {
        super::faults::inject(headers);
    }

    #[cfg(not(debug_assertions))]
    fn begin(&self, _: &http::HeaderMap) {}

    fn route(&self, request: Request<RequestBody>) -> LocalBoxFuture<'static, Response<Body>> {
        let path = request.uri().path();
        let service = path.strip_prefix('/').and_then(|path| path.split_once('/')).map(|(name, _)| name);
        match service {
            Some(name) if name == self.admin.name() => call(&self.admin, request),
            Some(name) if name == self.health.name() => call(&self.health, request),
            Some(name) if name == self.reflection.name() => call(&self.reflection, request),
            Some(name) if name == self.reflection_alpha.name() => call(&self.reflection_alpha, request),
            // The methods that it has do not come here.
            Some(BROKER) => unimplemented(NO_SUCH_METHOD),
            _ => unimplemented("no such service; list them by server reflection"),
        }
    }
}

const NO_SUCH_METHOD: &str = "no such method; list them by server reflection";

fn unimplemented(text: &str) -> LocalBoxFuture<'static, Response<Body>> {
    std::future::ready(Status::new(Code::Unimplemented, text).into_http()).boxed_local()
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
                    headers.insert("grpc-message", HeaderValue::from_static(NO_SUCH_METHOD));
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
