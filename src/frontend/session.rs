use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::waker::WakerSlot;
use super::{Failure, WireEvent, event};
use crate::core::{Delivery, Input};
use crate::limits;
use crate::model::MemberId;
use crate::shard::Node;

/// Bytes that an event takes beside the bodies of its messages, a little more than most.
const EVENT_HEAD_BYTES: usize = 56;

/// One Subscribe stream: what its shard has sent and its connection has not taken yet.
pub struct Session {
    pub member: MemberId,
    /// Where the subscription lives, from `open` until either side ends the membership.
    shard: Cell<Option<usize>>,
    /// Most messages an event.
    max_batch: Cell<u32>,
    events: RefCell<VecDeque<WireEvent>>,
    ended: RefCell<Option<Failure>>,
    has_ended: Cell<bool>,
    /// The shard was told that the member leaves, and has not yet said that it has.
    is_leaving: Cell<bool>,
    reader: WakerSlot,
    /// Taken by the connection and not yet told to the shard.
    taken_messages: Cell<u32>,
    taken_bytes: Cell<u64>,
}

impl Session {
    pub fn new(member: MemberId) -> Rc<Self> {
        Rc::new(Session {
            member,
            shard: Cell::new(None),
            max_batch: Cell::new(1),
            events: RefCell::default(),
            ended: RefCell::default(),
            has_ended: Cell::new(false),
            is_leaving: Cell::new(false),
            reader: WakerSlot::default(),
            taken_messages: Cell::new(0),
            taken_bytes: Cell::new(0),
        })
    }

    /// The open is on its way to this shard.
    pub fn opening(&self, shard: usize, max_batch: u32) {
        self.shard.set(Some(shard));
        self.max_batch.set(max_batch);
    }

    /// The shard of the membership, as long as it lasts.
    pub fn shard(&self) -> Option<usize> {
        self.shard.get()
    }

    pub fn push(&self, event: WireEvent) {
        self.queue(|events| match events.back_mut() {
            // A role that nobody has read yet is outdated by the next: who does not read holds one.
            Some(last) if last.is_role() && event.is_role() => *last = event,
            _ => events.push_back(event),
        });
    }

    pub fn push_all(&self, deliveries: Vec<Delivery>) {
        self.queue(|events| events.extend(deliveries.into_iter().map(WireEvent::Message)));
    }

    /// What comes after the end is lost.
    fn queue(&self, add: impl FnOnce(&mut VecDeque<WireEvent>)) {
        if !self.has_ended() {
            add(&mut self.events.borrow_mut());
            self.reader.wake();
        }
    }

    /// The shard has ended the membership already.
    pub fn ended_by_shard(&self, failure: Failure) {
        self.shard.set(None);
        self.is_leaving.set(false);
        self.end(failure);
    }

    /// The shard has done as it was told by [`leave`](Self::leave).
    pub fn has_left(&self) {
        self.is_leaving.set(false);
        self.reader.wake();
    }

    /// Ends the response side, after the events that are queued and once the member has left: who hears of the end must
    /// not be counted by a publish that begins then.
    pub fn end(&self, failure: Failure) {
        if !self.has_ended.replace(true) {
            *self.ended.borrow_mut() = Some(failure);
        }
        self.reader.wake();
    }

    /// The events that are queued go to nobody.
    pub fn forget_events(&self) {
        self.events.borrow_mut().clear();
    }

    /// Events that the connection has not taken yet.
    pub fn unread(&self) -> usize {
        self.events.borrow().len()
    }

    /// The broker has ended the stream.
    pub fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    /// Ends the membership, if it still lasts.
    pub fn leave(&self, node: &Node) {
        if let Some(shard) = self.shard.take() {
            self.is_leaving.set(true);
            node.submit(shard, Input::Leave { member: self.member });
        }
    }

    /// Whether there is something to take. Else this task is woken when there is.
    pub fn poll_news(&self, cx: &Context<'_>) -> Poll<()> {
        if self.unread() > 0 || self.may_end() {
            return Poll::Ready(());
        }
        self.reader.remember(cx);
        Poll::Pending
    }

    /// Nobody is woken by what comes: it can not be taken yet.
    pub fn ignore_news(&self) {
        self.reader.forget();
    }

    /// Why the stream ends, once all its events are taken; once.
    pub fn take_end(&self) -> Option<Failure> {
        if self.unread() == 0 && self.may_end() { self.ended.take() } else { None }
    }

    fn may_end(&self) -> bool {
        self.has_ended() && !self.is_leaving.get()
    }

    /// About the bytes that the next events take on the wire, with their frames, a little more than they do: of all, or of
    /// so many as have these bytes. Batches are counted whole.
    pub fn next_bytes(&self, most: usize) -> usize {
        let max_batch = self.max_batch.get().max(1) as usize;
        let mut bytes = 0;
        for (queued, event) in self.events.borrow().iter().enumerate() {
            if bytes >= most && (queued % max_batch == 0 || bytes >= limits::BATCH_BYTES) {
                break;
            }
            bytes += event.deliveries().iter().map(|delivery| delivery.message.body().len()).sum::<usize>();
            bytes += EVENT_HEAD_BYTES;
        }
        bytes
    }

    /// Takes the next event, of which the shard hears in time.
    pub fn take_event(&self, node: &Node) -> Option<WireEvent> {
        let event = self.next_event()?;
        let deliveries = event.deliveries();
        if !deliveries.is_empty() {
            let bytes = deliveries.iter().map(|delivery| delivery.message.cost()).sum();
            self.took(node, deliveries.len() as u32, bytes);
        }
        Some(event)
    }

