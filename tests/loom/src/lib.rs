//! `RUSTFLAGS="--cfg loom" cargo test --release --manifest-path tests/loom/Cargo.toml --target-dir target/loom`

#[path = "../../../src/ring/mod.rs"]
pub mod ring;
