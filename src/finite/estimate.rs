//! What one replication measures: tallies of events and time averages of tails.

use serde::Serialize;

use super::accounts::{Account, PoolAccount};
use super::counts::Counts;
use super::process::Observer;
use crate::model::{JobTimes, Measures, Model};

/// The time integral of one tail, brought up to date only when the tail changes.
#[derive(Debug, Clone, Copy, Default)]
struct Integral {
    since: f64,
    value: f64,
}

impl Integral {
    #[inline]
    #[allow(clippy::cast_precision_loss)]
    fn advance(&mut self, now: f64, count: u64) {
        self.value += count as f64 * (now - self.since);
        self.since = now;
    }
}

/// What arrivals to one pool met, and what left it.
#[derive(Debug, Clone, Copy, Default)]
struct PoolTally {
    met_idle: u64,
    met_busy: u64,
    lost: u64,
    departures: u64,
    became_idle: u64,
}

impl PoolTally {
    fn arrivals(&self) -> u64 {
        self.met_idle + self.met_busy + self.lost
    }
}

#[derive(Debug, Clone, Default)]
struct Tally {
    pools: Vec<PoolTally>,
    fallbacks: u64,
    phase_changes: u64,
}

/// How much work was done, and how it ended; sums over replications from time 0, warm-up included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
pub struct Statistics {
    /// Arrivals, departures and changes of phase.
    pub events: u64,
    /// Jobs that came.
    pub arrivals: u64,
    /// Jobs that were lost at a full server.
    pub lost: u64,
    /// Jobs completed.
    pub departures: u64,
    /// Jobs in service that moved to another phase.
    pub phase_changes: u64,
    /// Jobs that found all tiers of the policy empty.
    pub fallbacks: u64,
    /// The largest number of jobs ever seen at one server.
    pub highest_level: u32,
}

impl Statistics {
    /// Both together.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        Self {
            events: self.events + other.events,
            arrivals: self.arrivals + other.arrivals,
            lost: self.lost + other.lost,
            departures: self.departures + other.departures,
            phase_changes: self.phase_changes + other.phase_changes,
            fallbacks: self.fallbacks + other.fallbacks,
            highest_level: self.highest_level.max(other.highest_level),
        }
    }
}

/// What one replication measured. Values are plain numbers: one replication has no interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Replication {
    /// Estimates over (warmup, horizon]; a ratio without a denominator is `None`.
    pub measures: Measures,
    /// By pool, time averages of the tails x_1, x_2, ... as fractions of all n servers, as far as any
    /// server was seen or `Settings::levels` allows.
    pub tails: Vec<Vec<f64>>,
    /// By pool, time averages of the fraction of the pool's servers with k = 0, 1, ... jobs, as far as
    /// the tails go. Empty for a pool without servers.
    pub levels: Vec<Vec<f64>>,
    /// Waiting and response times of single jobs, from the sampler of servers.
    pub job_times: Option<JobTimes>,
    /// Work done.
    pub statistics: Statistics,
}

/// The observer that measures.
#[derive(Debug)]
pub(super) struct Meter {
    integrals: Vec<Vec<Integral>>,
    start: f64,
    tally: Tally,
    /// The tally when measuring started.
    before: Tally,
    /// The highest level at which time was spent, before measuring started included.
    highest: usize,
    /// Jobs that a server of each pool takes without letting any of them wait.
    slots: Vec<usize>,
}

impl Meter {
    /// Measures from time 0 on.
    pub(super) fn new(counts: &Counts, model: &Model) -> Self {
        let slots = model.pools.iter().map(|p| p.slots as usize).collect();
        let tally = Tally { pools: vec![PoolTally::default(); counts.pools.len()], ..Tally::default() };
        let fresh = |levels: usize| vec![Integral::default(); levels];
        let integrals = counts.pools.iter().map(|pool| fresh(pool.tails.busy().len())).collect();
        Self { integrals, start: 0.0, before: tally.clone(), tally, highest: 0, slots }
    }

    /// Forgets what was measured before `now`.
    pub(super) fn restart(&mut self, now: f64, counts: &Counts) {
        self.advance(now, counts);
        self.integrals.iter_mut().flatten().for_each(|i| *i = Integral { since: now, value: 0.0 });
        self.start = now;
        self.before = self.tally.clone();
    }

    #[inline]
    fn tail_changes(&mut self, now: f64, pool: usize, level: usize, before: u64) {
        let integrals = &mut self.integrals[pool];
        if level > integrals.len() {
            // A tail that is seen for the first time was 0 until now.
            integrals.resize(2 * level, Integral { since: self.start, value: 0.0 });
        }
        integrals[level - 1].advance(now, before);
    }

    /// Brings all integrals up to `now`.
    fn advance(&mut self, now: f64, counts: &Counts) {
        for (pool, integrals) in counts.pools.iter().zip(&mut self.integrals) {
            for (k, integral) in integrals.iter_mut().enumerate() {
                integral.advance(now, pool.tails.at_least(k + 1));
            }
        }
        let seen = self.integrals.iter().map(|pool| seen(pool)).max().unwrap_or(0);
        self.highest = self.highest.max(seen);
    }

