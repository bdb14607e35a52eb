//! Faults on demand, in debug builds alone and only where `TINYBROKER_FAULTS=1`: the tests of the
//! panic policy need a handler and an executor that panic.

use std::sync::OnceLock;

use http::HeaderMap;

use crate::shard::runtime;

/// The header that asks for a fault.
const HEADER: &str = "tinybroker-fault";

pub fn inject(headers: &HeaderMap) {
    static ENABLED: OnceLock<bool> = OnceLock::new();
    let Some(fault) = headers.get(HEADER) else { return };
    if !*ENABLED.get_or_init(|| std::env::var_os("TINYBROKER_FAULTS").is_some_and(|value| value == "1")) {
        return;
    }
    match fault.as_bytes() {
        b"handler" => panic!("a fault was asked for in a handler"),
        b"executor" => runtime::spawn_pump(async { panic!("a fault was asked for in an executor") }),
        _ => {}
    }
}
