//! Compiles the wire contract, without protoc.
//!
//! The Broker service is generated apart from the rest: its Subscribe stream carries events that
//! are encoded already (`EventCodec`), which the generator for proto services cannot say.

use std::path::PathBuf;

use tonic_build::manual::{Builder, Method, MethodBuilder, Service};

const PROTOS: [&str; 2] = ["tinybroker/v1/service.proto", "tinybroker/v1/admin.proto"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(PROTOS, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    tonic_prost_build::configure().build_transport(false).bytes(".").compile_fds(descriptors)?;
    Builder::new().build_client(false).compile(&[broker()]);
    Ok(())
}

fn broker() -> Service {
    const CODEC: &str = "crate::frontend::ProtoCodec";
    let unary = |name, route, request: &str, response: &str| {
        method(name, route, request).output_type(proto(response)).codec_path(CODEC).build()
    };
    Service::builder()
        .name("Broker")
        .package("tinybroker.v1")
        .method(
            raw_method("publish", "Publish")
                .output_type(proto("PublishResponse"))
                .codec_path("crate::frontend::RawCodec")
                .build(),
        )
        .method(
            raw_method("publish_stream", "PublishStream")
                .output_type(proto("PublishConfirm"))
                .codec_path("crate::frontend::RawCodec")
                .client_streaming()
                .server_streaming()
                .build(),
        )
        .method(unary("publish_batch", "PublishBatch", "PublishBatchRequest", "PublishBatchResponse"))
        .method(
            raw_method("subscribe", "Subscribe")
                .output_type("crate::frontend::WireEvent")
                .codec_path("crate::frontend::EventCodec")
                .client_streaming()
                .server_streaming()
                .build(),
        )
        .method(unary("ack", "Ack", "AckRequest", "AckResponse"))
        .method(unary("nack", "Nack", "NackRequest", "NackResponse"))
        .method(unary("extend", "Extend", "ExtendRequest", "ExtendResponse"))
        .build()
}

/// Its requests are read in place.
fn raw_method(name: &str, route: &str) -> MethodBuilder {
    Method::builder().name(name).route_name(route).input_type("prost::bytes::Bytes")
}

fn method(name: &str, route: &str, request: &str) -> MethodBuilder {
    Method::builder().name(name).route_name(route).input_type(proto(request))
}

fn proto(message: &str) -> String {
    format!("crate::proto::{message}")
}