    /// All events since time 0.
    fn statistics(&self) -> Statistics {
        let Tally { pools, fallbacks, phase_changes } = &self.tally;
        let sum = |of: fn(&PoolTally) -> u64| pools.iter().map(of).sum::<u64>();
        let (arrivals, departures) = (sum(PoolTally::arrivals), sum(|p| p.departures));
        Statistics {
            events: arrivals + departures + phase_changes,
            arrivals,
            lost: sum(|p| p.lost),
            departures,
            phase_changes: *phase_changes,
            fallbacks: *fallbacks,
            highest_level: u32::try_from(self.highest).unwrap_or(u32::MAX),
        }
    }

    /// Ends measuring at `now`. `sampled` servers are asked by the policy's fallback; tails are
    /// reported up to level `levels`.
    pub(super) fn finish(
        mut self,
        now: f64,
        counts: &Counts,
        model: &Model,
        sampled: u64,
        levels: usize,
    ) -> Replication {
        self.advance(now, counts);
        let time = now - self.start;
        let n = to_f64(counts.all().size());
        let sizes: Vec<f64> = counts.pools.iter().map(|pool| to_f64(pool.tails.size())).collect();
        let account = Account {
            time,
            fallbacks: to_f64(self.tally.fallbacks - self.before.fallbacks),
            sampled: to_f64(sampled),
            messages: None,
            pools: sizes.iter().enumerate().map(|(j, &size)| self.pool(j, size)).collect(),
        };
        let shown = |j: usize| seen(&self.integrals[j]).min(levels);
        let tails = |j| (1..=shown(j)).map(|k| integral(&self.integrals[j], k) / (n * time)).collect();
        let level = |j: usize, size: f64, k: usize| {
            let at_least = if k == 0 { size * time } else { integral(&self.integrals[j], k) };
            // Integrals of two tails that never differ can differ by rounding.
            ((at_least - integral(&self.integrals[j], k + 1)) / (size * time)).max(0.0)
        };
        let levels = |(j, &size): (usize, &f64)| match size {
            0.0 => Vec::new(),
            _ => (0..=shown(j)).map(|k| level(j, size, k)).collect(),
        };
        Replication {
            measures: account.measures(model),
            tails: (0..sizes.len()).map(tails).collect(),
            levels: sizes.iter().enumerate().map(levels).collect(),
            job_times: None,
            statistics: self.statistics(),
        }
    }

    /// What one pool of `servers` did since measuring started.
    fn pool(&self, pool: usize, servers: f64) -> PoolAccount {
        let integrals = &self.integrals[pool];
        let since =
            |of: fn(&PoolTally) -> u64| to_f64(of(&self.tally.pools[pool]) - of(&self.before.pools[pool]));
        PoolAccount {
            servers,
            met_idle: since(|p| p.met_idle),
            met_busy: since(|p| p.met_busy),
            lost: since(|p| p.lost),
            completed: since(|p| p.departures),
            became_idle: since(|p| p.became_idle),
            busy: integral(integrals, 1),
            jobs: area(integrals, 1),
            waiting: area(integrals, self.slots[pool] + 1),
        }
    }
}

impl Observer for Meter {
    #[inline]
    fn accepted(&mut self, now: f64, pool: usize, level: usize, before: u64) {
        let tally = &mut self.tally.pools[pool];
        let free = level < self.slots[pool];
        tally.met_idle += u64::from(free);
        tally.met_busy += u64::from(!free);
        self.tail_changes(now, pool, level + 1, before);
    }

    fn lost(&mut self, pool: usize) {
        self.tally.pools[pool].lost += 1;
    }

    #[inline]
    fn fell_back(&mut self) {
        self.tally.fallbacks += 1;
    }

    #[inline]
    fn departed(&mut self, now: f64, pool: usize, level: usize, before: u64) {
        let tally = &mut self.tally.pools[pool];
        tally.departures += 1;
        tally.became_idle += u64::from(level <= self.slots[pool]);
        self.tail_changes(now, pool, level, before);
    }

    #[inline]
    fn changed_phase(&mut self) {
        self.tally.phase_changes += 1;
    }
}

/// The time integral of the tail at level k, counted from 1.
fn integral(integrals: &[Integral], k: usize) -> f64 {
    integrals.get(k - 1).map_or(0.0, |i| i.value)
}

/// The highest level at which any time was spent.
fn seen(integrals: &[Integral]) -> usize {
    integrals.iter().rposition(|i| i.value > 0.0).map_or(0, |k| k + 1)
}

/// The sum of tail integrals from level `from` up, the small ones first.
fn area(integrals: &[Integral], from: usize) -> f64 {
    integrals.iter().skip(from - 1).rev().map(|i| i.value).sum()
}

#[allow(clippy::cast_precision_loss)]
fn to_f64(count: u64) -> f64 {
    count as f64
}
