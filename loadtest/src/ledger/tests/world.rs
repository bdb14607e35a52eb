//! A broker by chance: members die, acks get lost, publishes are refused, or nobody hears their outcome.
//! It keeps its promises unless a fault is planted, and a ledger watches.

mod fault;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::super::{Delivered, Kind, LaneId, Ledger, LedgerPlan, Member, ReceiverId, Verdict};

pub use fault::Fault;

/// Messages a member may have in flight.
const IN_FLIGHT: usize = 8;

/// Chance, the same for the same seed (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    fn one_in(&mut self, chance: usize) -> bool {
        self.below(chance) == 0
    }

    fn pick(&mut self, from: impl Iterator<Item = usize>) -> Option<usize> {
        let from: Vec<usize> = from.collect();
        (!from.is_empty()).then(|| from[self.below(from.len())])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Confirmed,
    Refused,
    /// Nobody will hear; enqueued whenever it likes, or not.
    Unknown {
        arrives: bool,
    },
    /// Enqueued in its turn, but never answered.
    Unanswered,
}

#[derive(Debug, Clone, Copy)]
struct Message {
    /// Place in the queue.
    position: u64,
    lane: usize,
    sequence: u64,
    fate: Fate,
    attempt: u32,
}

struct Worker {
    /// None when it has died.
    member: Option<Member>,
    /// By position, as the broker sees it.
    in_flight: BTreeMap<u64, Message>,
    /// Sent and not yet read.
    socket: VecDeque<Message>,
    /// Read and not yet acked.
    held: Vec<Message>,
    /// Positions acked, as the broker has not seen yet.
    acks: VecDeque<u64>,
}

/// A receiver, with what waits and its members by age.
struct Group {
    receiver: ReceiverId,
    queue: BTreeMap<u64, Message>,
    workers: Vec<Worker>,
}

pub struct World {
    dice: Dice,
    kind: Kind,
    members_die: bool,
    pub ledger: Arc<Ledger>,
    /// And whether they are ordered.
    lanes: [(LaneId, bool); 3],
    groups: Vec<Group>,
    /// Published, and not yet read by the broker.
    transit: Vec<Message>,
    /// Answers on their way to publishers.
    answers: Vec<Message>,
    next_position: u64,
    fault: Option<Fault>,
    pub violations: u64,
    /// What the verdict should count.
    pub expected: Verdict,
}

impl World {
    pub fn new(seed: u64, kind: Kind, members_die: bool, fault: Option<Fault>) -> Self {
        let mut plan = LedgerPlan::new();
        plan.members_may_die(members_die);
        let receivers: Vec<_> = (0..3).map(|number| plan.receiver(format!("group {number}"), kind)).collect();
        let lanes = [true, true, false].map(|ordered| (plan.lane("lane", .., ordered), ordered));
        let ledger = plan.build();
        let mut groups = Vec::new();
        for receiver in receivers {
            let members = if kind == Kind::Multi { 1 } else { 3 };
            let workers = (0..members).map(|_| Worker::new(ledger.join(receiver))).collect();
            groups.push(Group { receiver, queue: BTreeMap::new(), workers });
        }
        World {
            dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            kind,
            members_die,
            ledger,
            lanes,
            groups,
            transit: Vec::new(),
            answers: Vec::new(),
            next_position: 0,
            fault,
            violations: 0,
            expected: Verdict::default(),
        }
    }

    /// Lives until all is quiet. The verdict, and whether the fault could be planted.
    pub fn live(&mut self, steps: usize) -> (Verdict, bool) {
        for step in 0..steps {
            let group = self.dice.below(self.groups.len());
            match self.dice.below(16) {
                0 | 1 => self.publish(),
                2 if self.members_die && self.dice.one_in(2) => self.kill(group),
                _ => self.act(group),
            }
            if step > steps / 2 {
                self.plant(group);
            }
        }
        while !self.is_quiet() {
            (0..self.groups.len()).for_each(|group| self.act(group));
        }
        (self.ledger.finish(), self.fault.is_none())
    }

