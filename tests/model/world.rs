//! A small world in which a core and its twin live through the same script.

mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use smallvec::smallvec;
use tinybroker::core::{Answer, Core, CoreConfig, Effect, Input, Stats};
use tinybroker::limits;
use tinybroker::model::{DeliveryId, Ticket, Time};

use crate::outcome::{Outcome, Told, compare};
use crate::script::{Script, Size, Span, Step};
use crate::twin::{Figures, Member, Twin};

/// Room for three of the largest messages.
const MAX_PENDING_BYTES: u64 = 1024 * 1024;

pub struct World<'a> {
    script: &'a Script,
    core: Core,
    twin: Twin,
    now: Time,
    /// The last number given to a member, a message or a ticket.
    numbers: u64,
    /// Every delivery so far.
    delivered: Vec<DeliveryId>,
    reserved: Vec<Ticket>,
    seen: BTreeSet<String>,
}

/// Lives through a script, and adds to `seen` the kinds of what was said and counted.
///
/// # Errors
///
/// The first step at which the core and its twin part, and how.
pub fn run(script: &Script, seen: &mut BTreeSet<String>) -> Result<(), String> {
    let mut world = World::new(script);
    for (number, step) in script.steps.iter().enumerate() {
        world.take(step).map_err(|parted| format!("step {number}, {step:?}: {parted}"))?;
    }
    seen.extend(world.seen);
    seen.extend(world.twin.figures().counters.into_keys().map(str::to_owned));
    Ok(())
}

impl<'a> World<'a> {
    fn new(script: &'a Script) -> Self {
        let config = CoreConfig {
            epoch: 1000,
            max_pending_bytes: MAX_PENDING_BYTES,
            near_full_messages: script.near_full_messages,
            near_full_bytes: 310 * 1024,
            fan_out_slice: script.fan_out_slice,
        };
        World {
            script,
            core: Core::new(config.clone()),
            twin: Twin::new(config),
            now: Time::default(),
            numbers: 0,
            delivered: Vec::new(),
            reserved: Vec::new(),
            seen: BTreeSet::new(),
        }
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Advance { span, tick } => {
                self.advance(*span);
                if !tick {
                    return Ok(());
                }
                self.say(Input::Tick)?;
            }
            Step::Burst { topic, messages } => {
                for _ in 0..*messages {
                    let (ticket, message) = (self.ticket(), self.message(*topic, Size::Small, None));
                    self.say(Input::Publish { ticket, run: smallvec![message] })?;
                    self.take_from_full_windows()?;
                }
            }
            _ => {
                let Some(input) = self.input(step) else { return Ok(()) };
                self.say(input)?;
            }
        }
        self.core.check();
        self.compare_figures()
    }

    fn take_from_full_windows(&mut self) -> Result<(), String> {
        let full = |member: &&&Member| member.untaken.len() == limits::MEMBER_WINDOW_MESSAGES as usize;
        let full: Vec<Input> =
            self.members().iter().filter(full).map(|member| steps::take(member, usize::MAX)).collect();
        full.into_iter().try_for_each(|input| self.say(input).map(drop))
    }

    fn advance(&mut self, span: Span) {
        let until_due = self.core.next_deadline().map_or(Duration::ZERO, |due| due.since(self.now));
        self.now = self.now
            + match span {
                Span::Millis(millis) => Duration::from_millis(millis),
                Span::UntilDue => until_due,
                Span::UntilJustBeforeDue => until_due.saturating_sub(Duration::from_nanos(1)),
            };
    }

    /// Tells both and compares what they say. Returns the figures, where they were asked for.
    fn say(&mut self, input: Input) -> Result<Option<Box<Stats>>, String> {
        let twin = self.twin.apply(self.now, &input);
        let mut effects: Vec<Effect> = Vec::new();
        self.core.apply(self.now, input, &mut effects);
        let stats = effects.iter().find_map(|effect| match effect {
            Effect::Answer(_, Answer::Stats(stats)) => Some(stats.clone()),
            _ => None,
        });
        let core: Vec<Outcome> = effects.into_iter().flat_map(Outcome::all_of).collect();
        self.remember(&core);
        compare(core, twin)?;
        Ok(stats)
    }

    /// Compares what can be seen from outside.
    fn compare_figures(&mut self) -> Result<(), String> {
        let ticket = self.ticket();
        let stats = self.say(Input::Stats { ticket })?.expect("stats are answered at once");
        let (core, twin) = (self.figures(&stats), self.twin.figures());
        if core == twin { Ok(()) } else { Err(format!("\ncore has {core:?}\ntwin has {twin:?}")) }
    }

    fn remember(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            self.seen.insert(outcome.kind());
            if let Outcome::Member(_, Told::Deliver { id, .. }) = outcome {
                self.delivered.push(*id);
            }
        }
    }

    fn figures(&self, stats: &Stats) -> Figures {
        assert_eq!(self.core.in_flight(), stats.in_flight);
        assert_eq!(self.core.is_empty(), stats.subscriptions == 0);
        let counters = stats.counters.named().filter(|(_, count)| *count > 0);
        Figures {
            subscriptions: stats.subscriptions,
            members: stats.members,
            standbys: stats.standbys,
            waiting: stats.waiting,
            parked: stats.parked,
            in_flight: stats.in_flight,
            held_bytes: stats.held_bytes,
            near_full: self.core.is_near_full(),
            next_deadline: self.core.next_deadline(),
            counters: counters.collect::<BTreeMap<_, _>>(),
        }
    }
}
