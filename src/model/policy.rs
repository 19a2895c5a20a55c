//! Dispatch policies: an ordered list of tiers, then a fallback.
//!
//! A job goes to a server of the first tier that is not empty, chosen uniformly in it. If all tiers
//! are empty, the fallback samples d servers of the whole system and takes the one with the fewest
//! jobs; if that one is full the job is lost. Every named policy is a constructor here.

use super::{Message, Routers};

/// How a job picks its server.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The name as in the model file, for titles: `pull`, `jsq-d`, ...
    pub name: String,
    /// Where a job looks first.
    pub tiers: Tiers,
    /// What it does when all tiers are empty.
    pub fallback: Fallback,
    /// What one dispatch costs in messages.
    pub messages: Messages,
    /// The routers of pull, where there are several; `None` is one.
    pub routers: Option<Routers>,
}

/// The ordered tiers of a policy.
///
/// The first i tiers together always hold, in each pool, all levels below some level: tiers fill
/// the levels from 0 upwards. This is what makes the motion on the boundary (no server in the first
/// tiers) well defined: only services can move a server into an empty tier.
#[derive(Debug, Clone, PartialEq)]
pub enum Tiers {
    /// A finite list.
    List(Vec<Tier>),
    /// Every level is a tier, lowest first, in all pools: join the shortest queue.
    EveryLevel,
}

/// A set of server states that a job may be sent to: those with room among the levels and pools named,
/// in proportion to their weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tier {
    /// Levels of the tier.
    pub levels: Levels,
    /// Indices of the pools it is confined to; `None` is all.
    pub pools: Option<Vec<usize>>,
}

/// Which levels a tier holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Levels {
    /// The same levels in every pool, servers with equal weights.
    Set(LevelSet),
    /// The levels below this number of slots, one for each pool; a server weighs as much as it has free
    /// slots, since each is a message at the router.
    FreeSlots(Vec<u32>),
}

/// Consecutive levels, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelSet {
    /// The lowest level.
    pub from: u32,
    /// The highest level.
    pub to: u32,
}

/// Sample d servers of the whole system, join the one with the fewest jobs (ties uniformly).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback {
    /// Servers sampled; 1 is uniform random routing.
    pub d: u32,
    /// Whether a server may be sampled twice. The same in the fluid, different at order 1/n.
    pub replacement: bool,
    /// Whether full servers among the sample are passed over. Otherwise (the papers' rule) a job
    /// whose shortest sampled server is full is lost.
    pub skip_full: bool,
}

/// What is counted as a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Messages {
    /// One message when a server becomes idle, or has a slot free again (pull).
    PerIdleServer,
    /// A query and an answer per sampled server: 2 d a job.
    PerSample,
    /// The dispatcher is told of every departure, so it knows all queues and need not ask: one per
    /// departure.
    PerDeparture,
    /// Nothing is asked or told.
    None,
}

impl Tier {
    /// The levels of the tier in pool `pool`, room aside.
    #[must_use]
    pub fn levels_in(&self, pool: usize) -> std::ops::Range<u32> {
        if self.pools.as_ref().is_some_and(|p| !p.contains(&pool)) {
            return 0..0;
        }
        match &self.levels {
            Levels::Set(set) => set.from..set.to.saturating_add(1),
            Levels::FreeSlots(slots) => 0..slots[pool],
        }
    }

    /// Is a server of pool `pool` with `level` jobs in the tier, room aside?
    #[must_use]
    pub fn contains(&self, pool: usize, level: u32) -> bool {
        self.levels_in(pool).contains(&level)
    }

    /// How much a server of pool `pool` weighs that holds `level` jobs; 0 outside the tier.
    #[must_use]
    pub fn weight(&self, pool: usize, level: u32) -> u32 {
        match &self.levels {
            _ if !self.levels_in(pool).contains(&level) => 0,
            Levels::Set(_) => 1,
            Levels::FreeSlots(slots) => slots[pool] - level,
        }
    }

    /// The highest level that the tier has in any of `pools` pools, room aside.
    #[must_use]
    pub fn highest(&self, pools: usize) -> u32 {
        (0..pools).map(|j| self.levels_in(j).end.saturating_sub(1)).max().unwrap_or(0)
    }

    fn level(k: u32) -> Self {
        Self { levels: Levels::Set(LevelSet { from: k, to: k }), pools: None }
    }
}

impl Tiers {
    /// The tier with index i, or `None` past the last one.
    #[must_use]
    pub fn get(&self, i: usize) -> Option<Tier> {
        match self {
            Self::List(tiers) => tiers.get(i).cloned(),
            Self::EveryLevel => u32::try_from(i).ok().map(Tier::level),
        }
    }

    /// The number of tiers, or `None` if there is one for every level.
    #[must_use]
    pub fn count(&self) -> Option<usize> {
        match self {
            Self::List(tiers) => Some(tiers.len()),
            Self::EveryLevel => None,
        }
    }
}

