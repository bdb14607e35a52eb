use super::effect::{Effect, MemberEvent, OpenRefusal};
use super::member::Member;
use super::spec::OpenSpec;
use super::subscription::Subscription;
use super::{Core, SubscriptionKey};
use crate::model::{MemberId, Mode, Time};

impl Core {
    /// Attaches a stream to the subscription it names, which it makes where there is none.
    pub(super) fn open(&mut self, now: Time, member: MemberId, spec: OpenSpec, effects: &mut Vec<Effect>) {
        let (max_in_flight, control_events) = (spec.max_in_flight, spec.control_events);
        let key = match self.find_or_create(spec, effects) {
            Ok(key) => key,
            Err(refusal) => {
                return effects.push(Effect::Member(member, MemberEvent::Refused(Box::new(refusal))));
            }
        };
        let subscription = &mut self.subscriptions[key];
        subscription.asks_acks = max_in_flight > 0;
        subscription.lingers_until = None;
        let member_key = subscription.members.insert(Member::new(member, max_in_flight, control_events));
        self.members.insert(member, (key, member_key));
        subscription.roster.add(member_key, &mut subscription.members);
        effects.push(Effect::Member(member, MemberEvent::Attached));
        if subscription.mode != Mode::Singleton {
            effects.push(Effect::Member(member, MemberEvent::Started(subscription.id.clone())));
        }
        subscription.settle_roles(&mut self.books, effects);
        subscription.feed(now, &mut self.books, effects);
        self.note_deadline(key);
    }

    fn find_or_create(
        &mut self,
        spec: OpenSpec,
        effects: &mut Vec<Effect>,
    ) -> Result<SubscriptionKey, OpenRefusal> {
        let by_group = spec.group.as_ref().and_then(|group| self.by_group.get(group));
        let by_id = spec.subscription_id.as_ref().and_then(|id| self.by_id.get(id));
        if let Some(&key) = by_group {
            let found = &self.subscriptions[key];
            spec.agrees_with(&found.id, found.mode, &found.patterns, &found.options)?;
            return Ok(key);
        }
        if let Some(&key) = by_id {
            let found = &self.subscriptions[key];
            if found.mode.is_group() || spec.mode.is_group() || !found.members.is_empty() {
                return Err(OpenRefusal::IdInUse { owner: found.owner() });
            }
            // A MULTI stream comes back to the subscription that lingered for it.
            spec.agrees_with(&found.id, found.mode, &found.patterns, &found.options)?;
            return Ok(key);
        }
        self.create(spec, effects)
    }

    fn create(&mut self, spec: OpenSpec, effects: &mut Vec<Effect>) -> Result<SubscriptionKey, OpenRefusal> {
        if let Some(&key) = self.by_id.get(&spec.id_if_new) {
            return Err(OpenRefusal::IdInUse { owner: self.subscriptions[key].owner() });
        }
        let key = self.subscriptions.vacant_key();
        self.matched_topic.clear();
        self.index.insert(key, &spec.patterns)?;
        self.serial += 1;
        let mut subscription = Subscription::new(self.serial, spec);
        subscription.note_room(&mut self.books);
        self.by_id.insert(subscription.id.clone(), key);
        if let Some(group) = &subscription.group {
            self.by_group.insert(group.clone(), key);
        }
        effects.push(Effect::Created(subscription.id.clone()));
        self.subscriptions.insert(subscription);
        Ok(key)
    }
}
