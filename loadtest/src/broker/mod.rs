//! The broker under test: started here, or running somewhere.

mod spawn;
mod usage;

use std::path::PathBuf;
use std::time::Duration;

use crate::client::{Connection, rpc};
use crate::failure::{Doing, Failure, within};
use crate::proto::{GetServerInfoRequest, GetServerInfoResponse, GetStatsRequest, GetStatsResponse};
use spawn::Spawned;
use usage::Source;
pub use usage::Usage;

/// Which broker is to be measured.
#[derive(Debug, Clone)]
pub enum Target {
    /// One that runs; with its process where it is on this machine.
    Running { address: String, pid: Option<u32> },
    /// One of our own for every run, from this program, with more arguments of `serve`.
    Spawn { program: PathBuf, arguments: Vec<String> },
}

impl Target {
    /// What a broker that is started here is told beside its address; none where it runs already.
    pub fn arguments(&self) -> Option<Vec<String>> {
        match self {
            Target::Running { .. } => None,
            Target::Spawn { arguments, .. } => Some(arguments.clone()),
        }
    }
}

/// How long a broker may take to answer what it is asked about itself, even under load.
const PATIENCE: Duration = Duration::from_secs(10);
const ANSWER: &str = "an answer of the broker";

async fn connect(address: &str) -> Result<Connection, Failure> {
    Connection::open(address).await.doing("reaching the broker")
}

/// A broker that takes load.
pub struct Broker {
    address: String,
    source: Source,
    /// Ended when it is dropped.
    spawned: Option<Spawned>,
}

impl Broker {
    pub async fn new(target: &Target) -> Result<Broker, Failure> {
        match target {
            Target::Running { address, pid } => {
                let source = match pid {
                    Some(pid) => Source::Process(*pid),
                    None => Source::Metrics(Box::new(within(PATIENCE, ANSWER, connect(address)).await?)),
                };
                Ok(Broker { address: address.clone(), source, spawned: None })
            }
            Target::Spawn { program, arguments } => {
                let spawned = Spawned::start(program, arguments).await?;
                let source = Source::Process(spawned.pid());
                Ok(Broker { address: spawned.address().to_owned(), source, spawned: Some(spawned) })
            }
        }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether it was started here, so that nobody else uses it.
    pub fn is_own(&self) -> bool {
        self.spawned.is_some()
    }

    /// Where [`Broker::usage`] comes from.
    pub fn source(&self) -> &'static str {
        match self.source {
            Source::Process(_) => "/proc",
            Source::Metrics(_) => "metrics",
        }
    }

    /// What the broker has used until now.
    pub async fn usage(&self) -> Result<Usage, Failure> {
        within(PATIENCE, ANSWER, self.source.usage()).await
    }

    pub async fn info(&self) -> Result<GetServerInfoResponse, Failure> {
        let asked = async {
            let connection = connect(&self.address).await?;
            connection
                .unary(rpc::SERVER_INFO, &GetServerInfoRequest {})
                .await
                .doing("asking what the broker is")
        };
        within(PATIENCE, ANSWER, asked).await
    }

    /// Its own gauges and counters.
    pub async fn stats(&self) -> Result<GetStatsResponse, Failure> {
        let asked = async {
            let connection = connect(&self.address).await?;
            connection.unary(rpc::STATS, &GetStatsRequest {}).await.doing("asking the broker for its metrics")
        };
        within(PATIENCE, ANSWER, asked).await
    }

    /// Ends a broker that was started here, and waits for its end.
    pub async fn end(self) -> Result<(), Failure> {
        match self.spawned {
            Some(spawned) => spawned.end().await,
            None => Ok(()),
        }
    }
}
