//! Finite n: the exact jump process of n servers, sampled.
//!
//! The state is how many servers of each pool hold k jobs (and, for services with several phases, in
//! which phase), so that an event costs the same for ten servers and for ten million. Nothing here
//! is shared with the fluid limit: integers and random choices only, which is what makes the one a
//! check of the other.
//!
//! [`simulate`] runs independent replications on all threads of the current rayon pool. A
//! replication's random numbers depend on the seed, n and its number alone, and replications are
//! added up in the order of their numbers: results are the same to the last bit for any number of
//! threads.

mod counts;
mod dispatch;
mod estimate;
mod process;
mod replication;
mod routers;
mod service;
mod start;
pub mod streams;
mod summary;

use std::sync::{Mutex, PoisonError};

use rayon::iter::{ParallelBridge, ParallelIterator};
use serde::Serialize;
use thiserror::Error;

pub use estimate::{Replication, Statistics};
pub use summary::{Path, Snapshot, interval};

use crate::model::{Initial, Measures, Model, Value};
use process::{Process, System};
use replication::replication;
use routers::{RouterProcess, RouterTables};
use summary::Collector;

/// The largest n: up to here every count is exact as a floating-point number.
const MAX_SERVERS: u64 = 1 << 53;

/// What to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Number of servers.
    pub n: u64,
    /// Number of independent replications.
    pub replications: u32,
    /// Time at which a replication ends.
    pub horizon: f64,
    /// Time from which on averages are taken; below the horizon.
    pub warmup: f64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The state at time 0.
    pub initial: Initial,
    /// Times of transient snapshots, non-decreasing, within [0, horizon]. They change no path.
    pub sample_times: Vec<f64>,
    /// Tails x_1, x_2, ... are reported up to this level at most.
    pub levels: u32,
    /// How many replications, from the first, keep their snapshots one by one.
    pub paths: u32,
}

/// Why nothing was simulated.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FiniteError {
    /// n is 0.
    #[error("there must be at least one server")]
    NoServers,
    /// n is too large for exact counts.
    #[error("{n} servers are too many; at most 2^53 are possible")]
    TooManyServers {
        /// What was asked for.
        n: u64,
    },
    /// The number of replications is 0.
    #[error("there must be at least one replication")]
    NoReplications,
    /// The horizon is not a positive finite time.
    #[error("the horizon is {horizon}; it must be positive and finite")]
    Horizon {
        /// What was given.
        horizon: f64,
    },
    /// The warm-up is negative or leaves no time to measure.
    #[error("the warm-up is {warmup}; it must lie in [0, {horizon}), before the horizon")]
    Warmup {
        /// What was given.
        warmup: f64,
        /// The horizon.
        horizon: f64,
    },
    /// A sample time lies outside [0, horizon] or before the one ahead of it.
    #[error("sample time {time} is out of place; times must not decrease and must lie in [0, {horizon}]")]
    SampleTime {
        /// The time.
        time: f64,
        /// The horizon.
        horizon: f64,
    },
    /// The arrival rate is negative or not finite.
    #[error("the arrival rate is {rate}; it must be finite and not negative")]
    ArrivalRate {
        /// Jobs per server and unit of time.
        rate: f64,
    },
    /// The rate of all events together is beyond floating-point numbers.
    #[error("the rates of {n} servers together overflow; choose another unit of time")]
    Rates {
        /// Number of servers.
        n: u64,
    },
    /// The shares of the pools do not make up all servers.
    #[error("the shares of the pools sum to {sum}, not to 1")]
    Shares {
        /// Their sum.
        sum: f64,
    },
    /// The fallback samples no server.
    #[error("the policy samples d = 0 servers; d must be at least 1")]
    NoSample,
    /// Several routers are sampled with exponential service only.
    #[error("pull with several routers needs exponential service in this version")]
    PhasesWithRouters,
    /// The initial state is given for another number of pools.
    #[error("the initial tails are given for {given} pools, but the model has {pools}")]
    InitialPools {
        /// Lists given.
        given: usize,
        /// Pools of the model.
        pools: usize,
    },
    /// An initial tail is out of range.
    #[error(
        "initial tail x_{level} of pool {pool} is {value}; tails must not increase, must lie in [0, share] \
         and must be 0 beyond the buffer"
    )]
    InitialTail {
        /// Name of the pool.
        pool: String,
        /// Level of the tail.
        level: usize,
        /// What was given.
        value: f64,
    },
    /// The initial state has queues too long to be stored.
    #[error("the initial level is {level}; at most {limit} is possible")]
    InitialLevel {
        /// What was given.
        level: usize,
        /// The largest level possible.
        limit: usize,
    },
    /// Cancelled before any replication was finished.
    #[error("interrupted before a replication was finished")]
    Interrupted,
}

/// Progress and interruption, called from all threads.
pub trait Control: Sync {
    /// One more replication is finished.
    fn finished_replication(&self) {}

