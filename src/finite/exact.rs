//! Finite n without sampling: the chain of the numbers of servers per state, solved.
//!
//! Written from the description of the model alone. It shares nothing with the samplers but the
//! definitions of the measures and the rounding of an initial state to servers. Work and memory grow
//! with the number of states, so it is for small n: what it gives has no interval.

mod chain;
mod places;
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
use stationary::Stationary;

/// Infinite and long buffers are cut where the probability that any server stands at the cut is below this.
const CUT_MASS: f64 = 1e-12;

/// Multiplications that the states at the times asked for may take: about an hour.
const TRANSIENT_WORK: f64 = 1e12;

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
         there with probability {mass:.1e}, and a cut that leaves 1e-12 there would take too much memory, \
         if there is one: n servers may be unstable where the limit is not. Give the pools finite buffers"
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
    /// Messages gather at several routers.
    #[error(
        "several routers get messages but no jobs, and keep them: where messages end up depends on the start, \
         so there is no single stationary law. Give these routers jobs, or no messages, or let messages be \
         withdrawn"
    )]
    Hoarders,
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
    /// The times reach too far.
    #[error(
        "the state at time {time} takes about {work:.0e} multiplications; at most {limit:.0e} are made. Ask for \
         earlier times (fluid.horizon), or a smaller n"
    )]
    LateTimes {
        /// The last time.
        time: f64,
        /// Multiplications it takes: steps of the uniformisation, for every transition.
        work: f64,
        /// Multiplications that are made.
        limit: f64,
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
    /// The same by the phase of the job in service: by pool, level and phase. Nothing for pools with one phase.
    pub phases: Vec<Vec<Vec<f64>>>,
    /// Stationary means of the messages at each router as fractions of n; nothing with one router.
    pub messages: Vec<f64>,
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
    /// The same by the phase of the job in service: by pool, level and phase. Nothing for pools with one phase.
    pub phases: Vec<Vec<Vec<f64>>>,
    /// Messages at each router as fractions of n; nothing with one router.
    pub messages: Vec<f64>,
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
    pub uniformisation_steps: usize,
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
    let mut last_time = 0.0;
    for &time in times {
        if !(last_time..f64::INFINITY).contains(&time) {
            return Err(ExactError::Time(time));
        }
        last_time = time;
    }
    if model.pools.iter().all(|p| p.buffer.is_none()) && model.load() >= 1.0 {
        return Err(ExactError::Unstable { load: model.load() });
    }
    let top = start.busy.iter().map(Vec::len).max().unwrap_or(0);
    let mut cut = FIRST_CUT.max(u32::try_from(top + 2).unwrap_or(u32::MAX));
    let mut tried: Vec<Tried> = Vec::new();
    loop {
        let chain = match (Chain::new(model, &pool_sizes, &start, cut), tried.last()) {
            (Err(ExactError::TooLarge { .. }), Some(last)) => return Err(last.too_long(n)),
            (chain, _) => chain?,
        };
        announce(&chain.size(n));
        let transitions = chain.generator.transitions().max(1);
        #[allow(clippy::cast_precision_loss)]
        let work = chain.generator.fastest() * last_time * transitions as f64;
        if work > TRANSIENT_WORK {
            return Err(ExactError::LateTimes { time: last_time, work, limit: TRANSIENT_WORK });
        }
        let found = stationary::stationary(&chain.generator, &chain.jobs, &chain.from_idle)?;
        let mut mass = chain.cut_mass(&found.law);
        if mass <= CUT_MASS {
            let solved = solve(&chain, &found, n, &pool_sizes, times);
            mass = solved.statistics.cut_mass_transient;
            if mass <= CUT_MASS {
                return Ok(solved);
            }
        }
        tried.push(Tried { cut, memory: to_f64(chain.memory), mass });
        cut = next_cut(&tried, n)?;
    }
}

/// A cut of long buffers that left too much.
#[derive(Debug, Clone, Copy)]
struct Tried {
    cut: u32,
    memory: f64,
    mass: f64,
}

impl Tried {
    fn too_long(&self, n: u64) -> ExactError {
        ExactError::LongQueues { n, cut: self.cut, mass: self.mass }
    }
}

/// Where to cut next: where the mass would be small enough if it went on falling geometrically with the
/// level. Gives up after three cuts if that chain would be too large, its memory a power of the level.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn next_cut(tried: &[Tried], n: u64) -> Result<u32, ExactError> {
    let [.., before, last] = tried else {
        return Ok(2 * tried.first().map_or(FIRST_CUT, |first| first.cut) + 1);
    };
    let level = f64::from(last.cut);
    let fall = (before.mass / last.mass).ln() / (level - f64::from(before.cut));
    let wanted = if fall > 0.0 { level + (last.mass / CUT_MASS).ln() / fall + 2.0 } else { f64::INFINITY };
    let power = (last.memory / before.memory).ln() / (level / f64::from(before.cut)).ln();
    if tried.len() > 2 && last.memory * (wanted / level).powf(power) > to_f64(chain::MEMORY_LIMIT) {
        return Err(last.too_long(n));
    }
    Ok(wanted.min(4.0 * level).max(level + 4.0).ceil() as u32)
}

/// Reads the stationary law, and the law at `times`.
fn solve(chain: &Chain, found: &Stationary, n: u64, pool_sizes: &[u64], times: &[f64]) -> Exact {
    let stationary = Reading::new(chain, &found.law);
    // What a job meets and who stands at the cut, for every state, beside servers and messages.
    let width = Reading::width(chain);
    let met = if times.is_empty() { Vec::new() } else { met(chain) };
    let path = transient::transient(&chain.generator, chain.start.clone(), times, width + 4, |law, means| {
        let (servers, rest) = means.split_at_mut(width);
        Reading::means(chain, law, servers);
        for (i, mean) in rest[..3].iter_mut().enumerate() {
            *mean = law.iter().zip(&met).map(|(p, met)| p * met[i]).sum();
        }
        rest[3] = chain.cut_mass(law);
    });
    let snapshot = |(&time, means): (&f64, &Vec<f64>)| {
        let reading = Reading::of(chain, means[..width].to_vec());
        ExactSnapshot {
            time,
            tails: reading.tails(n),
            phases: reading.phases(n),
            messages: reading.messages(n),
            mean_jobs: reading.mean_jobs(n),
            p_idle: means[width],
            p_wait: means[width + 1],
            p_block: means[width + 2],
        }
    };
    Exact {
        n,
        pool_sizes: pool_sizes.to_vec(),
        measures: stationary.account(&found.law, n).measures(chain.places.model),
        tails: stationary.tails(n),
        phases: stationary.phases(n),
        messages: stationary.messages(n),
        levels: stationary.levels(),
        idle_servers: idle_servers(chain, &found.law, n),
        jobs: jobs(chain, &found.law),
        transient: times.iter().zip(&path.means).map(snapshot).collect(),
        statistics: ExactStatistics {
            size: chain.size(n),
            method: found.method,
            sweeps: found.sweeps,
            residual: found.residual,
            cut_mass: chain.cut_mass(&found.law),
            cut_mass_transient: path.means.iter().map(|means| means[width + 3]).fold(0.0, f64::max),
            uniformisation_rate: path.rate,
            uniformisation_steps: path.steps,
        },
    }
}

#[allow(clippy::cast_precision_loss)]
fn to_f64(count: u64) -> f64 {
    count as f64
}
