//! Finite n without sampling: the chain of the numbers of servers per state, solved.
//!
//! Written from the description of the model alone. It shares nothing with the samplers but the
//! definitions of the measures and the rounding of an initial state to servers. Work and memory grow
//! with the number of states, so it is for small n: what it gives has no interval.

mod chain;
mod reading;
mod routing;
mod sparse;
mod stationary;
mod transient;

use serde::Serialize;
use thiserror::Error;

pub use stationary::Method;

use super::{FiniteError, settings, start};
use crate::model::{Initial, Measures, Model};
use chain::Chain;
use reading::{Reading, idle_servers, jobs, met};
use transient::Transient;

/// Infinite and long buffers are cut where the probability that any server stands at the cut is below this.
const CUT_MASS: f64 = 1e-12;

/// The first cut that is tried.
const FIRST_CUT: u32 = 10;

/// Why there is no exact solution.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExactError {
    /// The model, n or the initial state.
    #[error(transparent)]
    Finite(#[from] FiniteError),
    /// The states do not fit.
    #[error(
        "the chain of {n} servers takes more than {limit} MiB (up to {combinations:.1e} states, infinite \
         buffers cut at level {cut}); choose a smaller n with --n, or shorter buffers"
    )]
    TooLarge {
        /// Number of servers.
        n: u64,
        /// Level at which infinite buffers are cut.
        cut: u32,
        /// Upper bound of the number of states.
        combinations: f64,
        /// Memory it may take, in MiB.
        limit: u64,
    },
    /// Infinite queues are too long.
    #[error(
        "queues of {n} servers are too long for an exact solution: cut at level {cut}, some server stands \
         there with probability {mass:.1e}, and the next cut takes too much memory; give the pools finite \
         buffers or lower the load"
    )]
    LongQueues {
        /// Number of servers.
        n: u64,
        /// Level of the last cut that was solved.
        cut: u32,
        /// Probability that a server stands there.
        mass: f64,
    },
    /// All buffers are infinite and the load is 1 or more.
    #[error(
        "queues grow without bound at load {load}: there is no stationary law; give the pools finite buffers"
    )]
    Unstable {
        /// Arrival rate over capacity.
        load: f64,
    },
    /// The iteration did not settle.
    #[error("{sweeps} sweeps over {states} states left a residual of {residual:.1e}; choose a smaller n")]
    NotConverged {
        /// Number of states.
        states: usize,
        /// Sweeps made.
        sweeps: u32,
        /// What they left.
        residual: f64,
    },
    /// A time is negative, not finite, or before the one ahead of it.
    #[error("time {0} is out of place; times must not decrease and must be finite")]
    Time(f64),
}

/// How large a chain is, before it is solved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Size {
    /// Number of servers.
    pub n: u64,
    /// States of the system.
    pub states: usize,
    /// Transitions between them.
    pub transitions: usize,
    /// Memory for states and rates, in MiB, rounded up.
    pub mebibytes: u64,
    /// By pool, the largest level: the buffer, or where an infinite or long one is cut.
    pub levels: Vec<u32>,
}

/// The exact solution at one n.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exact {
    /// Number of servers.
    pub n: u64,
    /// Servers of each pool.
    pub pool_sizes: Vec<u64>,
    /// Stationary measures.
    pub measures: Measures,
    /// By pool, stationary means of the tails x_1, x_2, ... as fractions of all n servers.
    pub tails: Vec<Vec<f64>>,
    /// By pool, fractions of the pool's servers that hold k = 0, 1, ... jobs. Empty for a pool without
    /// servers.
    pub levels: Vec<Vec<f64>>,
    /// Stationary probabilities that i = 0 .. n servers are idle.
    pub idle_servers: Vec<f64>,
    /// Stationary probabilities of t = 0, 1, ... jobs in the system, as far as they exceed 1e-16.
    pub jobs: Vec<f64>,
    /// Means at the times asked for.
    pub transient: Vec<ExactSnapshot>,
    /// How it was found, and how good it is.
    pub statistics: ExactStatistics,
}

/// Expectations at one time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExactSnapshot {
    /// The time.
    pub time: f64,
    /// By pool, tails as fractions of all n servers.
    pub tails: Vec<Vec<f64>>,
    /// Jobs per server.
    pub mean_jobs: f64,
    /// The probability that a job coming at this time is sent to an idle server.
    pub p_idle: f64,
    /// ... to a busy server with room.
    pub p_wait: f64,
    /// ... to a full server.
    pub p_block: f64,
}

