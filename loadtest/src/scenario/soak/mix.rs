//! The load of a soak: a bit of everything, at a moderate rate.

use std::rc::Rc;
use std::time::Duration;

use super::Options;
use crate::client::Connection;
use crate::clock;
use crate::crew::{Crew, Station};
use crate::failure::{Doing, Failure};
use crate::ledger::{Kind, LaneId, LedgerPlan, ReceiverId};
use crate::pacer::{Alarm, Schedule};
use crate::payload::Template;
use crate::proto::{DeliveryMode, OpenSubscription};
use crate::recorder::timed;
use crate::role::{Acking, Pace, Publisher, Publishing, Visitor, Worker, publish_one};
use crate::trial::Trial;

/// Shares of the rate.
const QUEUE: f64 = 0.4;
const FANOUT: f64 = 0.1;
const SINGLETON: f64 = 0.2;
const VISITED: f64 = 0.3;

/// Members that stay, of the work queue and of the group with visitors.
const WORKERS: u32 = 4;
const SUBSCRIBERS: u32 = 8;
/// One active, the others stand by.
const SINGLETON_MEMBERS: u32 = 3;
const VISITORS: u32 = 4;
const MAX_IN_FLIGHT: u32 = 16;
/// Messages that one publisher has sent and not yet seen confirmed, at most.
const OUTSTANDING: usize = 64;

/// Who gets what.
pub struct Mix {
    queue: ReceiverId,
    subscribers: Vec<ReceiverId>,
    singleton: ReceiverId,
    visited: ReceiverId,
    /// Gets nothing.
    idle: ReceiverId,
    to_queue: LaneId,
    to_subscribers: LaneId,
    to_singleton: LaneId,
    to_visited: LaneId,
    /// From connections that are opened for one publish.
    short: LaneId,
}

/// Deliveries a second that are offered.
pub fn offered(options: &Options) -> f64 {
    let deliveries = QUEUE + FANOUT * f64::from(SUBSCRIBERS) + SINGLETON + VISITED;
    options.rate * deliveries + options.short_connections
}

impl Mix {
    pub fn plan(plan: &mut LedgerPlan) -> Mix {
        plan.members_may_die(true);
        let queue = plan.receiver("the work queue", Kind::Balanced);
        let subscriber = |number| plan.receiver(format!("subscriber {number}"), Kind::Multi);
        let subscribers: Vec<ReceiverId> = (0..SUBSCRIBERS).map(subscriber).collect();
        let singleton = plan.receiver("the singleton", Kind::Singleton);
        let visited = plan.receiver("the group with visitors", Kind::Balanced);
        let idle = plan.receiver("the idle subscriber", Kind::Multi);
        let all = subscribers[0]..=subscribers[subscribers.len() - 1];
        Mix {
            to_queue: plan.lane("to the work queue", queue..=queue, false),
            to_subscribers: plan.lane("to the subscribers", all, false),
            // One publish at a time, so that its order is owed.
            to_singleton: plan.lane("to the singleton", singleton..=singleton, true),
            to_visited: plan.lane("to the group with visitors", visited..=visited, false),
            short: plan.lane("from short connections", queue..=queue, true),
            queue,
            subscribers,
            singleton,
            visited,
            idle,
        }
    }

    pub fn enlist(&self, crew: &mut Crew, trial: &Trial, options: &Options, payload: usize) {
        self.enlist_members(crew, trial);
        self.enlist_visitors(crew, trial, options);
        let publishers = [
            (self.to_queue, "queue", QUEUE, OUTSTANDING),
            (self.to_subscribers, "fanout", FANOUT, OUTSTANDING),
            (self.to_singleton, "singleton", SINGLETON, 1),
            (self.to_visited, "visited", VISITED, OUTSTANDING),
        ];
        for (lane, name, share, outstanding) in publishers {
            let publisher = Publisher {
                lanes: vec![(lane, Template::new(&trial.unique(&format!("{name}.all")), payload))],
                publishing: Publishing::Unary,
                outstanding,
                pace: Pace::new(Some(options.rate * share), 0, 1),
                bystanders: 0,
            };
            crew.active(|station| publisher.run(station));
        }
        if options.short_connections > 0.0 {
            let (lane, rate) = (self.short, options.short_connections);
            let template = Template::new(&trial.unique("queue.all"), payload);
            crew.active(move |station| short_connections(lane, template, rate, station));
        }
    }

    /// Those that stay from the beginning to the end.
    fn enlist_members(&self, crew: &mut Crew, trial: &Trial) {
        let mut workers: Vec<Worker> =
            (0..WORKERS).map(|_| member(self.queue, DeliveryMode::Balanced, trial, "queue")).collect();
        workers.push(member(self.visited, DeliveryMode::Balanced, trial, "visited"));
        let subscriber = |&receiver| member(receiver, DeliveryMode::Multi, trial, "fanout");
        workers.extend(self.subscribers.iter().map(subscriber));
        workers.push(member(self.idle, DeliveryMode::Multi, trial, "idle"));
        let connections = workers.len() / 2;
        Worker::enlist(crew, workers, connections);
    }

    fn enlist_visitors(&self, crew: &mut Crew, trial: &Trial, options: &Options) {
        // All together leave as often as asked; the singleton's members take turns at the same pace.
        let stay = Duration::from_secs_f64(f64::from(VISITORS) / options.visits);
        for number in 0..VISITORS {
            let visitor = Visitor {
                worker: member(self.visited, DeliveryMode::Balanced, trial, "visited"),
                is_early: true,
                first_stay: stay * (number + 1) / VISITORS,
                stay,
            };
            crew.passive(|station| visitor.run(station));
        }
        for number in 0..SINGLETON_MEMBERS {
            let visitor = Visitor {
                worker: member(self.singleton, DeliveryMode::Singleton, trial, "singleton"),
                is_early: number == 0,
                first_stay: stay,
                stay,
            };
            crew.passive(|station| visitor.run(station));
        }
    }
}

/// Of a group that acks, or a MULTI subscriber, fed by all topics below a name.
fn member(receiver: ReceiverId, mode: DeliveryMode, trial: &Trial, name: &str) -> Worker {
    let is_group = mode != DeliveryMode::Multi;
    Worker {
        receiver,
        open: OpenSubscription {
            topic_patterns: vec![trial.unique(&format!("{name}.*"))],
            mode: mode.into(),
            consumer_group: if is_group { trial.unique(name) } else { String::new() },
            max_in_flight: if is_group { MAX_IN_FLIGHT } else { 0 },
            ..OpenSubscription::default()
        },
        acking: if is_group { Acking::Stream } else { Acking::None },
        completion: None,
    }
}

/// A new connection for every publish.
async fn short_connections(
    lane: LaneId,
    template: Template,
    rate: f64,
    station: Rc<Station>,
) -> Result<(), Failure> {
    let alarm = Alarm::new().doing("making a timer")?;
    let window = station.start().await;
    let mut schedule = Schedule::new(window.start, rate, 0, 1);
    while schedule.due() < window.until {
        let due = schedule.due();
        alarm.until(due).await.doing("waiting for a timer")?;
        schedule.take(clock::now());
        let connection =
            Connection::open(&station.trial.address).await.doing("connecting for one publish")?;
        publish_one(&connection, &station, lane, &template, due).await?;
        station.recorder.borrow_mut().took(timed::NEW_CONNECTION, due, clock::now());
    }
    Ok(())
}