impl Fallback {
    /// Uniform random routing.
    #[must_use]
    pub fn random() -> Self {
        Self { d: 1, replacement: true, skip_full: false }
    }
}

impl Policy {
    /// Uniform random routing.
    #[must_use]
    pub fn random() -> Self {
        Self::new("random", Tiers::List(vec![]), Fallback::random(), Messages::None)
    }

    /// Join the shortest of d sampled queues (power of d choices).
    #[must_use]
    pub fn jsq_d(d: u32, replacement: bool, skip_full: bool) -> Self {
        Self::new("jsq-d", Tiers::List(vec![]), Fallback { d, replacement, skip_full }, Messages::PerSample)
    }

    /// Join the shortest of all queues that have room.
    #[must_use]
    pub fn jsq() -> Self {
        Self::new("jsq", Tiers::EveryLevel, Fallback::random(), Messages::PerDeparture)
    }

    /// Pull with one router: an idle server if there is one, else a uniformly random server.
    #[must_use]
    pub fn pull() -> Self {
        Self::new("pull", Tiers::List(vec![Tier::level(0)]), Fallback::random(), Messages::PerIdleServer)
    }

    /// Generalised pull: servers of pool j take `slots[j]` jobs at once, and send a message whenever one
    /// of them leaves a slot free; a job follows a uniformly random message, else goes to a random server.
    /// After Stolyar (QUESTA 2015), section 6.1. One slot each is [`Policy::pull`].
    #[must_use]
    pub fn pull_with_slots(slots: Vec<u32>) -> Self {
        let tier = Tier { levels: Levels::FreeSlots(slots), pools: None };
        Self::new("pull", Tiers::List(vec![tier]), Fallback::random(), Messages::PerIdleServer)
    }

    /// Join an idle queue; without one, the shortest of d sampled queues. `jiq(1)` is [`Policy::pull`].
    #[must_use]
    pub fn jiq(fallback_d: u32) -> Self {
        let fallback = Fallback { d: fallback_d, ..Fallback::random() };
        Self::new("jiq", Tiers::List(vec![Tier::level(0)]), fallback, Messages::PerIdleServer)
    }

    /// Idle one first: an idle server, else one with a single job, else a random server.
    #[must_use]
    pub fn i1f() -> Self {
        let tiers = vec![Tier::level(0), Tier::level(1)];
        Self::new("i1f", Tiers::List(tiers), Fallback::random(), Messages::PerDeparture)
    }

    /// Join below threshold: any server with fewer than `level` jobs, else a random server.
    #[must_use]
    pub fn threshold(level: u32) -> Self {
        let levels = LevelSet { from: 0, to: level.saturating_sub(1) };
        let tier = Tier { levels: Levels::Set(levels), pools: None };
        Self::new("threshold", Tiers::List(vec![tier]), Fallback::random(), Messages::PerDeparture)
    }

    /// Idle servers of the first group of pools, then of the second, and so on; else a random server.
    /// Pools in one group are equals. The groups must hold every pool once.
    #[must_use]
    pub fn fastest_idle_first(groups: &[Vec<usize>]) -> Self {
        let tiers =
            groups.iter().map(|group| Tier { pools: Some(group.clone()), ..Tier::level(0) }).collect();
        let name = "fastest-idle-first";
        Self::new(name, Tiers::List(tiers), Fallback::random(), Messages::PerIdleServer)
    }

    /// Tiers of levels given literally; each list of tiers must fill the levels from 0 upwards.
    #[must_use]
    pub fn tiers(levels: &[LevelSet], fallback_d: u32) -> Self {
        let tiers = levels.iter().map(|&set| Tier { levels: Levels::Set(set), pools: None }).collect();
        let fallback = Fallback { d: fallback_d, ..Fallback::random() };
        Self::new("tiers", Tiers::List(tiers), fallback, Messages::PerDeparture)
    }

    fn new(name: &str, tiers: Tiers, fallback: Fallback, messages: Messages) -> Self {
        Self { name: name.to_owned(), tiers, fallback, messages, routers: None }
    }

    /// The policy with its parameters, as a person would write it.
    #[must_use]
    pub fn label(&self) -> String {
        let d = self.fallback.d;
        if let Some(routers) = &self.routers {
            let kept = if routers.message == Message::Keep { " that keep old messages" } else { "" };
            return format!("PULL, {} routers{kept}", routers.len());
        }
        match (&self.tiers, self.name.as_str()) {
            (_, "jsq-d") => format!("JSQ({d})"),
            (_, "jiq") if d > 1 => format!("JIQ, fallback {d}"),
            (Tiers::List(t), "threshold") => {
                format!("threshold {}", t.first().map_or(0, |t| t.highest(1) + 1))
            }
            (_, "pull" | "jiq" | "jsq" | "i1f") => self.name.to_uppercase(),
            _ => self.name.clone(),
        }
    }
}
