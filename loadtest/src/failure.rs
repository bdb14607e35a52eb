//! Why a run could not be made. A broken promise is no failure of the run: it is its result.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::client::CallError;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{doing}: {source}")]
    Call { doing: &'static str, source: CallError },
    #[error("{doing}: {source}")]
    Io { doing: String, source: io::Error },
    #[error(
        "{0} is not there; build it with `cargo build --release --workspace`, or name another with --spawn=PATH"
    )]
    NoBroker(PathBuf),
    #[error("the broker ended before it listened; what it said stands above")]
    BrokerEnded,
    #[error("{what} took more than {}", humantime::format_duration(*limit))]
    TooLong { what: String, limit: Duration },
    #[error("{0}")]
    Unexpected(String),
    #[error("{0}")]
    Usage(String),
}

/// What takes longer is given up.
pub async fn within<T>(
    limit: Duration,
    what: &str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let too_long = |_| Failure::TooLong { what: what.to_owned(), limit };
    tokio::time::timeout(limit, work).await.map_err(too_long)?
}

/// Names what was being done when a call failed.
pub trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, Failure>;
}

impl<T> Doing<T> for Result<T, CallError> {
    fn doing(self, doing: &'static str) -> Result<T, Failure> {
        self.map_err(|source| Failure::Call { doing, source })
    }
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T, Failure> {
        self.map_err(|source| Failure::Io { doing: doing.to_owned(), source })
    }
}
