//! How the broker by chance breaks a promise.

use super::{Fate, Kind, Message, Worker, World};

/// A promise to be broken once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A waiting message is forgotten.
    Lose,
    /// An ack is carried out, but the message comes again.
    Double,
    /// What one member holds goes to another too.
    Share,
    /// Two messages of a lane change places on their way to a member.
    Swap,
    /// A refused publish is kept all the same.
    Ghost,
}

impl World {
    /// Breaks the promise that is to be broken, if this is a moment for it.
    pub(super) fn plant(&mut self, group: usize) {
        match self.fault {
            Some(Fault::Lose) => self.lose(group),
            Some(Fault::Double) if self.kind == Kind::Multi => self.double(group),
            Some(Fault::Share) => self.share(group),
            Some(Fault::Swap) => self.swap(group),
            // These come with what happens by itself.
            Some(Fault::Ghost | Fault::Double) | None => {}
        }
    }

    /// From here nobody dies any more, for a death may excuse what was done.
    pub(super) fn planted(&mut self) {
        self.fault = None;
        self.members_die = false;
    }

    fn lose(&mut self, group: usize) {
        let queue = &mut self.groups[group].queue;
        let is_owed = |message: &&Message| message.fate == Fate::Confirmed && message.attempt == 0;
        let Some(position) = queue.values().find(is_owed).map(|message| message.position) else { return };
        queue.remove(&position);
        self.planted();
    }

    fn double(&mut self, group: usize) {
        let socket = &mut self.groups[group].workers[0].socket;
        let Some(&message) = socket.front() else { return };
        socket.push_back(message);
        self.planted();
    }

    fn share(&mut self, group: usize) {
        let workers = &mut self.groups[group].workers;
        let holds = |worker: &Worker| worker.member.is_some() && !worker.held.is_empty();
        let Some(holder) = workers.iter().position(holds) else { return };
        let other = (0..workers.len()).find(|&at| at != holder && workers[at].member.is_some());
        let Some(other) = other else { return };
        let mut message = workers[holder].held[0];
        message.attempt += 1;
        workers[other].in_flight.insert(message.position, message);
        workers[other].socket.push_front(message);
        self.planted();
        self.read_at(group, other);
    }

    fn swap(&mut self, group: usize) {
        let owed = |message: &Message| {
            message.attempt == 1 && message.fate == Fate::Confirmed && self.lanes[message.lane].1
        };
        for worker in self.groups[group].workers.iter_mut().filter(|worker| worker.member.is_some()) {
            let candidates: Vec<_> =
                (0..worker.socket.len()).filter(|&at| owed(&worker.socket[at])).collect();
            for (at, &earlier) in candidates.iter().enumerate() {
                let same = |&&later: &&usize| worker.socket[later].lane == worker.socket[earlier].lane;
                if let Some(&later) = candidates[at + 1..].iter().find(same) {
                    worker.socket.swap(earlier, later);
                    return self.planted();
                }
            }
        }
    }
}
