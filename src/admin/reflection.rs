//! Server reflection, v1 and v1alpha: what grpcurl and its like ask first.
//!
//! The two versions are the same but for their package, so one macro writes both.

use std::sync::Arc;

use prost_reflect::DescriptorPool;

use crate::proto;

/// Every file that the server can describe.
#[derive(Clone)]
pub struct Described {
    pool: Arc<DescriptorPool>,
}

impl Described {
    /// The contract, health and reflection itself.
    pub fn new() -> Result<Self, prost_reflect::DescriptorError> {
        let mut pool = DescriptorPool::decode(proto::DESCRIPTORS)?;
        for set in [
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
        ] {
            pool.decode_file_descriptor_set(set)?;
        }
        Ok(Described { pool: Arc::new(pool) })
    }

    fn services(&self) -> Vec<String> {
        self.pool.services().map(|service| service.full_name().to_owned()).collect()
    }

    /// The file of this name, with all that it imports.
    fn file(&self, name: &str) -> Option<Vec<Vec<u8>>> {
        self.pool.get_file_by_name(name).map(|file| with_imports(&file))
    }

    /// The file that defines this message, enum, service, method or field.
    fn symbol(&self, name: &str) -> Option<Vec<Vec<u8>>> {
        let pool = &self.pool;
        let found = |name: &str| {
            let message = pool.get_message_by_name(name).map(|message| message.parent_file());
            let service = || pool.get_service_by_name(name).map(|service| service.parent_file());
            let kind = || pool.get_enum_by_name(name).map(|kind| kind.parent_file());
            message.or_else(service).or_else(kind)
        };
        // A method or a field is found by what it belongs to.
        let parent = || name.rsplit_once('.').and_then(|(parent, _)| found(parent));
        found(name).or_else(parent).map(|file| with_imports(&file))
    }
}

fn with_imports(file: &prost_reflect::FileDescriptor) -> Vec<Vec<u8>> {
    let mut files = vec![file.clone()];
    let mut next = 0;
    while let Some(file) = files.get(next).cloned() {
        for import in file.dependencies() {
            if !files.contains(&import) {
                files.push(import);
            }
        }
        next += 1;
    }
    files.iter().map(|file| file.encode_to_vec()).collect()
}

macro_rules! reflection {
    ($version:ident) => {
        pub mod $version {
            use std::pin::Pin;

            use futures_util::{Stream, StreamExt};
            use tonic::{Code, Request, Response, Status, Streaming};
            use tonic_reflection::pb::$version::server_reflection_request::MessageRequest;
            use tonic_reflection::pb::$version::server_reflection_response::MessageResponse;
            use tonic_reflection::pb::$version::{
                ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse,
                ServerReflectionRequest, ServerReflectionResponse, ServiceResponse,
                server_reflection_server::{ServerReflection, ServerReflectionServer},
            };

            use super::Described;

            /// The server of this version.
            pub type Server = ServerReflectionServer<Described>;

            fn files(found: Option<Vec<Vec<u8>>>, name: &str) -> MessageResponse {
                match found {
                    Some(file_descriptor_proto) => {
                        MessageResponse::FileDescriptorResponse(FileDescriptorResponse {
                            file_descriptor_proto,
                        })
                    }
                    None => not_found(format!("nothing is described by this name ({} bytes)", name.len())),
                }
            }

            fn not_found(error_message: String) -> MessageResponse {
                MessageResponse::ErrorResponse(ErrorResponse {
                    error_code: Code::NotFound as i32,
                    error_message,
                })
            }

            fn answer(described: &Described, request: ServerReflectionRequest) -> ServerReflectionResponse {
                let response = match &request.message_request {
                    Some(MessageRequest::FileByFilename(name)) => files(described.file(name), name),
                    Some(MessageRequest::FileContainingSymbol(name)) => files(described.symbol(name), name),
                    Some(MessageRequest::FileContainingExtension(_)) => {
                        not_found("the contract has no extensions".into())
                    }
                    Some(MessageRequest::AllExtensionNumbersOfType(name)) => {
                        let base_type_name = name.clone();
                        MessageResponse::AllExtensionNumbersResponse(ExtensionNumberResponse {
                            base_type_name,
                            extension_number: Vec::new(),
                        })
                    }
                    Some(MessageRequest::ListServices(_)) => {
                        let service = described.services().into_iter().map(|name| ServiceResponse { name });
                        MessageResponse::ListServicesResponse(ListServiceResponse {
                            service: service.collect(),
                        })
                    }
                    None => MessageResponse::ErrorResponse(ErrorResponse {
                        error_code: Code::InvalidArgument as i32,
                        error_message: "message_request is empty; ask for something".into(),
                    }),
                };
                ServerReflectionResponse {
                    valid_host: request.host.clone(),
                    original_request: Some(request),
                    message_response: Some(response),
                }
            }

            #[tonic::async_trait]
            impl ServerReflection for Described {
                type ServerReflectionInfoStream =
                    Pin<Box<dyn Stream<Item = Result<ServerReflectionResponse, Status>> + Send>>;

                async fn server_reflection_info(
                    &self,
                    request: Request<Streaming<ServerReflectionRequest>>,
                ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
                    let described = self.clone();
                    let answers = request.into_inner().map(move |request| Ok(answer(&described, request?)));
                    Ok(Response::new(Box::pin(answers)))
                }
            }
        }
    };
}

reflection!(v1);
reflection!(v1alpha);
