//! What a core and its twin say after an input, in a form that can be compared.

use std::time::Duration;

use tinybroker::core::{
    Answer, DeadLetter, Delivery, Effect, EndReason, GivenUp, MemberEvent, OpenRefusal, PublishRefusal,
    Published, Role, Settlement,
};
use tinybroker::model::{DeliveryId, MemberId, MessageNumber, SubscriptionId, Ticket, Topic};

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Member(MemberId, Told),
    Answer(Ticket, Reply),
    DeadLetter {
        subscription: SubscriptionId,
        topic: Topic,
        message: MessageNumber,
        reason: GivenUp,
        attempts: u32,
    },
    Created(SubscriptionId),
    Ended(SubscriptionId),
}

/// An event of a member's stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    Attached,
    /// In what the open differs: the core names one thing, the twin all of them.
    Differs(Vec<&'static str>),
    IdInUse(&'static str),
    TooManyPatterns,
    Started(SubscriptionId),
    Role(Role),
    Deliver {
        id: DeliveryId,
        attempt: u32,
        epoch: u64,
    },
    Lagged(u64),
    Draining(Duration),
    End(EndReason),
    Left,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Published(u32),
    /// Which subscriptions are full: the core names one, the twin all of them.
    Full(Vec<PublishRefusal>),
    /// How it went with each message of a run that has not just one.
    Run(Vec<Reply>),
    Reserved,
    Settled(Settlement),
    Stats,
}

impl Outcome {
    /// The names in it, without its figures: `Answer Settled NotInFlight`.
    pub fn kind(&self) -> String {
        let text = format!("{self:?}");
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '"');
        let names = words.filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase()));
        let ids = ["MemberId", "Ticket", "SubscriptionId", "DeliveryId", "MessageNumber", "Topic"];
        let names = names.filter(|word| !ids.contains(word));
        names.collect::<Vec<_>>().join(" ")
    }
}

impl Outcome {
    /// What an effect says: mostly one thing.
    pub fn all_of(effect: Effect) -> Vec<Outcome> {
        vec![match effect {
            Effect::Member(member, MemberEvent::DeliverAll(deliveries)) => {
                assert!(deliveries.len() > 1, "one alone needs no list");
                return deliveries
                    .into_iter()
                    .map(|delivery| Outcome::Member(member, MemberEvent::Deliver(delivery).into()))
                    .collect();
            }
            Effect::Member(member, event) => Outcome::Member(member, event.into()),
            Effect::Answer(ticket, answer) => Outcome::Answer(ticket, answer.into()),
            Effect::DeadLetter(letter) => {
                let DeadLetter { topic, message, subscription, reason, attempts } = *letter;
                Outcome::DeadLetter { subscription, topic, message: message.number(), reason, attempts }
            }
            Effect::Created(id) => Outcome::Created(id),
            Effect::Ended(id) => Outcome::Ended(id),
        }]
    }
}

impl From<MemberEvent> for Told {
    fn from(event: MemberEvent) -> Self {
        match event {
            MemberEvent::Attached => Told::Attached,
            MemberEvent::Refused(refusal) => match *refusal {
                OpenRefusal::Differs { what } => Told::Differs(vec![what]),
                OpenRefusal::IdInUse { owner } => Told::IdInUse(owner),
                OpenRefusal::Index(_) => Told::TooManyPatterns,
            },
            MemberEvent::Started(id) => Told::Started(id),
            MemberEvent::Role(role) => Told::Role(role),
            MemberEvent::Deliver(Delivery { message, delivery, attempt, epoch }) => {
                let id = DeliveryId { message: message.number(), delivery };
                Told::Deliver { id, attempt, epoch }
            }
            MemberEvent::DeliverAll(_) => unreachable!("it is taken apart"),
            MemberEvent::Lagged(dropped) => Told::Lagged(dropped),
            MemberEvent::Draining(grace) => Told::Draining(grace),
            MemberEvent::End(reason) => Told::End(*reason),
            MemberEvent::Left => Told::Left,
        }
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Published(run) => run.into_iter().map(Reply::from).collect(),
            Answer::Refused(refusal) => Reply::Full(vec![*refusal]),
            Answer::Reserved => Reply::Reserved,
            Answer::Settled(settlement) => Reply::Settled(settlement),
            Answer::Stats(_) => Reply::Stats,
        }
    }
}

impl From<Published> for Reply {
    fn from(published: Published) -> Self {
        published.map_or_else(|refusal| Reply::Full(vec![*refusal]), Reply::Published)
    }
}

/// The answer to a run.
impl FromIterator<Reply> for Reply {
    fn from_iter<I: IntoIterator<Item = Reply>>(replies: I) -> Self {
        let replies: Vec<Reply> = replies.into_iter().collect();
        <[Reply; 1]>::try_from(replies).map_or_else(Reply::Run, |[only]| only)
    }
}

/// Whether the core said what its twin said: to each member the same in the same order, the same
/// answers, and of each subscription the same dead letters, births and deaths. How these interleave is nobody's promise.
///
/// # Errors
///
/// Both, side by side.
pub fn compare(core: Vec<Outcome>, twin: Vec<Outcome>) -> Result<(), String> {
    let (core, twin) = (by_receiver(core), by_receiver(twin));
    let agree = core.len() == twin.len() && core.iter().zip(&twin).all(|(core, twin)| is_same(core, twin));
    if agree { Ok(()) } else { Err(format!("\ncore said {}\ntwin said {}", lines(&core), lines(&twin))) }
}

fn by_receiver(mut outcomes: Vec<Outcome>) -> Vec<Outcome> {
    outcomes.sort_by_key(|outcome| match outcome {
        Outcome::Member(member, _) => (Some(*member), None),
        Outcome::Answer(..) => (None, None),
        Outcome::Created(id) | Outcome::Ended(id) | Outcome::DeadLetter { subscription: id, .. } => {
            (None, Some(id.clone()))
        }
    });
    outcomes
}

fn lines(outcomes: &[Outcome]) -> String {
    outcomes.iter().map(|outcome| format!("\n    {outcome:?}")).collect()
}

fn is_same(core: &Outcome, twin: &Outcome) -> bool {
    match (core, twin) {
        (Outcome::Member(a, Told::Differs(named)), Outcome::Member(b, Told::Differs(all))) => {
            a == b && named.iter().all(|what| all.contains(what))
        }
        (Outcome::Answer(a, core), Outcome::Answer(b, twin)) => a == b && is_same_reply(core, twin),
        _ => core == twin,
    }
}

fn is_same_reply(core: &Reply, twin: &Reply) -> bool {
    match (core, twin) {
        (Reply::Full(named), Reply::Full(all)) => named.iter().all(|refusal| all.contains(refusal)),
        (Reply::Run(core), Reply::Run(twin)) => {
            core.len() == twin.len() && core.iter().zip(twin).all(|(core, twin)| is_same_reply(core, twin))
        }
        _ => core == twin,
    }
}
