//! The members of a group, in the order in which they die.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ahash::AHashSet;
use tokio::sync::mpsc;

use super::body::{Body, Heard, Home, Mouth};
use super::hand_over::{HandOver, Id};
use super::word::{Taken, Word};
use super::{Mode, Toll, Way};
use crate::client::Connection;
use crate::clock::{self, Nanos};
use crate::crew::Station;
use crate::failure::{Doing, Failure};
use crate::ledger::{Delivered, Member, ReceiverId};
use crate::window::Window;

/// Whose members are killed, and how.
pub struct Group {
    pub receiver: ReceiverId,
    pub mode: Mode,
    pub topic: String,
    /// Members, but for the moment between a death and the next one's coming.
    pub size: u32,
    pub ways: Vec<Way>,
    pub kills: u32,
    /// Messages that a victim holds at least.
    pub held: usize,
    /// How long a hand-over may take.
    pub limit: Duration,
    pub toll: Arc<Mutex<Toll>>,
}

/// A member, as the one that will kill it knows it.
struct Place {
    number: u32,
    way: Way,
    body: Body,
    books: Member,
    /// It has been heard, so the broker knows of it.
    is_present: bool,
    is_holding: bool,
    held: AHashSet<Id>,
}

pub struct Line {
    group: Group,
    station: Rc<Station>,
    home: Home,
    /// The next victim first. In a SINGLETON group it is the active one, since they are promoted in this order.
    places: VecDeque<Place>,
    joined: u32,
    hand_over: Option<HandOver>,
    mouth: Mouth,
    ears: mpsc::UnboundedReceiver<Heard>,
}

impl Line {
    /// Kills one after the other while there is load, and goes on as a group without deaths.
    pub async fn run(group: Group, station: Rc<Station>) -> Result<(), Failure> {
        let mut line = Line::gather(group, station).await?;
        let window = line.station.start().await;
        for turn in 0..line.group.kills {
            line.listen(due(window, turn, line.group.kills), |_| false).await?;
            if !line.kill_first(window.until).await? {
                break;
            }
        }
        line.listen(Nanos::MAX, |_| false).await.map(drop)
    }

    async fn gather(group: Group, station: Rc<Station>) -> Result<Line, Failure> {
        let address = station.trial.address.clone();
        let shared = Rc::new(Connection::open(&address).await.doing("connecting members")?);
        let home = Home { address, topic: group.topic.clone(), mode: group.mode, shared };
        let (mouth, ears) = mpsc::unbounded_channel();
        let places = VecDeque::new();
        let mut line = Line { group, station, home, places, joined: 0, hand_over: None, mouth, ears };
        for _ in 0..line.group.size {
            line.join().await?;
            line.listen(Nanos::MAX, Line::all_present).await?;
        }
        Ok(line)
    }

    /// A new member, last in the line.
    async fn join(&mut self) -> Result<(), Failure> {
        let number = self.joined;
        self.joined += 1;
        let way = self.group.ways[number as usize % self.group.ways.len()];
        let books = self.station.trial.ledger.join(self.group.receiver);
        let body = Body::begin(way, &self.home, number, &self.mouth).await?;
        let held = AHashSet::new();
        self.places.push_back(Place { number, way, body, books, is_present: false, is_holding: false, held });
        Ok(())
    }

    /// Kills the first of the line, measures, and replaces it. False, and nothing measured, where the load ends
    /// before the victim holds enough.
    async fn kill_first(&mut self, until: Nanos) -> Result<bool, Failure> {
        if !self.listen(until, Line::all_present).await? {
            return Ok(false);
        }
        if let Some(victim) = self.places.front_mut() {
            victim.body.hold().await?;
        }
        let is_ready = self.listen(until, Line::victim_holds).await?;
        let Some(victim) = self.places.pop_front() else { return Ok(false) };
        let (number, way) = (victim.number, victim.way);
        // The ledger first: from the kill on, others may get what it held. What it has seen and not said by now is
        // not entered any more; that comes to another as a second attempt at first sight.
        victim.books.died();
        let killed = clock::now();
        victim.body.kill()?;
        if !is_ready {
            return Ok(false);
        }
        *self.toll().kills.entry(way).or_default() += 1;
        self.hand_over = Some(HandOver::new(way, killed, victim.held, self.group.mode == Mode::Singletons));
        self.listen(killed + clock::nanos(self.group.limit), Line::is_handed_on).await?;
        self.book_kill(number);
        self.join().await?;
        Ok(true)
    }

