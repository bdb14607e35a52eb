use crate::limits;
use crate::model::{GroupName, SubscriptionId};

/// How many executors there are, where they run and what they do. The first `shards` of them hold
/// shards, the first `frontends` hold frontends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub shards: usize,
    pub frontends: usize,
    /// The core of each executor; more executors than cores share them in turn.
    pub cores: Vec<usize>,
}

/// Why a layout cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    #[error("--{role} is {given}; give it 1 to {}", limits::EXECUTORS)]
    OutOfRange { role: &'static str, given: usize },
    #[error("--cores names core {core}, which this process may not use; it may use {allowed}")]
    NoSuchCore { core: usize, allowed: String },
    #[error("--cores has {text:?}, which is neither a number nor a range like 0-3")]
    NotACore { text: String },
    #[error("this process may use no core at all; look at its cpuset")]
    NoCores,
}

impl Layout {
    /// One executor a core, each frontend and shard, unless told otherwise. Of the cores that nobody named every other
    /// one is left to the clients on the machine and to the kernel: with all of them the broker costs more a message
    /// and is slower (docs/benchmarks.md).
    pub fn new(
        shards: Option<usize>,
        frontends: Option<usize>,
        cores: Option<&str>,
        allowed: &[usize],
    ) -> Result<Layout, LayoutError> {
        let (cores, default) = match cores {
            Some(list) => {
                let named = parse_cores(list, allowed)?;
                let count = named.len();
                (named, count)
            }
            None => (allowed.to_vec(), allowed.len().div_ceil(2)),
        };
        if cores.is_empty() {
            return Err(LayoutError::NoCores);
        }
        let default = default.min(limits::EXECUTORS);
        let shards = shards.unwrap_or(default);
        let frontends = frontends.unwrap_or(default);
        for (role, given) in [("shards", shards), ("frontends", frontends)] {
            if given == 0 || given > limits::EXECUTORS {
                return Err(LayoutError::OutOfRange { role, given });
            }
        }
        let cores = cores.iter().copied().cycle().take(shards.max(frontends)).collect();
        Ok(Layout { shards, frontends, cores })
    }

    pub fn executors(&self) -> usize {
        self.cores.len()
    }

    pub fn placement(&self) -> Placement {
        // Fixed keys: a name lies on the same shard in each run.
        let hasher = ahash::RandomState::with_seeds(0x7469_6e79, 0x6272_6f6b, 0x6572_2e76, 0x31);
        Placement { shards: self.shards as u64, hasher }
    }
}

fn parse_cores(list: &str, allowed: &[usize]) -> Result<Vec<usize>, LayoutError> {
    let mut cores = Vec::new();
    for text in list.split(',').map(str::trim) {
        let not_a_core = || LayoutError::NotACore { text: text.chars().take(20).collect() };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let first: usize = first.parse().map_err(|_| not_a_core())?;
        let last: usize = last.parse().map_err(|_| not_a_core())?;
        if first > last {
            return Err(not_a_core());
        }
        for core in first..=last {
            if !allowed.contains(&core) {
                let allowed = allowed.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
                return Err(LayoutError::NoSuchCore { core, allowed });
            }
            if !cores.contains(&core) {
                cores.push(core);
            }
        }
    }
    Ok(cores)
}

/// Which shard a subscription lives on. A group goes by its name, a MULTI subscription by its id.
#[derive(Debug, Clone)]
pub struct Placement {
    shards: u64,
    hasher: ahash::RandomState,
}

impl Placement {
    pub fn of_group(&self, group: &GroupName) -> usize {
        self.of(group.as_str())
    }

    pub fn of_multi(&self, id: &SubscriptionId) -> usize {
        self.of(id.as_str())
    }

    fn of(&self, name: &str) -> usize {
        (self.hasher.hash_one(name) % self.shards) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_half_of_the_cores_are_frontend_and_shard() {
        for (count, half) in [(1, 1), (2, 1), (3, 2), (4, 2), (64, 32), (128, 64)] {
            let allowed: Vec<_> = (10..10 + count).collect();
            let layout = Layout::new(None, None, None, &allowed).expect("cores are there");
            assert_eq!((layout.shards, layout.frontends, &layout.cores[..]), (half, half, &allowed[..half]));
        }
    }

    #[test]
    fn of_cores_that_were_named_every_one_is_frontend_and_shard() {
        let layout = Layout::new(None, None, Some("0-2"), &[0, 1, 2, 3]).expect("cores are there");
        assert_eq!((layout.shards, layout.frontends, layout.cores), (3, 3, vec![0, 1, 2]));
    }

    #[test]
    fn more_executors_than_cores_share_them() {
        let layout = Layout::new(Some(4), Some(1), None, &[2, 5]).expect("four on two");
        assert_eq!(layout.cores, [2, 5, 2, 5]);
        assert_eq!(layout.executors(), 4);
    }

    #[test]
    fn cores_are_numbers_and_ranges_of_what_may_be_used() {
        let cores = |list| Layout::new(None, None, Some(list), &[0, 1, 2, 3]).map(|layout| layout.cores);
        assert_eq!(cores("3,0-1"), Ok(vec![3, 0, 1]));
        assert!(matches!(cores("1-x"), Err(LayoutError::NotACore { .. })));
        assert!(matches!(cores("2-1"), Err(LayoutError::NotACore { .. })));
        assert_eq!(cores("4"), Err(LayoutError::NoSuchCore { core: 4, allowed: "0,1,2,3".into() }));
        let zero = Layout::new(Some(0), None, None, &[0]);
        assert_eq!(zero, Err(LayoutError::OutOfRange { role: "shards", given: 0 }));
    }

    #[test]
    fn placement_is_the_same_in_each_run_and_spreads() {
        let layout = Layout::new(Some(4), None, None, &[0]).expect("four on one");
        let (one, two) = (layout.placement(), layout.placement());
        let mut used = [0; 4];
        for number in 0..400 {
            let group = GroupName::parse(&format!("group-{number}")).ok().flatten().expect("a name");
            assert_eq!(one.of_group(&group), two.of_group(&group));
            used[one.of_group(&group)] += 1;
        }
        assert!(used.iter().all(|&count| count > 50), "{used:?}");
    }
}
