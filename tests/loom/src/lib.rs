//! `RUSTFLAGS="--cfg loom" cargo test --release --manifest-path tests/loom/Cargo.toml`

#[path = "../../../src/ring/mod.rs"]
pub mod ring;
