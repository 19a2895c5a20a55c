//! Finite n: the exact jump process of n servers, read in three ways that check one another.
//!
//! [`simulate`] samples counts: its state is how many servers of each pool hold k jobs (and, for
//! services with several phases, in which phase), so that an event costs the same for ten servers and
//! for ten million. [`simulate_servers`] samples the servers one by one and follows every job.
//! [`exact()`] solves the chain, for small n. They share the definitions of the measures, the rounding of
//! a start to whole servers, and the streams of random numbers, but no clock and no choice of a server.
//! Nothing here is shared with the fluid limit.
//!
//! Both samplers run independent replications on all threads of the current rayon pool. A
//! replication's random numbers depend on the seed, n and its number alone, and replications are
//! added up in the order of their numbers: results are the same to the last bit for any number of
//! threads.

mod accounts;
mod counts;
mod dispatch;
mod estimate;
mod exact;
mod histogram;
mod job_times;
mod ledger;
mod mailboxes;
mod process;
mod replication;
mod roster;
mod routers;
mod servers;
mod service;
mod settings;
mod start;
pub mod streams;
mod summary;

use std::sync::{Mutex, OnceLock, PoisonError};

use rayon::iter::{ParallelBridge, ParallelIterator};
use serde::Serialize;

pub use estimate::{Replication, Statistics};
pub use exact::{Exact, ExactError, ExactSnapshot, ExactStatistics, Method, Size, exact};
pub use servers::simulate_servers;
pub use settings::{FiniteError, Settings};
pub use summary::{Path, Snapshot, interval};

use crate::model::{JobTimes, Measures, Model, Value};
use process::{Process, System};
use replication::replication;
use routers::{RouterProcess, RouterTables};
use summary::Collector;

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

/// Which reading of the model was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampler {
    /// Numbers of servers per level: [`simulate`].
    Counts,
    /// Servers one by one: [`simulate_servers`].
    Servers,
}

/// Estimates of a model at one n.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// What was sampled.
    pub sampler: Sampler,
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
    /// Waiting and response times of single jobs; only the sampler of servers knows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_times: Option<JobTimes>,
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
    let sizes = settings::check(model, settings)?;
    let start = start::start(model, &settings.initial, &sizes)?;
    let system = System::new(model, settings.n);
    let tables = model.policy.routers.as_ref().map(RouterTables::new);
    replicate(Sampler::Counts, settings, sizes, control, |number| {
        let rng = streams::stream(settings.seed, settings.n, number);
        let done = match &tables {
            None => {
                let process = Process::new(&system, &start, rng);
                replication(model, settings, &system, process, number, control)
            }
            Some(tables) => {
                let process = RouterProcess::new(tables, &system, &start, rng);
                replication(model, settings, &system, process, number, control)
            }
        };
        done.ok_or(FiniteError::Interrupted)
    })
}

/// Runs the replications on all threads and adds them up in the order of their numbers. A replication
/// that is cancelled returns [`FiniteError::Interrupted`]; any other error ends the run.
fn replicate(
    sampler: Sampler,
    settings: &Settings,
    pool_sizes: Vec<u64>,
    control: &dyn Control,
    replication: impl Fn(u32) -> Result<(Replication, Path), FiniteError> + Sync,
) -> Result<Summary, FiniteError> {
    let collector = Mutex::new(Collector::new(settings.paths));
    let failed = OnceLock::new();
    // The bridge hands out numbers one after the other, so few replications wait to be added up.
    (0..settings.replications).par_bridge().for_each(|number| {
        if failed.get().is_some() {
            return;
        }
        match replication(number) {
            Ok((run, path)) => {
                collector.lock().unwrap_or_else(PoisonError::into_inner).take(run, path);
                control.finished_replication();
            }
            Err(FiniteError::Interrupted) => {}
            // Another thread may have failed first, with the same error.
            Err(error) => drop(failed.set(error)),
        }
    });
    if let Some(error) = failed.into_inner() {
        return Err(error);
    }
    let all = collector.into_inner().unwrap_or_else(PoisonError::into_inner).finish(&settings.sample_times);
    if all.runs.is_empty() {
        return Err(FiniteError::Interrupted);
    }
    let done = u32::try_from(all.runs.len()).unwrap_or(u32::MAX);
    Ok(Summary {
        sampler,
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
        job_times: job_times::mean(&all.runs),
        transient: all.transient,
        paths: all.paths,
        statistics: all.statistics,
        runs: all.runs,
    })
}
