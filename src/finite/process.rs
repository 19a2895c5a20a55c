//! The jump process: clocks, events, and whoever watches them.
//!
//! Competing exponential clocks: the next event comes after an exponential time with the total rate,
//! and is of a kind with probability proportional to the kind's rate. Rates are computed afresh from
//! integer counts at every event, so nothing drifts.

use rand::Rng;
use rand_distr::{Distribution, Exp1};

use super::counts::Counts;
use super::dispatch::Dispatch;
use super::service::{PhaseEnd, Service};
use super::start::Start;
use super::streams::unit;
use crate::model::{Model, Pool};

/// Events between two looks at whether to stop early.
pub(super) const PATIENCE: u32 = 1 << 17;

/// Told of every event, after it happened. `before` is how many servers of the pool held the upper one
/// of the two levels, or more, before the event: the tail that changed.
pub(super) trait Observer {
    /// A job came at time `now` to a server of `pool` that held `level` jobs and had room.
    fn accepted(&mut self, now: f64, pool: usize, level: usize, before: u64);
    /// A job came to a full server of `pool`.
    fn lost(&mut self, pool: usize);
    /// A job that came found all tiers empty.
    fn fell_back(&mut self);
    /// A job was completed at time `now` by a server of `pool` that held `level` jobs, itself included.
    fn departed(&mut self, now: f64, pool: usize, level: usize, before: u64);
    /// A job in service changed its phase.
    fn changed_phase(&mut self);
}

/// A model with n servers, as tables.
#[derive(Debug, Clone)]
pub(super) struct System {
    /// Jobs per unit of time, over all servers.
    arrivals: f64,
    /// Servers of each pool.
    pub(super) sizes: Vec<u64>,
    /// Largest level of each pool; `usize::MAX` if there is none.
    pub(super) buffers: Vec<usize>,
    pub(super) services: Vec<Service>,
    pub(super) dispatch: Dispatch,
    /// Of pools whose speed depends on the level: the speed at level 1, 2, ... over the highest speed.
    slowness: Vec<Vec<f64>>,
}

impl System {
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn new(model: &Model, n: u64) -> Self {
        let buffers: Vec<usize> =
            model.pools.iter().map(|p| p.buffer.map_or(usize::MAX, |b| b as usize)).collect();
        Self {
            arrivals: model.arrival_rate * n as f64,
            sizes: model.pool_sizes(n),
            services: model.pools.iter().map(|p| Service::new(&p.law, highest_speed(p))).collect(),
            slowness: model.pools.iter().map(slowness).collect(),
            dispatch: Dispatch::new(&model.policy, &model.pools, &buffers, n),
            buffers,
        }
    }

    /// Does a clock ring in vain at a server of `pool` that holds `level` jobs? Clocks ring at the highest
    /// speed: a slower server lets a part of the rings pass.
    #[inline]
    pub(super) fn passes<R: Rng>(&self, pool: usize, level: usize, rng: &mut R) -> bool {
        self.slowness[pool].get(level - 1).is_some_and(|&relative| unit(rng) >= relative)
    }
}

/// The highest speed of a pool that its servers can reach; it does not fall with the level.
fn highest_speed(pool: &Pool) -> f64 {
    pool.speed_at(pool.buffer.unwrap_or(u32::MAX))
}

/// The speed at level 1, 2, ... over the highest one, where it depends on the level.
fn slowness(pool: &Pool) -> Vec<f64> {
    let levels = pool.speed_levels().min(pool.buffer.unwrap_or(u32::MAX));
    let relative = (1..=levels).map(|k| pool.speed_at(k) / highest_speed(pool));
    if levels > 1 { relative.collect() } else { Vec::new() }
}

/// The rate of each kind of event, summed up: arrivals first, then services by pool and phase.
#[derive(Debug, Clone)]
pub(super) struct Clocks {
    /// Jobs per unit of time, over all servers.
    arrivals: f64,
    services: Vec<Clock>,
}

/// The clock of all jobs in one phase in one pool.
#[derive(Debug, Clone)]
struct Clock {
    pool: usize,
    phase: usize,
    /// Rate of one such job.
    rate: f64,
    /// Rate of these jobs and of all kinds of events before them.
    sum: f64,
}

