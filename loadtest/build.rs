//! Compiles the wire contract's messages, and notes which commit the load test was built from.

use std::process::Command;

const PROTOS: [&str; 2] = ["tinybroker/v1/service.proto", "tinybroker/v1/admin.proto"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=../proto");
    let descriptors = protox::compile(PROTOS, ["../proto"])?;
    prost_build::Config::new().bytes(["."]).compile_fds(descriptors)?;

    println!("cargo:rerun-if-changed=../.git/HEAD");
    println!("cargo:rerun-if-changed=../.git/logs/HEAD");
    println!("cargo:rustc-env=LOADTEST_COMMIT={}", commit().unwrap_or_else(|| "unknown".into()));
    Ok(())
}

/// The commit of the checkout; none outside of one.
fn commit() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
