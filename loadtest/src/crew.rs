//! The threads of a load test and what runs on them.
//!
//! A role is an async function that lives on one thread with its connections: a publisher, a worker, a
//! connection full of subscribers. Few threads run many roles.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use futures_util::future::LocalBoxFuture;
use tokio::runtime::Builder;
use tokio::task::{LocalSet, spawn_local};

use crate::failure::Failure;
use crate::recorder::Recorder;
use crate::trial::Trial;
use crate::window::Window;

type Role = Box<dyn FnOnce(Rc<Station>) -> LocalBoxFuture<'static, Result<(), Failure>> + Send>;

/// What the roles of one thread share.
pub struct Station {
    pub trial: Arc<Trial>,
    pub recorder: RefCell<Recorder>,
}

impl Station {
    /// Says that this role is ready and waits for the go.
    pub async fn start(&self) -> Window {
        self.trial.ready();
        let window = self.trial.running().await;
        self.recorder.borrow_mut().begin(window);
        window
    }
}

/// Roles, dealt to threads.
pub struct Crew {
    threads: Vec<Vec<(Role, bool)>>,
    next: usize,
}

impl Crew {
    pub fn new(threads: usize) -> Self {
        Crew { threads: (0..threads.max(1)).map(|_| Vec::new()).collect(), next: 0 }
    }

    /// A role that ends by itself, such as a publisher: the run goes on until all of them have.
    /// It must call [`Station::start`] once, and so must every other role.
    pub fn active<F>(&mut self, role: impl FnOnce(Rc<Station>) -> F + Send + 'static)
    where
        F: Future<Output = Result<(), Failure>> + 'static,
    {
        self.add(Box::new(move |station| Box::pin(role(station))), true);
    }

    /// A role that goes on until the run is over and is then dropped, such as a worker.
    pub fn passive<F>(&mut self, role: impl FnOnce(Rc<Station>) -> F + Send + 'static)
    where
        F: Future<Output = Result<(), Failure>> + 'static,
    {
        self.add(Box::new(move |station| Box::pin(role(station))), false);
    }

    fn add(&mut self, role: Role, is_active: bool) {
        let thread = self.next % self.threads.len();
        self.next += 1;
        self.threads[thread].push((role, is_active));
    }

    /// Starts all threads. Each ends, with what it recorded, when the trial has stopped.
    pub(crate) fn start(self, trial: Arc<Trial>) -> Vec<JoinHandle<Recorder>> {
        let active = self.threads.iter().flatten().filter(|(_, is_active)| *is_active).count();
        trial.expect(self.threads.iter().map(Vec::len).sum(), active);
        let start = |roles| {
            let trial = Arc::clone(&trial);
            thread::spawn(move || run(roles, trial))
        };
        self.threads.into_iter().map(start).collect()
    }
}

fn run(roles: Vec<(Role, bool)>, trial: Arc<Trial>) -> Recorder {
    let station = Rc::new(Station { trial: Arc::clone(&trial), recorder: RefCell::default() });
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(source) => {
            trial.fail(Failure::Io { doing: "starting a thread".into(), source });
            return Recorder::default();
        }
    };
    let local = LocalSet::new();
    for (role, is_active) in roles {
        let role = role(Rc::clone(&station));
        let trial = Arc::clone(&trial);
        local.spawn_local(async move {
            // A task of its own, so that a panic is seen: it would look like messages lost by the broker.
            match spawn_local(role).await {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => trial.fail(failure),
                Err(panic) => {
                    trial.fail(Failure::Unexpected(format!("a part of the load test failed: {panic}")))
                }
            }
            if is_active {
                trial.active_ended();
            }
        });
    }
    local.block_on(&runtime, trial.stopped());
    // Streams and connections end here.
    drop(local);
    runtime.block_on(tokio::task::yield_now());
    station.recorder.take()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::broker::{Broker, Target};
    use crate::ledger::LedgerPlan;
    use crate::progress::Progress;
    use crate::window::Timing;

    async fn panics(station: Rc<Station>) -> Result<(), Failure> {
        station.start().await;
        panic!("planted")
    }

    #[tokio::test]
    async fn a_panic_ends_the_run_and_accuses_nobody() {
        let target = Target::Running { address: "nowhere:1".into(), pid: Some(std::process::id()) };
        let broker = Broker::new(&target).await.expect("this process is there");
        let trial = Trial::new(&broker, LedgerPlan::new().build(), 1);
        let mut crew = Crew::new(1);
        crew.passive(panics);
        let measured = Duration::from_millis(50);
        let timing = Timing { warm_up: Duration::ZERO, measured, drain: measured };
        let result = trial.conduct(crew, &broker, timing, &Progress::new()).await.map(drop);
        assert!(matches!(&result, Err(Failure::Unexpected(what)) if what.contains("planted")), "{result:?}");
    }
}
