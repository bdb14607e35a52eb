//! Compiles the wire contract, without protoc.

use std::path::PathBuf;

const PROTOS: [&str; 2] = ["tinybroker/v1/service.proto", "tinybroker/v1/admin.proto"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(PROTOS, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    tonic_prost_build::configure().build_transport(false).bytes(".").compile_fds(descriptors)?;
    Ok(())
}