    fn is_quiet(&self) -> bool {
        let is_idle = |worker: &Worker| {
            let Worker { member, in_flight, socket, held, acks } = worker;
            member.is_some()
                && in_flight.is_empty()
                && socket.is_empty()
                && held.is_empty()
                && acks.is_empty()
        };
        let is_quiet = |group: &Group| group.queue.is_empty() && group.workers.iter().all(is_idle);
        self.transit.is_empty() && self.answers.is_empty() && self.groups.iter().all(is_quiet)
    }

    fn publish(&mut self) {
        let lane = self.dice.below(self.lanes.len());
        let id = self.lanes[lane].0;
        let sequence = self.ledger.sent(id, 1);
        let fate = match self.dice.below(32) {
            0..3 => Fate::Refused,
            3 => Fate::Unknown { arrives: true },
            4 => Fate::Unknown { arrives: false },
            5 => Fate::Unanswered,
            _ => Fate::Confirmed,
        };
        self.expected.sent += 1;
        self.expected.refused += u64::from(fate == Fate::Refused);
        self.expected.unknown += u64::from(!matches!(fate, Fate::Refused | Fate::Confirmed));
        let message = Message { position: 0, lane, sequence, fate, attempt: 0 };
        self.transit.push(message);
        match fate {
            // Before the next message is sent, for this one has left the order.
            Fate::Unknown { .. } if self.lanes[lane].1 => self.ledger.unknown(id, sequence),
            Fate::Unknown { .. } => self.answers.push(message),
            _ => {}
        }
    }

    /// What happens by itself, some of it.
    fn act(&mut self, group: usize) {
        let times = 1 + self.dice.below(4);
        match self.dice.below(6) {
            0 => self.arrive(),
            1 => self.answer(),
            2 => (0..times).for_each(|_| self.hand_out(group)),
            3 => (0..times).for_each(|_| self.read(group)),
            4 => (0..times).for_each(|_| self.ack(group)),
            _ => {
                (0..times).for_each(|_| self.carry_out_ack(group));
                self.notice_death(group);
            }
        }
    }

    fn arrive(&mut self) {
        let Some(chosen) = self.dice.pick(0..self.transit.len()) else { return };
        let lane = self.transit[chosen].lane;
        // On an ordered lane the first comes first, but for one that nobody waits for any more.
        let has_turn =
            |message: &Message| !matches!(message.fate, Fate::Unknown { .. }) && message.lane == lane;
        let mut at = chosen;
        if self.lanes[lane].1 && has_turn(&self.transit[chosen]) {
            at = self.transit.iter().position(has_turn).unwrap_or(chosen);
        }
        let mut message = self.transit.remove(at);
        let ghost = message.fate == Fate::Refused && self.fault == Some(Fault::Ghost);
        if ghost {
            self.fault = None;
        }
        if !matches!(message.fate, Fate::Refused | Fate::Unknown { arrives: false }) || ghost {
            message.position = self.next_position;
            self.next_position += 1;
            for group in &mut self.groups {
                group.queue.insert(message.position, message);
            }
        }
        if matches!(message.fate, Fate::Confirmed | Fate::Refused) {
            self.answers.push(message);
        }
    }

    fn answer(&mut self) {
        let Some(at) = self.dice.pick(0..self.answers.len()) else { return };
        let Message { lane, sequence, fate, .. } = self.answers.swap_remove(at);
        let lane = self.lanes[lane].0;
        match fate {
            Fate::Refused => self.ledger.refused(lane, sequence),
            Fate::Unknown { .. } => self.ledger.unknown(lane, sequence),
            _ => self.ledger.confirmed(lane, sequence, self.groups.len() as u32),
        }
    }

