use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use send_wrapper::SendWrapper;
use tonic::{Request, Response, Status};

use super::process::ProcessFigures;
use crate::core::{Answer, Input, Stats};
use crate::frontend::{Failure, Frontend, FrontendCounters};
use crate::proto::admin_server::Admin;
use crate::proto::{GetServerInfoRequest, GetServerInfoResponse, GetStatsRequest, GetStatsResponse};
use crate::shard::{Layout, Phase};

/// What is fixed when the process starts.
pub struct ServerFacts {
    pub layout: Layout,
    pub max_pending_bytes: u64,
    pub started: Instant,
    /// Of every frontend.
    pub counters: Vec<Arc<FrontendCounters>>,
}

/// The admin service on one connection. Tonic wants it Send; it never leaves its executor.
#[derive(Clone)]
pub struct AdminService {
    frontend: SendWrapper<Rc<Frontend>>,
    facts: Arc<ServerFacts>,
}

impl AdminService {
    pub fn new(frontend: Rc<Frontend>, facts: Arc<ServerFacts>) -> Self {
        AdminService { frontend: SendWrapper::new(frontend), facts }
    }
}

/// Asks every shard and adds up.
async fn stats(frontend: Rc<Frontend>, shards: usize) -> Result<Stats, Failure> {
    let ask = |shard| frontend.ask(shard, |ticket| Input::Stats { ticket });
    let mut total = Stats::default();
    for answer in join_all((0..shards).map(ask)).await {
        match answer? {
            Answer::Stats(stats) => total.add(&stats),
            _ => return Err(Failure::Internal),
        }
    }
    Ok(total)
}

#[tonic::async_trait]
impl Admin for AdminService {
    async fn get_server_info(
        &self,
        _: Request<GetServerInfoRequest>,
    ) -> Result<Response<GetServerInfoResponse>, Status> {
        let facts = &self.facts;
        Ok(Response::new(GetServerInfoResponse {
            version: env!("CARGO_PKG_VERSION").into(),
            uptime: facts.started.elapsed().try_into().ok(),
            shards: facts.layout.shards as u32,
            frontends: facts.layout.frontends as u32,
            cores: facts.layout.cores.iter().map(|&core| core as u32).collect(),
            max_message_bytes: self.frontend.bounds.max_message_bytes as u64,
            max_pending: self.frontend.bounds.max_pending,
            max_pending_bytes: facts.max_pending_bytes,
            draining: self.frontend.phase() != Phase::Serving,
            memory_limit_bytes: self.frontend.node.shared.memory.limit(),
        }))
    }

    async fn get_stats(&self, _: Request<GetStatsRequest>) -> Result<Response<GetStatsResponse>, Status> {
        let connections = self.frontend.node.shared.all_connections() as u64;
        let stats = stats(Rc::clone(&self.frontend), self.facts.layout.shards);
        let stats = SendWrapper::new(stats).await?;
        let merges = ("pattern_index_merges", stats.pattern_index_merges);
        let mut counters: HashMap<String, u64> = HashMap::new();
        let frontends = self.facts.counters.iter().flat_map(|counters| counters.named());
        for (name, count) in stats.counters.named().chain([merges]).chain(frontends) {
            *counters.entry(name.into()).or_default() += count;
        }
        let process = ProcessFigures::read();
        Ok(Response::new(GetStatsResponse {
            connections,
            subscriptions: stats.subscriptions,
            members: stats.members,
            standbys: stats.standbys,
            waiting: stats.waiting,
            in_flight: stats.in_flight,
            patterns: stats.patterns,
            held_bytes: stats.held_bytes,
            counters,
            cpu_time: process.cpu_time.and_then(|time| time.try_into().ok()),
            resident_bytes: process.resident_bytes,
            peak_resident_bytes: process.peak_resident_bytes,
            open_descriptors: process.open_descriptors,
            parked: stats.parked,
            message_bytes: self.frontend.node.shared.memory.held(),
        }))
    }
}
