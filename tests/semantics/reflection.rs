//! SPEC §5: server reflection, v1 and v1alpha.

use prost::Message as _;
use prost_types::FileDescriptorProto;

use crate::support::*;

macro_rules! tests_of_version {
    ($version:ident) => {
        mod $version {
            use tonic_reflection::pb::$version::ServerReflectionRequest;
            use tonic_reflection::pb::$version::server_reflection_client::ServerReflectionClient;
            use tonic_reflection::pb::$version::server_reflection_request::MessageRequest;
            use tonic_reflection::pb::$version::server_reflection_response::MessageResponse;

            use super::*;

            async fn ask(question: MessageRequest) -> MessageResponse {
                let broker = Broker::start();
                let mut client = ServerReflectionClient::new(broker.channel().await);
                let message_request = Some(question);
                let request = ServerReflectionRequest { message_request, ..Default::default() };
                let answers = client.server_reflection_info(tokio_stream::iter([request])).await;
                let answer = answers.expect("reflection is served").into_inner().message().await;
                answer.expect("it goes on").expect("an answer").message_response.expect("of some kind")
            }

            async fn files(question: MessageRequest) -> Vec<FileDescriptorProto> {
                match ask(question).await {
                    MessageResponse::FileDescriptorResponse(files) => decoded(&files.file_descriptor_proto),
                    other => panic!("files were asked for, {other:?} came"),
                }
            }

            #[tokio::test]
            async fn services_are_listed() {
                let answer = ask(MessageRequest::ListServices(String::new())).await;
                let MessageResponse::ListServicesResponse(list) = answer else { panic!("{answer:?}") };
                let names: Vec<_> = list.service.iter().map(|service| service.name.as_str()).collect();
                for name in SERVICES {
                    assert!(names.contains(&name), "{name} is not in {names:?}");
                }
            }

            #[tokio::test]
            async fn a_file_comes_by_symbol_with_all_that_it_imports() {
                for symbol in [
                    "tinybroker.v1.Broker",
                    "tinybroker.v1.Broker.Publish",
                    "tinybroker.v1.Message",
                    "tinybroker.v1.DeliveryMode",
                    "grpc.health.v1.Health",
                ] {
                    assert_complete(&files(MessageRequest::FileContainingSymbol(symbol.into())).await);
                }
            }

            #[tokio::test]
            async fn a_file_comes_by_name() {
                let name = "tinybroker/v1/client.proto";
                let found = files(MessageRequest::FileByFilename(name.into())).await;
                assert_eq!(found[0].name(), name);
                assert_complete(&found);
            }

            #[tokio::test]
            async fn an_unknown_symbol_is_not_found() {
                let answer = ask(MessageRequest::FileContainingSymbol("nonsense.Nothing".into())).await;
                let MessageResponse::ErrorResponse(error) = answer else { panic!("{answer:?}") };
                assert_eq!(error.error_code, tonic::Code::NotFound as i32);
            }
        }
    };
}

const SERVICES: [&str; 4] = [
    "tinybroker.v1.Broker",
    "tinybroker.v1.Admin",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
];

fn decoded(files: &[Vec<u8>]) -> Vec<FileDescriptorProto> {
    files.iter().map(|file| FileDescriptorProto::decode(&file[..]).expect("a file descriptor")).collect()
}

/// Every import is among the files.
fn assert_complete(files: &[FileDescriptorProto]) {
    let names: Vec<_> = files.iter().map(FileDescriptorProto::name).collect();
    assert!(!names.is_empty());
    for import in files.iter().flat_map(|file| &file.dependency) {
        assert!(names.contains(&import.as_str()), "{import} is not in {names:?}");
    }
}

tests_of_version!(v1);
tests_of_version!(v1alpha);