    fn toll(&self) -> MutexGuard<'_, Toll> {
        self.group.toll.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all_present(&self) -> bool {
        self.places.iter().all(|place| place.is_present)
    }

    fn victim_holds(&self) -> bool {
        self.places.front().is_some_and(|victim| victim.is_holding && victim.held.len() >= self.group.held)
    }

    fn is_handed_on(&self) -> bool {
        self.hand_over.as_ref().is_none_or(HandOver::is_complete)
    }

    fn book_kill(&mut self, victim: u32) {
        let Some(hand_over) = self.hand_over.take() else { return };
        let way = hand_over.way;
        let mut recorder = self.station.recorder.borrow_mut();
        // What has not come took at least as long as it was waited for.
        let limit = clock::nanos(self.group.limit);
        recorder.time(way.redelivery(), hand_over.redelivery().unwrap_or(limit));
        if self.group.mode == Mode::Singletons {
            recorder.time(way.promotion(), hand_over.promotion().unwrap_or(limit));
        }
        if !hand_over.is_complete() {
            let (missing, limit) = (hand_over.missing(), humantime::format_duration(self.group.limit));
            self.toll().wrong.push(format!(
                "of what member {victim} had when it died ({}), {missing} had not come to another after {limit}",
                way.killed()
            ));
        }
    }

    /// Books what members say until something is so. False where it is not by then.
    async fn listen(&mut self, deadline: Nanos, is_so: impl Fn(&Line) -> bool) -> Result<bool, Failure> {
        let over = clock::sleep_until(deadline);
        tokio::pin!(over);
        loop {
            if is_so(self) {
                return Ok(true);
            }
            tokio::select! {
                Some(heard) = self.ears.recv() => self.book(heard)?,
                () = &mut over => return Ok(false),
            }
        }
    }

    fn book(&mut self, Heard { number, said }: Heard) -> Result<(), Failure> {
        let Some(at) = self.places.iter().position(|place| place.number == number) else {
            // The last words of a dead one.
            return Ok(());
        };
        for word in said? {
            let place = &mut self.places[at];
            place.is_present = true;
            match word {
                Word::Present => {}
                Word::Holding => place.is_holding = true,
                Word::Active { at: moment } => self.promoted(at, moment),
                Word::Took(taken) => {
                    place.take(taken, &self.station);
                    if let Some(hand_over) = &mut self.hand_over {
                        hand_over.came((taken.lane, taken.sequence), taken.at);
                    }
                }
            }
        }
        Ok(())
    }

    /// The first frame came to the member at a place of the line.
    fn promoted(&mut self, place: usize, moment: Nanos) {
        if let Some(hand_over) = &mut self.hand_over {
            hand_over.promoted(moment);
        }
        if self.group.mode == Mode::Singletons && place > 0 {
            let [first, promoted] = [0, place].map(|place| self.places[place].number);
            self.toll()
                .wrong
                .push(format!("member {promoted} was promoted though member {first} stood before it"));
        }
    }
}

impl Place {
    fn take(&mut self, taken: Taken, station: &Station) {
        let Taken { at, lane, sequence, attempt, intended, acks } = taken;
        if self.books.delivered(lane, sequence, attempt) == Delivered::First {
            station.recorder.borrow_mut().delivered(intended, at);
        }
        if acks {
            self.books.acked(lane, sequence, false);
        } else {
            self.held.insert((lane, sequence));
        }
    }
}

/// When a victim is chosen: each in the middle of its share of what is measured.
fn due(window: Window, turn: u32, kills: u32) -> Nanos {
    let share = (window.until - window.measured_from) as f64 / f64::from(kills);
    window.measured_from + (share * (f64::from(turn) + 0.5)) as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_spread_over_what_is_measured() {
        let window = Window { start: 0, measured_from: 1000, until: 2000 };
        assert_eq!([0, 1, 2, 3].map(|turn| due(window, turn, 4)), [1125, 1375, 1625, 1875]);
    }
}