    /// Should the run stop? Asked before every replication and every hundred thousand events or so.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Nobody watches and nothing interrupts.
impl Control for () {}

/// Estimates of a model at one n.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Number of servers.
    pub n: u64,
    /// Servers of each pool.
    pub pool_sizes: Vec<u64>,
    /// Replications that were finished.
    pub replications: u32,
    /// Whether fewer were finished than asked for.
    pub interrupted: bool,
    /// Time at which each replication ended.
    pub horizon: f64,
    /// Time from which on averages were taken.
    pub warmup: f64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Measures over (warmup, horizon], each the mean of the replications in which it exists, with its
    /// 95 % interval by Student's t if there are two at least.
    pub measures: Measures,
    /// By pool, time-averaged tails x_1, x_2, ... as fractions of all n servers, as far as any server
    /// was seen or `Settings::levels` allows.
    pub tails: Vec<Vec<Value>>,
    /// By pool, time-averaged fractions of the pool's servers that hold k = 0, 1, ... jobs, as far as
    /// the tails go. Empty for a pool without servers.
    pub levels: Vec<Vec<Value>>,
    /// States at the sample times.
    pub transient: Vec<Snapshot>,
    /// States of the first replications at the sample times, one by one.
    pub paths: Vec<Path>,
    /// Work done.
    pub statistics: Statistics,
    /// What each finished replication measured, in the order of their numbers; for statistics of one's
    /// own. Not serialised.
    #[serde(skip)]
    pub runs: Vec<Replication>,
}

/// Samples `model` with n servers.
///
/// On cancellation the replications that were finished are summed up and the summary is marked as
/// interrupted.
///
/// # Errors
/// If a setting is out of range, the initial state does not fit the model, or the run was cancelled
/// before any replication was finished.
pub fn simulate(model: &Model, settings: &Settings, control: &dyn Control) -> Result<Summary, FiniteError> {
    check(model, settings)?;
    let pool_sizes = model.pool_sizes(settings.n);
    if pool_sizes.iter().sum::<u64>() != settings.n {
        return Err(FiniteError::Shares { sum: model.pools.iter().map(|p| p.share).sum() });
    }
    let tails = start::start(model, &settings.initial, &pool_sizes)?;
    let system = System::new(model, settings.n);
    let tables = model.policy.routers.as_ref().map(|r| RouterTables::new(model, r, settings, &tails));
    let collector = Mutex::new(Collector::new(settings.paths));
    // The bridge hands out numbers one after the other, so few replications wait to be added up.
    (0..settings.replications).par_bridge().for_each(|number| {
        let (rng, tails) = (streams::stream(settings.seed, settings.n, number), tails.clone());
        let done = match &tables {
            None => replication(model, settings, &system, Process::new(&system, tails, rng), number, control),
            Some(tables) => {
                let process = RouterProcess::new(tables, &system, tails, rng);
                replication(model, settings, &system, process, number, control)
            }
        };
        if let Some((run, path)) = done {
            collector.lock().unwrap_or_else(PoisonError::into_inner).take(run, path);
            control.finished_replication();
        }
    });
    let all = collector.into_inner().unwrap_or_else(PoisonError::into_inner).finish(&settings.sample_times);
    if all.runs.is_empty() {
        return Err(FiniteError::Interrupted);
    }
    let done = u32::try_from(all.runs.len()).unwrap_or(u32::MAX);
    Ok(Summary {
        n: settings.n,
        pool_sizes,
        replications: done,
        interrupted: done < settings.replications,
        horizon: settings.horizon,
        warmup: settings.warmup,
        seed: settings.seed,
        measures: summary::measures(&all.runs),
        tails: summary::profiles(&all.runs, |run| &run.tails),
        levels: summary::profiles(&all.runs, |run| &run.levels),
        transient: all.transient,
        paths: all.paths,
        statistics: all.statistics,
        runs: all.runs,
    })
}

fn check(model: &Model, settings: &Settings) -> Result<(), FiniteError> {
    let &Settings { n, horizon, warmup, .. } = settings;
    let rate = model.arrival_rate;
    let sum: f64 = model.pools.iter().map(|p| p.share).sum();
    if n == 0 {
        return Err(FiniteError::NoServers);
    }
    if n > MAX_SERVERS {
        return Err(FiniteError::TooManyServers { n });
    }
    if settings.replications == 0 {
        return Err(FiniteError::NoReplications);
    }
    if !(horizon > 0.0 && horizon.is_finite()) {
        return Err(FiniteError::Horizon { horizon });
    }
    if !(0.0..horizon).contains(&warmup) {
        return Err(FiniteError::Warmup { warmup, horizon });
    }
    let mut earliest = 0.0;
    for &time in &settings.sample_times {
        if !(earliest..=horizon).contains(&time) {
            return Err(FiniteError::SampleTime { time, horizon });
        }
        earliest = time;
    }
    if !(rate >= 0.0 && rate.is_finite()) {
        return Err(FiniteError::ArrivalRate { rate });
    }
    if model.pools.iter().any(|p| p.share.is_nan() || p.share < 0.0) || (sum - 1.0).abs() > 1e-6 {
        return Err(FiniteError::Shares { sum });
    }
    if model.policy.routers.is_some() && model.pools.iter().any(|p| p.law.phases() > 1) {
        return Err(FiniteError::PhasesWithRouters);
    }
    let phases = model.pools.iter().flat_map(|p| (0..p.law.phases()).map(|m| p.law.rate(m)));
    #[allow(clippy::cast_precision_loss)]
    let fastest = (rate + phases.fold(0.0, f64::max)) * n as f64;
    if !fastest.is_finite() {
        return Err(FiniteError::Rates { n });
    }
    if model.policy.fallback.d == 0 {
        return Err(FiniteError::NoSample);
    }
    Ok(())
}
