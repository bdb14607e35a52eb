//! What the fake broker knows, and where most faults are.

use std::thread;

use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc::UnboundedSender;

use super::fault::{Fault, STRUCK};
use super::proto::{Message, OpenSubscription, PublishRequest, SubscribeEvent};
use super::subscription::{Queued, Subscription};

pub struct Broker {
    pub fault: Fault,
    subscriptions: Vec<Subscription>,
    /// Publishes so far.
    published: u64,
    /// Subscriptions and members so far.
    opened: u64,
    /// With [`Fault::Reorder`], what waits for its successor.
    held_back: Option<Queued>,
    deathbed: UnboundedSender<()>,
}

/// What a publisher is told.
#[derive(Debug, Clone, Copy)]
pub enum Outcome {
    /// In the queue of so many subscriptions.
    Published(u32),
    Refused,
    /// Nothing, ever.
    Silence,
}

/// Who opened a stream.
pub struct Opened {
    pub subscription: String,
    pub member: u64,
}

impl Broker {
    pub fn new(fault: Fault, deathbed: UnboundedSender<()>) -> Self {
        Broker { fault, subscriptions: Vec::new(), published: 0, opened: 0, held_back: None, deathbed }
    }

    pub fn open(&mut self, open: &OpenSubscription, events: UnboundedSender<SubscribeEvent>) -> Opened {
        self.opened += 1;
        let member = self.opened;
        let group = &open.consumer_group;
        let known = self.subscriptions.iter().position(|known| !group.is_empty() && known.group == *group);
        let at = known.unwrap_or_else(|| {
            self.subscriptions.push(Subscription::new(format!("s{member}"), open));
            self.subscriptions.len() - 1
        });
        let subscription = &mut self.subscriptions[at];
        subscription.join(member, open, events);
        subscription.dispatch(self.fault);
        Opened { subscription: subscription.id.clone(), member }
    }

    pub fn leave(&mut self, opened: &Opened) {
        let fault = self.fault;
        if let Some(subscription) = self.named(&opened.subscription) {
            subscription.leave(opened.member, fault);
            subscription.dispatch(fault);
        }
        self.subscriptions.retain(|subscription| !subscription.members.is_empty());
    }

    pub fn publish(&mut self, request: PublishRequest) -> Outcome {
        let place = self.published;
        self.published += 1;
        let is_struck = STRUCK.contains(&place) || self.fault == Fault::RefuseAll;
        let planted = if is_struck { self.fault } else { Fault::None };
        let hearers = self.subscriptions.iter().filter(|one| one.matches(&request.topic)).count();
        let queued = queued(place, request, planted);
        match planted {
            Fault::Lose | Fault::Refuse | Fault::RefuseAll => {}
            Fault::Reorder => self.held_back = Some(queued),
            // The receiver is there for as long as this is.
            Fault::Die => drop(self.deathbed.send(())),
            Fault::Freeze => loop {
                thread::park();
            },
            _ => {
                self.enqueue(queued, planted == Fault::Misdeliver);
                if let Some(held_back) = self.held_back.take() {
                    self.enqueue(held_back, false);
                }
            }
        }
        match planted {
            Fault::Refuse | Fault::RefuseAll | Fault::Ghost => Outcome::Refused,
            Fault::NeverConfirm | Fault::Die => Outcome::Silence,
            Fault::Miscount => Outcome::Published(0),
            _ => Outcome::Published(hearers as u32),
        }
    }

    /// Into the queue of every subscription that matches, and perhaps into the next one's.
    fn enqueue(&mut self, queued: Queued, to_next_too: bool) {
        let topic = &queued.message.topic;
        let hears = |one: &Subscription| one.matches(topic);
        let Some(first) = self.subscriptions.iter().position(hears) else { return };
        let next = (first + 1) % self.subscriptions.len();
        for (at, subscription) in self.subscriptions.iter_mut().enumerate() {
            if hears(subscription) || to_next_too && at == next {
                subscription.enqueue(queued.clone());
                subscription.dispatch(self.fault);
            }
        }
    }

    /// Settles deliveries of a subscription, to one member if it says which; how many.
    pub fn ack(&mut self, subscription: &str, member: Option<u64>, system_ids: &[String]) -> u32 {
        let fault = self.fault;
        let Some(subscription) = self.named(subscription) else { return 0 };
        let settled = system_ids.iter().filter(|id| subscription.settle(member, id, fault)).count();
        subscription.dispatch(fault);
        settled as u32
    }

    pub fn is_held(&mut self, subscription: &str, system_id: &str) -> bool {
        self.named(subscription).is_some_and(|subscription| subscription.is_held(system_id))
    }

    fn named(&mut self, id: &str) -> Option<&mut Subscription> {
        self.subscriptions.iter_mut().find(|subscription| subscription.id == id)
    }
}

fn queued(place: u64, request: PublishRequest, planted: Fault) -> Queued {
    let id = format!("m{place}");
    let payload = if planted == Fault::Garble { garbled(&request.payload) } else { request.payload };
    let message = Message {
        system_id: id.clone(),
        message_id: id,
        topic: request.topic,
        payload,
        delivery_attempt: 1,
        ..Message::default()
    };
    Queued { place, is_struck: planted != Fault::None, message }
}

/// With a number in it that no message has: bytes 8 to 16 of a payload say which message it is.
fn garbled(payload: &Bytes) -> Bytes {
    let mut garbled = BytesMut::from(&payload[..]);
    garbled[15] ^= 0x40;
    garbled.freeze()
}