    fn hand_out(&mut self, group: usize) {
        let Group { queue, workers, .. } = &mut self.groups[group];
        let candidates = if self.kind == Kind::Singleton { 1 } else { workers.len() };
        let has_room = |&at: &usize| workers[at].in_flight.len() < IN_FLIGHT;
        let Some(at) = self.dice.pick((0..candidates).filter(has_room)) else { return };
        let Some((_, mut message)) = queue.pop_first() else { return };
        message.attempt += 1;
        if self.kind != Kind::Multi {
            workers[at].in_flight.insert(message.position, message);
        }
        workers[at].socket.push_back(message);
    }

    fn read(&mut self, group: usize) {
        let workers = &self.groups[group].workers;
        let living = (0..workers.len()).filter(|&at| workers[at].member.is_some());
        if let Some(at) = self.dice.pick(living) {
            self.read_at(group, at);
        }
    }

    fn read_at(&mut self, group: usize, at: usize) {
        let worker = &mut self.groups[group].workers[at];
        let (Some(member), Some(message)) = (&mut worker.member, worker.socket.pop_front()) else { return };
        let lane = self.lanes[message.lane].0;
        match member.delivered(lane, message.sequence, message.attempt) {
            Delivered::First => {}
            Delivered::Again => self.expected.redelivered += 1,
            Delivered::Violation => self.violations += 1,
        }
        self.expected.delivered += 1;
        if self.kind != Kind::Multi {
            worker.held.push(message);
        }
    }

    /// A member acks: in its stream, or by a call whose answer it may not live to hear.
    fn ack(&mut self, group: usize) {
        let workers = &mut self.groups[group].workers;
        let holds = |&at: &usize| workers[at].member.is_some() && !workers[at].held.is_empty();
        let Some(at) = self.dice.pick((0..workers.len()).filter(holds)) else { return };
        let worker = &mut workers[at];
        let Message { position, lane, sequence, .. } =
            worker.held.swap_remove(self.dice.below(worker.held.len()));
        let Some(member) = &mut worker.member else { return };
        member.acked(self.lanes[lane].0, sequence, false);
        if self.dice.one_in(2) {
            worker.acks.push_back(position);
        } else {
            worker.in_flight.remove(&position);
            if !self.dice.one_in(4) {
                member.acked(self.lanes[lane].0, sequence, true);
            }
        }
    }

    fn carry_out_ack(&mut self, group: usize) {
        let Group { queue, workers, .. } = &mut self.groups[group];
        let Some(at) = self.dice.pick(0..workers.len()) else { return };
        let Some(position) = workers[at].acks.pop_front() else { return };
        let settled = workers[at].in_flight.remove(&position);
        if self.fault == Some(Fault::Double)
            && workers[at].member.is_some()
            && let Some(message) = settled
        {
            queue.insert(position, message);
            self.planted();
        }
    }

    /// A member dies, and another comes for it; the broker has yet to notice.
    fn kill(&mut self, group: usize) {
        let Group { receiver, workers, .. } = &mut self.groups[group];
        let living = (0..workers.len()).filter(|&at| workers[at].member.is_some());
        let Some(member) = self.dice.pick(living).and_then(|at| workers[at].member.take()) else { return };
        member.died();
        workers.push(Worker::new(self.ledger.join(*receiver)));
    }

    /// The broker notices a death: acks that came in time are carried out, all else returns to its place.
    fn notice_death(&mut self, group: usize) {
        let Group { queue, workers, .. } = &mut self.groups[group];
        let dead = (0..workers.len()).filter(|&at| workers[at].member.is_none());
        let Some(at) = self.dice.pick(dead) else { return };
        let mut worker = workers.remove(at);
        let in_time = self.dice.below(worker.acks.len() + 1);
        for position in worker.acks.drain(..in_time) {
            worker.in_flight.remove(&position);
        }
        queue.append(&mut worker.in_flight);
    }
}

impl Worker {
    fn new(member: Member) -> Self {
        let member = Some(member);
        Worker {
            member,
            in_flight: BTreeMap::new(),
            socket: VecDeque::new(),
            held: Vec::new(),
            acks: VecDeque::new(),
        }
    }
}
