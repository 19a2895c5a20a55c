//! What to run, and why it may be refused.

use thiserror::Error;

use crate::model::{Initial, Model};

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
    /// Whose router is told when one of several slots becomes free is not defined.
    #[error("pull with several routers needs pools with one slot")]
    SlotsWithRouters,
    /// The fallback samples no server.
    #[error("the policy samples d = 0 servers; d must be at least 1")]
    NoSample,
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
    /// Servers and jobs that are kept one by one would take too much memory.
    #[error(
        "{n} servers with {jobs} jobs, kept one by one, take about {mebibytes} MiB for each replication; the \
         limit is {limit} MiB. Choose a smaller n, or the sampler of counts, which needs no memory per server"
    )]
    Memory {
        /// Number of servers.
        n: u64,
        /// Jobs at the start, or when the run was given up.
        jobs: u64,
        /// Memory they take.
        mebibytes: u64,
        /// Memory they may take.
        limit: u64,
    },
    /// Cancelled before any replication was finished.
    #[error("interrupted before a replication was finished")]
    Interrupted,
}

/// Refuses settings that mean nothing for the model. Returns the number of servers of each pool.
pub(super) fn check(model: &Model, settings: &Settings) -> Result<Vec<u64>, FiniteError> {
    let &Settings { n, horizon, warmup, .. } = settings;
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
    system(model, n)
}

/// Refuses a system of n servers that means nothing. Returns the number of servers of each pool.
pub(super) fn system(model: &Model, n: u64) -> Result<Vec<u64>, FiniteError> {
    let rate = model.arrival_rate;
    let sum: f64 = model.pools.iter().map(|p| p.share).sum();
    if n == 0 {
        return Err(FiniteError::NoServers);
    }
    if n > MAX_SERVERS {
        return Err(FiniteError::TooManyServers { n });
    }
    if !(rate >= 0.0 && rate.is_finite()) {
        return Err(FiniteError::ArrivalRate { rate });
    }
    if model.pools.iter().any(|p| p.share.is_nan() || p.share < 0.0) || (sum - 1.0).abs() > 1e-6 {
        return Err(FiniteError::Shares { sum });
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
    if model.policy.routers.is_some() && model.pools.iter().any(|p| p.slots > 1) {
        return Err(FiniteError::SlotsWithRouters);
    }
    let sizes = model.pool_sizes(n);
    if sizes.iter().sum::<u64>() != n {
        return Err(FiniteError::Shares { sum });
    }
    Ok(sizes)
}
