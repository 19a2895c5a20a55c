//! Tiers and fallback as the choice of a server.
//!
//! A policy is lowered to small tables before the first event. A choice names a pool and a level;
//! which server of that level takes the job does not matter, since servers are exchangeable.

use rand::Rng;

use super::counts::{Counts, Tails};
use super::streams::below;
use crate::model::{Levels, Policy, Pool, Tiers};

/// Where a job goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice {
    /// Pool of the server.
    pub(super) pool: usize,
    /// Jobs it holds before the arrival.
    pub(super) level: usize,
    /// It has no room: the job is lost.
    pub(super) full: bool,
    /// No tier had a server.
    pub(super) fallback: bool,
}

/// What one tier takes from one pool: levels `from..end`, all of them with room.
#[derive(Debug, Clone)]
struct Part {
    pool: usize,
    from: usize,
    end: usize,
    /// A server weighs as much as it has slots free below this level; without, all weigh the same.
    slots: Option<usize>,
}

#[derive(Debug, Clone)]
enum Rule {
    Tiers(Vec<Vec<Part>>),
    /// One tier for every level.
    Shortest,
}

/// A policy, ready to choose.
#[derive(Debug, Clone)]
pub(super) struct Dispatch {
    rule: Rule,
    d: u64,
    replacement: bool,
    skip_full: bool,
    /// Pools with finite buffers, the longest buffer first: the order of full servers by level.
    by_buffer: Vec<usize>,
}

impl Dispatch {
    /// Lowers a policy for n servers in these pools. Without replacement more than n servers cannot
    /// be sampled: all n are.
    pub(super) fn new(policy: &Policy, pools: &[Pool], buffers: &[usize], n: u64) -> Self {
        let rule = match &policy.tiers {
            Tiers::EveryLevel => Rule::Shortest,
            Tiers::List(tiers) => Rule::Tiers(
                tiers
                    .iter()
                    .map(|tier| {
                        let part = |j: usize| {
                            let levels = tier.levels_in(j);
                            let slots = match &tier.levels {
                                Levels::FreeSlots(slots) if slots[j] > 1 => Some(slots[j] as usize),
                                _ => None,
                            };
                            let (from, end) = (levels.start as usize, (levels.end as usize).min(buffers[j]));
                            Part { pool: j, from, end, slots }
                        };
                        (0..pools.len()).map(part).filter(|part| part.from < part.end).collect()
                    })
                    .collect(),
            ),
        };
        let fallback = policy.fallback;
        let d = u64::from(fallback.d);
        let mut by_buffer: Vec<usize> = (0..pools.len()).filter(|&j| buffers[j] != usize::MAX).collect();
        by_buffer.sort_by_key(|&j| std::cmp::Reverse(buffers[j]));
        Self {
            rule,
            d: if fallback.replacement { d } else { d.min(n) },
            replacement: fallback.replacement,
            // In one pool a full server is the shortest of a sample only if the whole sample is full.
            skip_full: fallback.skip_full && pools.len() > 1,
            by_buffer,
        }
    }

    /// Servers that the fallback samples.
    pub(super) fn sampled(&self) -> u64 {
        self.d
    }

    /// Picks a server for a job.
    #[inline]
    pub(super) fn choose<R: Rng>(&self, counts: &Counts, rng: &mut R) -> Choice {
        let by_tier = match &self.rule {
            Rule::Tiers(tiers) => tiers.iter().find_map(|tier| from_tier(tier, counts, rng)),
            Rule::Shortest => shortest(counts, rng),
        };
        by_tier.unwrap_or_else(|| {
            let rank = self.best_rank(counts.all().size(), rng);
            if self.skip_full { self.skipping_full(rank, counts, rng) } else { sampled(rank, counts, rng) }
        })
    }

    /// The rank, fullest first, of the shortest of d sampled servers; only its level means anything.
    ///
    /// Without replacement draw number i picks one of the n - i servers not yet sampled. Those
    /// shorter than everything sampled so far have never been drawn, and they are the last ones: they
    /// keep their ranks when the draw is counted from i. The others cannot change the level, so which
    /// of them was hit need not be known.
    #[inline]
    fn best_rank<R: Rng>(&self, n: u64, rng: &mut R) -> u64 {
        if self.replacement {
            (0..self.d).map(|_| below(rng, n)).max().unwrap_or(0)
        } else {
            (0..self.d).map(|i| i + below(rng, n - i)).max().unwrap_or(0)
        }
    }

