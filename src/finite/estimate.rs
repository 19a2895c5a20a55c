//! What one replication measures: tallies of events and time averages of tails.

use serde::Serialize;

use super::counts::Counts;
use super::process::Observer;
use crate::model::{Measures, Messages, Model, PoolMeasures, Value};

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
        let sum =
            |of: fn(&PoolTally) -> u64| (0..counts.pools.len()).map(|j| self.measured(j, of)).sum::<u64>();
        let (arrivals, departures) = (to_f64(sum(PoolTally::arrivals)), to_f64(sum(|p| p.departures)));
        let accepted = to_f64(sum(|p| p.met_idle + p.met_busy));
        let per_sample = 2.0 * to_f64(sampled);
        let messages = match model.policy.messages {
            Messages::PerIdleServer => {
                let fallbacks = to_f64(self.tally.fallbacks - self.before.fallbacks);
                let asked = if sampled > 1 { per_sample * fallbacks } else { 0.0 };
                to_f64(sum(|p| p.became_idle)) + asked
            }
            Messages::PerSample => per_sample * arrivals,
            Messages::PerDeparture => departures,
            Messages::None => 0.0,
        };
        let rates = model.pools.iter().zip(&counts.pools);
        let rates = rates.map(|(pool, servers)| (pool.service_rate(), to_f64(servers.tails.size())));
        let capacity: f64 = rates.clone().map(|(rate, size)| rate * size).sum();
        let working: f64 = rates.zip(&self.integrals).map(|((rate, _), i)| rate * integral(i, 1)).sum();
        let jobs: f64 = self.integrals.iter().map(|i| area(i, 1)).sum();
        let waiting: f64 = self.integrals.iter().zip(&self.slots).map(|(i, &b)| area(i, b + 1)).sum();
        let sizes: Vec<f64> = counts.pools.iter().map(|pool| to_f64(pool.tails.size())).collect();
        let pools = sizes.iter().enumerate();
        let measures = Measures {
            p_idle: ratio(to_f64(sum(|p| p.met_idle)), arrivals),
            p_wait: ratio(to_f64(sum(|p| p.met_busy)), arrivals),
            p_block: ratio(to_f64(sum(|p| p.lost)), arrivals),
            p_busy: ratio(to_f64(sum(|p| p.met_busy + p.lost)), arrivals),
            mean_jobs: ratio(jobs, n * time),
            response_time: ratio(jobs, accepted),
            waiting_time: ratio(waiting, accepted),
            utilisation: ratio(working, capacity * time),
            throughput: ratio(departures, n * time),
            messages_per_job: ratio(messages, arrivals),
            growth: None,
            pools: pools
                .clone()
                .map(|(j, &size)| PoolMeasures {
                    name: model.pools[j].name.clone(),
                    ..self.pool(j, size * time, arrivals)
                })
                .collect(),
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
            measures,
            tails: (0..sizes.len()).map(tails).collect(),
            levels: pools.map(levels).collect(),
            statistics: self.statistics(),
        }
    }

    /// A tally of one pool since measuring started.
    fn measured(&self, pool: usize, of: fn(&PoolTally) -> u64) -> u64 {
        of(&self.tally.pools[pool]) - of(&self.before.pools[pool])
    }

    /// Measures of one pool, which offered `server_time` and got some of all `arrivals`.
    fn pool(&self, pool: usize, server_time: f64, arrivals: f64) -> PoolMeasures {
        let integrals = &self.integrals[pool];
        let tally = |of| to_f64(self.measured(pool, of));
        let accepted = tally(|p| p.met_idle + p.met_busy);
        let jobs = area(integrals, 1);
        PoolMeasures {
            name: String::new(),
            p_idle: ratio(tally(|p| p.met_idle), arrivals),
            p_wait: ratio(tally(|p| p.met_busy), arrivals),
            p_block: ratio(tally(|p| p.lost), arrivals),
            mean_jobs: ratio(jobs, server_time),
            response_time: ratio(jobs, accepted),
            waiting_time: ratio(area(integrals, self.slots[pool] + 1), accepted),
            utilisation: ratio(integral(integrals, 1), server_time),
            throughput: ratio(tally(|p| p.departures), server_time),
            growth: None,
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

/// A quotient, where there is one.
fn ratio(numerator: f64, denominator: f64) -> Option<Value> {
    (denominator > 0.0).then(|| (numerator / denominator).into())
}
