//! The messages as everybody generates them; the server apart, since its events are encoded already.

use tonic_build::manual::{Builder, Method, Service};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=../../proto");
    let descriptors = protox::compile(["tinybroker/v1/service.proto", "tinybroker/v1/admin.proto"], ["../../proto"])?;
    tonic_prost_build::configure()
        .build_client(false)
        .build_server(false)
        .bytes(".")
        .compile_fds(descriptors)?;
    let method = |name: &str, route: &str, input: &str| {
        Method::builder().name(name).route_name(route).input_type(format!("crate::proto::{input}"))
    };
    let codec = "tonic_prost::ProstCodec";
    let broker = Service::builder()
        .name("Broker")
        .package("tinybroker.v1")
        .method(
            method("publish", "Publish", "PublishRequest")
                .output_type("crate::proto::PublishResponse")
                .codec_path(codec)
                .build(),
        )
        .method(
            method("publish_stream", "PublishStream", "PublishRequest")
                .output_type("crate::proto::PublishConfirm")
                .codec_path(codec)
                .client_streaming()
                .server_streaming()
                .build(),
        )
        .method(
            method("subscribe", "Subscribe", "SubscribeCommand")
                .output_type("bytes::Bytes")
                .codec_path("crate::EventCodec")
                .client_streaming()
                .server_streaming()
                .build(),
        )
        .build();
    let admin = Service::builder()
        .name("Admin")
        .package("tinybroker.v1")
        .method(
            method("get_server_info", "GetServerInfo", "GetServerInfoRequest")
                .output_type("crate::proto::GetServerInfoResponse")
                .codec_path(codec)
                .build(),
        )
        .build();
    Builder::new().build_client(false).compile(&[broker, admin]);
    Ok(())
}