    /// As [`sampled`], with full servers ranked before all others, so that one is chosen only if the
    /// whole sample is full.
    fn skipping_full<R: Rng>(&self, rank: u64, counts: &Counts, rng: &mut R) -> Choice {
        let full = |j: usize| counts.pools[j].tails.at_least(counts.pools[j].buffer);
        let mut before = 0;
        for &j in &self.by_buffer {
            before += full(j);
            if rank < before {
                let level = counts.pools[j].buffer;
                let pool = pool_by_weight(counts.pools.len(), rng, |j| {
                    if counts.pools[j].buffer == level { full(j) } else { 0 }
                });
                return Choice { pool, level, full: true, fallback: true };
            }
        }
        // Servers with rank below this are full or hold `level + 1` or more: the tails, and the full
        // servers whose buffers are too short to be among them.
        let mut level = counts.all().lowest();
        let shorter = |level: usize| {
            let short = self.by_buffer.iter().filter(|&&j| counts.pools[j].buffer <= level);
            counts.all().at_least(level + 1) + short.map(|&j| full(j)).sum::<u64>()
        };
        while rank < shorter(level) {
            level += 1;
        }
        let pool = pool_by_weight(counts.pools.len(), rng, |j| {
            let pool = &counts.pools[j];
            if pool.buffer > level { pool.tails.exactly(level) } else { 0 }
        });
        Choice { pool, level, full: false, fallback: true }
    }
}

impl Part {
    /// The servers of the part, by their weights.
    #[inline]
    fn weight(&self, tails: &Tails) -> u64 {
        match self.slots {
            // One for each slot: the servers below that level.
            Some(slots) => (1..=slots).map(|k| tails.size() - tails.at_least(k)).sum(),
            None => tails.at_least(self.from) - tails.at_least(self.end),
        }
    }
}

/// The level of the server that holds the free slot of this rank, lowest levels first.
fn level_by_slots(tails: &Tails, slots: usize, mut rank: u64) -> usize {
    for level in 0..slots - 1 {
        let here = tails.exactly(level) * (slots - level) as u64;
        if rank < here {
            return level;
        }
        rank -= here;
    }
    slots - 1
}

/// A random server of a tier by weight, if it has any.
#[inline]
fn from_tier<R: Rng>(tier: &[Part], counts: &Counts, rng: &mut R) -> Option<Choice> {
    let servers = |part: &Part| part.weight(&counts.pools[part.pool].tails);
    let chosen = |pool, level| Choice { pool, level, full: false, fallback: false };
    // One level of one pool, the commonest tier, leaves nothing to chance.
    if let [part] = tier
        && part.from + 1 == part.end
    {
        return (servers(part) > 0).then(|| chosen(part.pool, part.from));
    }
    let total: u64 = tier.iter().map(servers).sum();
    if total == 0 {
        return None;
    }
    let rank = below(rng, total);
    // No early exit: which pool it is cannot be predicted, so a branch would cost more than a sum.
    let (mut chosen_part, mut before, mut sum) = (0, 0, 0);
    for part in tier {
        sum += servers(part);
        if rank >= sum {
            chosen_part += 1;
            before = sum;
        }
    }
    let part = tier.get(chosen_part)?;
    let tails = &counts.pools[part.pool].tails;
    let level = match part.slots {
        Some(slots) => level_by_slots(tails, slots, rank - before),
        None if part.from + 1 == part.end => part.from,
        None => tails.level_of(tails.at_least(part.end) + rank - before),
    };
    Some(chosen(part.pool, level))
}

/// A uniformly random one of the shortest servers with room, if any has room.
#[inline]
fn shortest<R: Rng>(counts: &Counts, rng: &mut R) -> Option<Choice> {
    // A pool's shortest server has no room only if none of the pool has.
    let open = |j: &usize| counts.pools[*j].tails.lowest() < counts.pools[*j].buffer;
    let level = (0..counts.pools.len()).filter(open).map(|j| counts.pools[j].tails.lowest()).min()?;
    let pool = pool_by_weight(counts.pools.len(), rng, |j| {
        if open(&j) { counts.pools[j].tails.exactly(level) } else { 0 }
    });
    Some(Choice { pool, level, full: false, fallback: false })
}

/// A uniformly random server among those with the level of the server at `rank`.
#[inline]
fn sampled<R: Rng>(rank: u64, counts: &Counts, rng: &mut R) -> Choice {
    let level = counts.all().level_of(rank);
    let pool = pool_by_weight(counts.pools.len(), rng, |j| counts.pools[j].tails.exactly(level));
    Choice { pool, level, full: level >= counts.pools[pool].buffer, fallback: true }
}

/// A pool, with probability proportional to its weight. One pool alone costs no random number.
#[inline]
fn pool_by_weight<R: Rng>(pools: usize, rng: &mut R, weight: impl Fn(usize) -> u64) -> usize {
    if pools == 1 {
        return 0;
    }
    let rank = below(rng, (0..pools).map(&weight).sum());
    let mut sum = 0;
    let mut chosen = 0;
    for j in 0..pools - 1 {
        sum += weight(j);
        chosen += usize::from(rank >= sum);
    }
    chosen
}
