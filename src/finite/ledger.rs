//! The books of the sampler of servers: counts of events, and the time that each server spends at each
//! level, written down when it leaves the level.

use super::accounts::PoolAccount;
use super::estimate::Statistics;
use crate::model::Pool;

/// Events since time 0, and how many of them since measuring began.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    all: u64,
    before: u64,
}

impl Count {
    #[inline]
    pub(super) fn add(&mut self, events: u64) {
        self.all += events;
    }

    pub(super) fn restart(&mut self) {
        self.before = self.all;
    }

    #[allow(clippy::cast_precision_loss)]
    pub(super) fn measured(self) -> f64 {
        (self.all - self.before) as f64
    }
}

/// The books of one pool.
#[derive(Debug, Clone, Default)]
struct PoolLedger {
    met_idle: Count,
    met_busy: Count,
    lost: Count,
    completed: Count,
    became_idle: Count,
    /// By level, time spent there summed over servers.
    time_at: Vec<f64>,
    /// Jobs that a server takes without letting any of them wait.
    slots: usize,
}

/// The books of one replication.
#[derive(Debug, Clone)]
pub(super) struct Ledger {
    /// When measuring began.
    pub(super) start: f64,
    pub(super) fallbacks: Count,
    phase_changes: u64,
    highest: usize,
    pools: Vec<PoolLedger>,
    /// By server, when it came to its level.
    since: Vec<f64>,
}

impl Ledger {
    /// Opens the books at time 0 for these pools and for servers that hold these numbers of jobs.
    pub(super) fn new(pools: &[Pool], levels: impl Iterator<Item = usize> + Clone) -> Self {
        Self {
            start: 0.0,
            fallbacks: Count::default(),
            phase_changes: 0,
            highest: levels.clone().max().unwrap_or(0),
            pools: pools
                .iter()
                .map(|p| PoolLedger { slots: p.slots as usize, ..PoolLedger::default() })
                .collect(),
            since: vec![0.0; levels.count()],
        }
    }

    /// Forgets what was measured before `now`.
    pub(super) fn restart(&mut self, now: f64) {
        self.start = now;
        self.fallbacks.restart();
        for pool in &mut self.pools {
            pool.time_at.fill(0.0);
            for count in [
                &mut pool.met_idle,
                &mut pool.met_busy,
                &mut pool.lost,
                &mut pool.completed,
                &mut pool.became_idle,
            ] {
                count.restart();
            }
        }
    }

    /// A server of `pool` was at `level` until `now`.
    #[inline]
    pub(super) fn spent(&mut self, server: u32, pool: usize, level: usize, now: f64) {
        let since = &mut self.since[server as usize];
        let time_at = &mut self.pools[pool].time_at;
        if level >= time_at.len() {
            time_at.resize(level + 1, 0.0);
        }
        time_at[level] += now - since.max(self.start);
        *since = now;
    }

    /// A job joined a server of `pool` that held `level` jobs.
    #[inline]
    pub(super) fn accepted(&mut self, server: u32, pool: usize, level: usize, now: f64) {
        self.spent(server, pool, level, now);
        self.highest = self.highest.max(level + 1);
        let pool = &mut self.pools[pool];
        if level < pool.slots { pool.met_idle.add(1) } else { pool.met_busy.add(1) }
    }

    /// A job was lost at a full server of `pool`.
    pub(super) fn lost(&mut self, pool: usize) {
        self.pools[pool].lost.add(1);
    }

    /// A job in service changed its phase.
    pub(super) fn changed_phase(&mut self) {
        self.phase_changes += 1;
    }

    /// A job was completed by a server of `pool` that held `level` jobs, itself included.
    #[inline]
    pub(super) fn departed(&mut self, server: u32, pool: usize, level: usize, now: f64) {
        self.spent(server, pool, level, now);
        let pool = &mut self.pools[pool];
        pool.completed.add(1);
        pool.became_idle.add(u64::from(level <= pool.slots));
    }

    /// By level, the time that servers of a pool spent there.
    pub(super) fn time_at(&self, pool: usize) -> &[f64] {
        &self.pools[pool].time_at
    }

    /// What a pool of so many servers did since measuring began.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn account(&self, pool: usize, servers: f64) -> PoolAccount {
        let pool = &self.pools[pool];
        let slots = pool.slots;
        let from = |level: usize, jobs: &dyn Fn(f64) -> f64| {
            let levels = pool.time_at.iter().enumerate().skip(level);
            levels.map(|(k, time)| jobs(k as f64) * time).sum::<f64>()
        };
        PoolAccount {
            servers,
            met_idle: pool.met_idle.measured(),
            met_busy: pool.met_busy.measured(),
            lost: pool.lost.measured(),
            completed: pool.completed.measured(),
            became_idle: pool.became_idle.measured(),
            busy: from(1, &|_| 1.0),
            jobs: from(1, &|k| k),
            waiting: from(slots + 1, &|k| k - slots as f64),
        }
    }

    /// All events since time 0.
    pub(super) fn statistics(&self) -> Statistics {
        let sum = |of: fn(&PoolLedger) -> u64| self.pools.iter().map(of).sum::<u64>();
        let lost = sum(|p| p.lost.all);
        let arrivals = lost + sum(|p| p.met_idle.all + p.met_busy.all);
        let departures = sum(|p| p.completed.all);
        Statistics {
            events: arrivals + departures + self.phase_changes,
            arrivals,
            lost,
            departures,
            phase_changes: self.phase_changes,
            fallbacks: self.fallbacks.all,
            highest_level: u32::try_from(self.highest).unwrap_or(u32::MAX),
        }
    }
}