    /// The next event: where the member asked for batches, with all messages that are there and fit.
    fn next_event(&self) -> Option<WireEvent> {
        let mut events = self.events.borrow_mut();
        let first = match events.pop_front()? {
            WireEvent::Message(first) if self.max_batch.get() > 1 => first,
            other => return Some(other),
        };
        let mut length = event::length_in_batch(&first);
        let most = self.max_batch.get() as usize;
        let mut batch = Vec::with_capacity(most.min(events.len() + 1));
        batch.push(first);
        while batch.len() < most
            && let Some(WireEvent::Message(next)) = events.front()
        {
            let longer = length + event::length_in_batch(next);
            if longer > limits::BATCH_BYTES {
                break;
            }
            length = longer;
            if let Some(WireEvent::Message(next)) = events.pop_front() {
                batch.push(next);
            }
        }
        match <[_; 1]>::try_from(batch) {
            Ok([only]) => Some(WireEvent::Message(only)),
            Err(deliveries) => Some(WireEvent::Batch { deliveries, length }),
        }
    }

    /// Tells the shard what the connection has taken, half a window at a time.
    fn took(&self, node: &Node, messages: u32, bytes: u64) {
        let messages = self.taken_messages.get() + messages;
        let bytes = self.taken_bytes.get() + bytes;
        if messages < limits::MEMBER_WINDOW_MESSAGES / 2 && bytes < limits::MEMBER_WINDOW_BYTES / 2 {
            self.taken_messages.set(messages);
            self.taken_bytes.set(bytes);
            return;
        }
        self.taken_messages.set(0);
        self.taken_bytes.set(0);
        if let Some(shard) = self.shard.get() {
            node.submit(shard, Input::Credit { member: self.member, messages, bytes });
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::core::Role;
    use crate::frontend::convert;
    use crate::model::Message;

    #[test]
    fn who_does_not_read_holds_one_role() {
        let session = Session::new(MemberId { frontend: 0, number: 1 });
        for position in 1..100 {
            session.push(convert::role(Role::Standby { epoch: 1, position }));
        }
        assert_eq!(session.unread(), 1);
        session.push(convert::lagged(1));
        session.push(convert::role(Role::Active { epoch: 2 }));
        assert_eq!(session.unread(), 3, "nothing else is outdated");
    }

    /// A delivery of a message with a body of so many bytes.
    fn delivery_of(bytes: usize) -> Delivery {
        let number = crate::model::MessageNumber::from_u64(1);
        let message = Message::new(number, "a", None, bytes, |_| ());
        Delivery { message, delivery: 1, attempt: 1, epoch: 1 << 60 }
    }

    fn delivery(bytes: usize) -> WireEvent {
        WireEvent::Message(delivery_of(bytes))
    }

    #[test]
    fn what_comes_after_the_end_is_lost() {
        let session = Session::new(MemberId { frontend: 0, number: 1 });
        session.push(delivery(1));
        session.push_all(vec![delivery_of(1), delivery_of(1)]);
        session.end(Failure::Deadline);
        assert_eq!(session.unread(), 3, "what was there is told");
        session.push(convert::lagged(1));
        session.push(delivery(1));
        session.push_all(vec![delivery_of(1)]);
        assert_eq!(session.unread(), 3);
    }

    #[test]
    fn a_batch_stays_within_an_event() {
        let mib = 1024 * 1024;
        for (bytes, first) in [(mib, 3), (mib - 64, 4), (100, 50), (4 * mib - 512, 1)] {
            let session = Session::new(MemberId { frontend: 0, number: 1 });
            session.opening(0, 50);
            (0..60).for_each(|_| session.push(delivery(bytes)));
            let mut taken = Vec::new();
            while let Some(event) = session.next_event() {
                taken.push(event.deliveries().len());
                let mut out = Vec::new();
                event.encode(&mut out).expect("there is room");
                assert!(out.len() <= limits::EVENT_BYTES);
            }
            assert_eq!((taken[0], taken.iter().sum::<usize>()), (first, 60), "{bytes} bytes each");
        }
    }

    #[test]
    fn what_the_next_events_take_is_known_before() {
        for (max_batch, queued, most) in
            [(1, 1000, 10_000), (64, 1000, 10_000), (256, 1000, 10_000), (64, 5, 10_000)]
        {
            let session = Session::new(MemberId { frontend: 0, number: 1 });
            session.opening(0, max_batch);
            (0..queued).for_each(|_| session.push(delivery(100)));
            let expected = session.next_bytes(most);
            let mut out = Vec::new();
            while out.len() < most
                && let Some(event) = session.next_event()
            {
                event.encode(&mut out).expect("there is room");
                out.extend([0; 5]);
            }
            assert!(out.len() <= expected, "{max_batch}: {} of {expected}", out.len());
            assert!(expected <= out.len() * 3 / 2 + most / 4, "{max_batch}: {} of {expected}", out.len());
        }
    }

    #[test]
    fn only_messages_that_follow_each_other_make_a_batch() {
        let session = Session::new(MemberId { frontend: 0, number: 1 });
        session.opening(0, 10);
        for event in [delivery(1), delivery(1), convert::lagged(3), delivery(1)] {
            session.push(event);
        }
        let sizes = std::iter::from_fn(|| session.next_event()).map(|event| event.deliveries().len());
        assert_eq!(sizes.collect::<Vec<_>>(), [2, 0, 1]);
    }
}
