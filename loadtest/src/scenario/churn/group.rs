//! A group whose members come and go.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::sync::oneshot;
use tokio::task::spawn_local;

use super::stalls::Waits;
use super::{PROMOTION, Parting, Tally};
use crate::client::{CallError, Connection};
use crate::clock::{self, Nanos};
use crate::crew::Station;
use crate::failure::{Doing, Failure};
use crate::pacer::Schedule;
use crate::payload::Stamp;
use crate::recorder::timed;
use crate::role::{Arrival, Session, Worker};
use crate::window::Window;

/// How long a member that ends politely goes on listening after its last word, so that the word leaves.
const LAST_WORD: Duration = Duration::from_millis(5);

/// A group, before its thread is there.
pub struct Seed {
    pub number: usize,
    pub worker: Worker,
    /// One member is there from before the first message to the end. Without, the next one comes before the last leaves.
    pub has_permanent: bool,
}

/// How often members come, over all groups.
#[derive(Clone)]
pub struct Churn {
    pub rate: f64,
    pub groups: usize,
    pub tally: Arc<Mutex<Tally>>,
}

struct Group {
    seed: Seed,
    churn: Churn,
    station: Rc<Station>,
    /// That of all members but those that will be cut.
    connection: Rc<Connection>,
    window: Cell<Window>,
    waits: RefCell<Waits>,
    /// When a member left last.
    left: Cell<Nanos>,
}

/// Tells a member to leave; without it, the member stays.
type Leave = oneshot::Sender<()>;

/// A member whose first event has come.
struct Guest {
    session: Session,
    connection: Rc<Connection>,
    parting: Parting,
}

/// Lives the groups of one connection, to the end.
pub async fn run(seeds: Vec<Seed>, churn: Churn, station: Rc<Station>) -> Result<(), Failure> {
    let connection = Rc::new(Connection::open(&station.trial.address).await.doing("connecting members")?);
    let mut groups = Vec::with_capacity(seeds.len());
    for seed in seeds {
        let group = Rc::new(Group {
            seed,
            churn: churn.clone(),
            station: Rc::clone(&station),
            connection: Rc::clone(&connection),
            window: Cell::default(),
            waits: RefCell::default(),
            left: Cell::default(),
        });
        if group.seed.has_permanent {
            group.come(Parting::Cancel).await?;
        }
        let leave = group.come(group.parting(0)).await?;
        groups.push((group, leave));
    }
    let window = station.start().await;
    groups.iter().for_each(|(group, _)| group.window.set(window));
    try_join_all(groups.iter_mut().map(|(group, leave)| group.live(leave, window))).await?;
    std::future::pending().await
}

impl Group {
    fn parting(&self, turn: usize) -> Parting {
        Parting::in_turns(self.seed.number + turn)
    }

    /// Each time one comes and the one before leaves.
    async fn live(self: &Rc<Self>, leave: &mut Leave, window: Window) -> Result<(), Failure> {
        let Churn { rate, groups, .. } = self.churn;
        let mut schedule = Schedule::new(window.start, rate, self.seed.number, groups);
        let mut turn = 0;
        while schedule.due() < window.until {
            clock::sleep_until(schedule.due()).await;
            schedule.take(clock::now());
            turn += 1;
            let next = self.come(self.parting(turn)).await?;
            // It may have failed, which the trial knows.
            let _ = std::mem::replace(leave, next).send(());
        }
        Ok(())
    }

    /// A new member, which works until it is told to leave.
    async fn come(self: &Rc<Self>, parting: Parting) -> Result<Leave, Failure> {
        let connection = match parting {
            Parting::Cut => {
                Rc::new(Connection::open(&self.station.trial.address).await.doing("connecting a member")?)
            }
            Parting::Cancel | Parting::Polite => Rc::clone(&self.connection),
        };
        let began = clock::now();
        let open = self.seed.worker.open.clone();
        let mut session = Session::begin(&connection, open).await.doing("opening a member's stream")?;
        // Where another is active, it hears that it stands in line.
        next(&mut session).await.doing("waiting for a member's first event")?;
        let now = clock::now();
        self.station.recorder.borrow_mut().took(timed::OPEN, began, now);
        self.tally(|tally| tally.joined += 1);

        let (leave, told) = oneshot::channel();
        let group = Rc::clone(self);
        spawn_local(async move {
            let guest = Guest { session, connection, parting };
            if let Err(failure) = group.host(guest, until(told)).await {
                group.station.trial.fail(failure);
            }
        });
        Ok(leave)
    }

    /// A member's life.
    async fn host(self: &Rc<Self>, guest: Guest, told: impl Future<Output = ()>) -> Result<(), Failure> {
        let Guest { mut session, connection, parting } = guest;
        tokio::pin!(told);
        let worker = self.seed.worker.clone();
        if session.subscription_id.is_empty() {
            tokio::select! {
                promoted = self.promotion(&mut session) => promoted.doing("waiting for a promotion")?,
                () = &mut told => {
                    // For the broker it may have been active: its promotion, and messages, may be on their way.
                    let session = worker.sit_down(session, &self.station).give_up();
                    self.end(session, &connection, parting).await;
                    return Ok(());
                }
            }
        }
        let group = Rc::clone(self);
        let watch = Box::new(move |stamp: &Stamp, now| group.came(stamp.intended, now));
        let mut desk = worker.sit_down(session, &self.station).watched_by(watch);
        match parting {
            Parting::Polite => desk.work_until(&connection, told).await?,
            Parting::Cancel | Parting::Cut => tokio::select! {
                ended = desk.work(&connection) => ended?,
                () = told => {}
            },
        }
        self.end(desk.give_up(), &connection, parting).await;
        Ok(())
    }

    /// Waits until the member is active.
    async fn promotion(&self, session: &mut Session) -> Result<(), CallError> {
        while session.subscription_id.is_empty() {
            next(session).await?;
        }
        self.station.recorder.borrow_mut().took(PROMOTION, self.left.get(), clock::now());
        Ok(())
    }

    async fn end(&self, mut session: Session, connection: &Connection, parting: Parting) {
        if parting == Parting::Polite {
            // Where the stream has ended meanwhile, there is nothing to be polite to.
            let _ = session.sender.finish();
            tokio::time::sleep(LAST_WORD).await;
        }
        self.left.set(clock::now());
        match parting {
            Parting::Cut => connection.cut(),
            Parting::Cancel | Parting::Polite => session.cancel(),
        }
        self.tally(|tally| *tally.left.entry(parting).or_default() += 1);
    }

    fn came(&self, intended: Nanos, now: Nanos) {
        if self.window.get().measures(intended) {
            let mut tally = lock(&self.churn.tally);
            self.waits.borrow_mut().came(intended, now, &mut tally.stalls);
        }
    }

    /// Counts what is done while it is measured.
    fn tally(&self, count: impl FnOnce(&mut Tally)) {
        if self.window.get().measures(clock::now()) {
            count(&mut lock(&self.churn.tally));
        }
    }
}

async fn next(session: &mut Session) -> Result<Arrival, CallError> {
    session
        .next()
        .await?
        .ok_or_else(|| CallError::Protocol("the broker ended a member's stream with OK".into()))
}

/// Until it is told; without end where nobody is left who could tell.
async fn until(told: oneshot::Receiver<()>) {
    if told.await.is_err() {
        std::future::pending().await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