impl Clocks {
    pub(super) fn new(system: &System) -> Self {
        let pools = system.services.iter().enumerate();
        let services = pools.flat_map(|(pool, service)| {
            let phases = service.rates().enumerate();
            phases.map(move |(phase, rate)| Clock { pool, phase, rate, sum: 0.0 })
        });
        Self { arrivals: system.arrivals, services: services.collect() }
    }

    /// Sets the clocks for these servers at work. Returns the rate of all events.
    #[inline]
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn set(&mut self, busy: &[u64]) -> f64 {
        let mut sum = self.arrivals;
        for (clock, &busy) in self.services.iter_mut().zip(busy) {
            sum += clock.rate * busy as f64;
            clock.sum = sum;
        }
        sum
    }

    /// The clock that rings, if `u` is uniform between 0 and the rate of all events: a pool and a
    /// phase, or `None` for an arrival.
    #[inline]
    pub(super) fn ringing(&self, u: f64, busy: &[u64]) -> Option<(usize, usize)> {
        if u < self.arrivals {
            return None;
        }
        // No early exit: where u falls cannot be predicted, so a branch would cost more than a sum.
        let passed: usize = self.services.iter().map(|clock| usize::from(u >= clock.sum)).sum();
        // Rounding can put u at the very end: that is the last clock of anybody at work.
        let clock = match self.services.get(passed) {
            Some(clock) => clock,
            None => &self.services[busy.iter().rposition(|&servers| servers > 0)?],
        };
        Some((clock.pool, clock.phase))
    }
}

/// One replication under way.
#[derive(Debug)]
pub(super) struct Process<'a, R> {
    system: &'a System,
    /// The servers now.
    pub(super) counts: Counts,
    clocks: Clocks,
    rng: R,
    /// When the next event happens. It is kept over a pause, so that pausing changes no path.
    next: f64,
    patience: u32,
}

impl<'a, R: Rng> Process<'a, R> {
    /// Starts at time 0 with these servers.
    pub(super) fn new(system: &'a System, start: &Start, mut rng: R) -> Self {
        let counts = Counts::new(start, &system.sizes, &system.buffers, &system.services, &mut rng);
        let mut clocks = Clocks::new(system);
        let next = holding_time(clocks.set(counts.busy()), &mut rng);
        Self { system, counts, clocks, rng, next, patience: PATIENCE }
    }

    /// Runs to time `until`, telling `observer` of every event. Gives up, with `false`, soon after
    /// `cancelled` says so.
    pub(super) fn run<O: Observer>(
        &mut self,
        until: f64,
        observer: &mut O,
        cancelled: impl Fn() -> bool,
    ) -> bool {
        let mut now = self.next;
        let mut rate = self.clocks.set(self.counts.busy());
        while now <= until {
            let u = unit(&mut self.rng) * rate;
            self.event(now, u, observer);
            rate = self.clocks.set(self.counts.busy());
            now += holding_time(rate, &mut self.rng);
            self.patience -= 1;
            if self.patience == 0 {
                self.patience = PATIENCE;
                if cancelled() {
                    return false;
                }
            }
        }
        self.next = now;
        true
    }

    /// The event that the point `u` of the interval of all rates falls on.
    #[inline]
    fn event<O: Observer>(&mut self, now: f64, u: f64, observer: &mut O) {
        let Self { system, counts, clocks, rng, .. } = self;
        let Some((pool, phase)) = clocks.ringing(u, counts.busy()) else {
            let choice = system.dispatch.choose(counts, rng);
            if choice.fallback {
                observer.fell_back();
            }
            if choice.full {
                observer.lost(choice.pool);
            } else {
                let service = &system.services[choice.pool];
                let before = counts.arrive(choice.pool, choice.level, service, rng);
                observer.accepted(now, choice.pool, choice.level, before);
            }
            return;
        };
        let level = counts.random_level(pool, phase, rng);
        if system.passes(pool, level, rng) {
            return;
        }
        let service = &system.services[pool];
        match service.end(phase, rng) {
            PhaseEnd::Exit => {
                let before = counts.depart(pool, level, phase, service, rng);
                observer.departed(now, pool, level, before);
            }
            PhaseEnd::Next(to) => {
                counts.change_phase(pool, level, phase, to);
                observer.changed_phase();
            }
        }
    }
}

/// Time to the next event; for ever if nothing can happen.
#[inline]
pub(super) fn holding_time<R: Rng>(rate: f64, rng: &mut R) -> f64 {
    let standard: f64 = Exp1.sample(rng);
    if rate > 0.0 { standard / rate } else { f64::INFINITY }
}