/// What explains an exact solution.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExactStatistics {
    /// The chain.
    pub size: Size,
    /// How the stationary law was found.
    pub method: Method,
    /// Sweeps of the iteration.
    pub sweeps: u32,
    /// Sum of |net flow| over all states, over the largest rate.
    pub residual: f64,
    /// Probability that some server stands where a buffer is cut.
    pub cut_mass: f64,
    /// The largest such probability at the times asked for.
    pub cut_mass_transient: f64,
    /// Rate of the steps of the uniformisation.
    pub uniformisation_rate: f64,
    /// Its steps.
    pub uniformisation_steps: u64,
}

/// Solves `model` with n servers: its stationary law, and its law at `times` from `initial`.
/// `announce` is told the size of every chain before it is solved; with infinite or long buffers there are
/// several, each cut at a higher level, until less than 1e-12 is left at the cut.
///
/// # Errors
/// If the model, n, the start or a time means nothing, if the chain does not fit into 1 GiB, or if
/// there is no stationary law.
pub fn exact(
    model: &Model,
    n: u64,
    initial: &Initial,
    times: &[f64],
    announce: &dyn Fn(&Size),
) -> Result<Exact, ExactError> {
    let pool_sizes = settings::system(model, n)?;
    let start = start::start(model, initial, &pool_sizes)?;
    let mut before = 0.0;
    for &time in times {
        if !(before..f64::INFINITY).contains(&time) {
            return Err(ExactError::Time(time));
        }
        before = time;
    }
    if model.pools.iter().all(|p| p.buffer.is_none()) && model.load() >= 1.0 {
        return Err(ExactError::Unstable { load: model.load() });
    }
    let top = start.iter().map(Vec::len).max().unwrap_or(0);
    let mut cut = FIRST_CUT.max(u32::try_from(top + 2).unwrap_or(u32::MAX));
    let mut last = None;
    loop {
        let chain = match (Chain::new(model, &pool_sizes, &start, cut), last) {
            (Err(ExactError::TooLarge { .. }), Some((cut, mass))) => {
                return Err(ExactError::LongQueues { n, cut, mass });
            }
            (chain, _) => chain?,
        };
        announce(&chain.size(n));
        let solved = solve(&chain, n, &pool_sizes, times)?;
        let mass = solved.statistics.cut_mass.max(solved.statistics.cut_mass_transient);
        if mass <= CUT_MASS {
            return Ok(solved);
        }
        last = Some((cut, mass));
        cut = next_cut(cut, mass);
    }
}

/// Where to cut next, if the mass falls geometrically with the level.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn next_cut(cut: u32, mass: f64) -> u32 {
    let wanted = f64::from(cut) * CUT_MASS.ln() / mass.min(0.5).ln();
    (wanted.ceil() as u32).clamp(cut + 4, cut.saturating_mul(2)) + 1
}

fn solve(chain: &Chain, n: u64, pool_sizes: &[u64], times: &[f64]) -> Result<Exact, ExactError> {
    let found = stationary::stationary(&chain.generator, &chain.jobs, &chain.from_idle)?;
    let at_cut: Vec<bool> = (0..chain.states.len()).map(|i| chain.at_cut(i)).collect();
    let cut_mass =
        |law: &[f64]| law.iter().zip(&at_cut).filter(|(_, cut)| **cut).map(|(p, _)| p).sum::<f64>();
    let stationary = Reading::new(chain, &found.law);
    let (mut transient, mut snapshots) = (Transient::new(&chain.generator, chain.start.clone()), Vec::new());
    let mut cut_mass_transient = 0.0f64;
    let (mut now, met) = (0.0, if times.is_empty() { Vec::new() } else { met(chain) });
    for &time in times {
        transient.advance(time - now);
        now = time;
        cut_mass_transient = cut_mass_transient.max(cut_mass(&transient.law));
        let reading = Reading::new(chain, &transient.law);
        let share = |i: usize| transient.law.iter().zip(&met).map(|(p, met)| p * met[i]).sum();
        snapshots.push(ExactSnapshot {
            time,
            tails: reading.tails(n),
            mean_jobs: reading.mean_jobs(n),
            p_idle: share(0),
            p_wait: share(1),
            p_block: share(2),
        });
    }
    Ok(Exact {
        n,
        pool_sizes: pool_sizes.to_vec(),
        measures: stationary.account(&found.law, n).measures(chain.model),
        tails: stationary.tails(n),
        levels: stationary.levels(),
        idle_servers: idle_servers(chain, &found.law, n),
        jobs: jobs(chain, &found.law),
        transient: snapshots,
        statistics: ExactStatistics {
            size: chain.size(n),
            method: found.method,
            sweeps: found.sweeps,
            residual: found.residual,
            cut_mass: cut_mass(&found.law),
            cut_mass_transient,
            uniformisation_rate: transient.rate,
            uniformisation_steps: transient.steps,
        },
    })
}
