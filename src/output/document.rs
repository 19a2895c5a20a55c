//! The result document: one struct that serialises, from which JSON, CSV and tables are made.

mod exact;

pub use exact::{ExactPart, ExactPoint};

use super::events::what_happened;
use crate::finite::{Sampler, Statistics, Summary};
use crate::fluid::{Event, FixedPoint, Method, Path, Snapshot, Split, StepCounts};
use crate::model::{JobTimes, Measures, Model, Value};
use crate::run::{Checked, Convergence};
use serde::{Serialize, Serializer};

/// A map by pool name, in the model's order.
#[derive(Debug, Clone)]
pub struct ByPool<T>(pub Vec<(String, T)>);

impl<T: Serialize> Serialize for ByPool<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(k, v)| (k, v)))
    }
}

impl<T> ByPool<T> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn new(model: &Model, values: impl IntoIterator<Item = T>) -> Self {
        Self(model.pools.iter().map(|p| p.name.clone()).zip(values).collect())
    }
}

impl Document {
    /// The fluid's measures for n servers, where the document has a fluid.
    #[must_use]
    pub fn fluid_at(&self, n: u64) -> Option<&Measures> {
        let own = self.sizes.iter().find(|size| size.n == n).map(|size| &size.fluid);
        own.or(self.fluid.as_ref().map(|fluid| &fluid.measures))
    }
}

/// Everything a command computed.
#[derive(Debug, Clone, Serialize)]
pub struct Document {
    /// Which model.
    pub model: ModelPart,
    /// What reproduces it.
    pub run: RunPart,
    /// What the formulas of n give at each n, where the model has any and runs at more than one n.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizePart>,
    /// The fluid limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fluid: Option<FluidPart>,
    /// Finite n, one entry each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finite: Vec<FinitePart>,
    /// Exact solutions, one for each n.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exact: Vec<ExactPart>,
    /// Errors over n.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convergence: Option<Convergence>,
    /// The model file's own expectations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<Checked>,
}

/// The model as it was read.
#[derive(Debug, Clone, Serialize)]
pub struct ModelPart {
    /// Its name.
    pub name: String,
    /// Hash of its canonical form: equal files, whatever their layout, have equal hashes.
    pub hash: String,
    /// The policy in words.
    pub policy: String,
    /// Jobs per server and unit of time.
    pub arrival_rate: f64,
    /// Service capacity per server.
    pub capacity: f64,
    /// Arrival rate over capacity.
    pub load: f64,
    /// The number of servers at which the model's formulas of n were taken, for these numbers and the
    /// fluid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<u64>,
    /// The service law of each pool.
    pub services: ByPool<ServicePart>,
}

/// The model at one n, and its fluid limit.
#[derive(Debug, Clone, Serialize)]
pub struct SizePart {
    /// Number of servers.
    pub n: u64,
    /// The policy in words.
    pub policy: String,
    /// Jobs per server and unit of time.
    pub arrival_rate: f64,
    /// Arrival rate over capacity.
    pub load: f64,
    /// Measures at the fixed point; where pools grow, in the limit.
    pub fluid: Measures,
}

/// A service law in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct ServicePart {
    /// In words.
    pub law: String,
    /// Mean service time.
    pub mean: f64,
    /// Squared coefficient of variation.
    pub scv: f64,
    /// Number of phases.
    pub phases: usize,
    /// Largest distance of its survival function from that of the law that it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survival_distance: Option<f64>,
    /// How well it fits the data it was fitted to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataLikelihood>,
}

/// A fit by maximum likelihood.
#[derive(Debug, Clone, Serialize)]
pub struct DataLikelihood {
    /// Number of service times.
    pub times: usize,
    /// Log-likelihood.
    pub log_likelihood: f64,
    /// Bayesian information criterion.
    pub bic: f64,
}

/// What reproduces a result. Only this part may differ between two runs that should agree.
#[derive(Debug, Clone, Serialize)]
pub struct RunPart {
    /// Version of the program.
    pub version: String,
    /// The command line.
    pub command: Vec<String>,
    /// Seed, where random numbers were used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Accuracy asked of the fluid path.
    pub tolerance: f64,
    /// Threads.
    pub threads: usize,
    /// Whether the run was interrupted and holds only what was finished.
    pub interrupted: bool,
}

/// The fluid limit: the long run, the path, and how they were found.
#[derive(Debug, Clone, Serialize)]
pub struct FluidPart {
    /// Measures at the fixed point; where pools grow, in the limit.
    pub measures: Measures,
    /// Tails x_1, x_2, ... at the fixed point as fractions of all servers; of a growing pool, none.
    pub tails: ByPool<Vec<f64>>,
    /// The same by the phase of the job in service, S_{i,m}, of pools with several phases.
    #[serde(skip_serializing_if = "ByPool::is_empty")]
    pub phases: ByPool<Vec<Vec<f64>>>,
    /// Idle servers at the fixed point.
    pub idle: ByPool<f64>,
    /// Waiting and response times of a job that comes in the long run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_times: Option<JobTimes>,
    /// Under pull with several routers: what each of them holds at the fixed point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// Whether there is a fixed point: no pool grows.
    pub stable: bool,
    /// The path at the recorded times.
    pub trajectory: Vec<TrajectoryPoint>,
    /// When tiers emptied and filled again.
    pub events: Vec<EventPart>,
    /// What explains the run.
    pub statistics: FluidStatistics,
}

/// An event of the path.
#[derive(Debug, Clone, Serialize)]
pub struct EventPart {
    /// When, and at which tier or router.
    #[serde(flatten)]
    pub event: Event,
    /// What it means for the servers, in words.
    pub what: String,
}

/// The path at one time.
#[derive(Debug, Clone, Serialize)]
pub struct TrajectoryPoint {
    /// Time.
    pub time: f64,
    /// Tails as fractions of all servers.
    pub tails: ByPool<Vec<f64>>,
    /// The same by the phase of the job in service, S_{i,m}, of pools with several phases.
    #[serde(skip_serializing_if = "ByPool::is_empty")]
    pub phases: ByPool<Vec<Vec<f64>>>,
    /// Idle servers as fractions of all servers.
    pub idle: ByPool<f64>,
    /// Messages at each router as fractions of all servers, where there are several routers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<f64>,
    /// Jobs per server of all pools.
    pub mean_jobs: f64,
    /// Shares of the arrivals of this moment.
    pub p_idle: f64,
    /// See `p_idle`.
    pub p_wait: f64,
    /// See `p_idle`.
    pub p_block: f64,
}

/// How the fluid results were found and how good they are.
#[derive(Debug, Clone, Serialize)]
pub struct FluidStatistics {
    /// How the fixed point was found.
    pub method: Method,
    /// Largest drift at the fixed point.
    pub residual: f64,
    /// Its most negative entry.
    pub infeasibility: f64,
    /// Newton steps.
    pub newton_steps: u32,
    /// Rightmost eigenvalue of the Jacobian, each pool's mass kept.
    pub spectral_abscissa: Option<f64>,
    /// One over its distance from zero.
    pub relaxation_time: Option<f64>,
    /// Bound on the error of any tail of the fixed point made by cutting infinite buffers.
    pub truncation_fixed_point: f64,
    /// The same along the path: the gap between a lower and an upper system.
    pub truncation_path: f64,
    /// Levels used at the fixed point.
    pub levels: ByPool<u32>,
    /// Work of the integrators.
    pub steps: StepCounts,
    /// Time spent sliding.
    pub sliding_time: f64,
    /// Most negative entry that a step produced and that was set to zero before the path went on.
    pub clipped: f64,
    /// Most negative entry along the path, between the recorded times as well.
    pub lowest_entry: f64,
    /// Largest deviation of a pool's mass from its share.
    pub mass_defect: f64,
}

/// One n.
#[derive(Debug, Clone, Serialize)]
pub struct FinitePart {
    /// What was sampled.
    pub sampler: Sampler,
    /// Number of servers.
    pub n: u64,
    /// Servers of each pool.
    pub pool_sizes: ByPool<u64>,
    /// Replications finished.
    pub replications: u32,
    /// Time at which each ended.
    pub horizon: f64,
    /// Time from which on averages were taken.
    pub warmup: f64,
    /// Measures with their 95 % intervals.
    pub measures: Measures,
    /// Time-averaged tails as fractions of all servers.
    pub tails: ByPool<Vec<Value>>,
    /// Time-averaged fractions of the pool's servers by level, from 0.
    pub levels: ByPool<Vec<Value>>,
    /// Waiting and response times of single jobs, from the sampler of servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_times: Option<JobTimes>,
    /// Means over replications at the recorded times.
    pub trajectory: Vec<FinitePoint>,
    /// Work done.
    pub statistics: Statistics,
}

/// The mean over replications at one time.
#[derive(Debug, Clone, Serialize)]
pub struct FinitePoint {
    /// Time.
    pub time: f64,
    /// Tails as fractions of all servers.
    pub tails: ByPool<Vec<Value>>,
    /// The same by the phase of the job in service, S_{i,m}, of pools with several phases.
    #[serde(skip_serializing_if = "ByPool::is_empty")]
    pub phases: ByPool<Vec<Vec<Value>>>,
    /// Jobs per server.
    pub mean_jobs: Value,
    /// Messages at each router as fractions of all servers, where there are several routers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Value>,
}

impl FluidPart {
    /// From what the solver found.
    #[must_use]
    pub fn new(
        model: &Model,
        path: &Path,
        truncation: f64,
        fixed: &FixedPoint,
        job_times: Option<JobTimes>,
    ) -> Self {
        let point = |s: &Snapshot| TrajectoryPoint {
            time: s.time,
            tails: ByPool::new(model, s.tails.iter().cloned()),
            phases: by_phase(model, &s.phases),
            idle: ByPool::new(model, s.idle.iter().copied()),
            messages: s.messages.clone(),
            mean_jobs: s.jobs.iter().sum(),
            p_idle: s.p_idle,
            p_wait: s.p_wait,
            p_block: s.p_block,
        };
        Self {
            measures: fixed.measures.clone(),
            tails: ByPool::new(model, fixed.tails.iter().map(|x| visible(x))),
            phases: by_phase(model, &fixed.phases),
            idle: ByPool::new(model, fixed.idle.iter().copied()),
            job_times,
            split: fixed.split.clone(),
            stable: fixed.is_proper(),
            trajectory: path.snapshots.iter().map(point).collect(),
            events: path
                .events
                .iter()
                .map(|event| EventPart { event: *event, what: what_happened(model, event) })
                .collect(),
            statistics: FluidStatistics {
                method: fixed.method,
                residual: fixed.residual,
                infeasibility: fixed.infeasibility,
                newton_steps: fixed.iterations,
                spectral_abscissa: fixed.spectral_abscissa,
                relaxation_time: fixed.relaxation_time(),
                truncation_fixed_point: fixed.truncation,
                truncation_path: truncation,
                levels: ByPool::new(model, fixed.levels.iter().copied()),
                steps: path.counts,
                sliding_time: path.sliding,
                clipped: path.clipped,
                lowest_entry: path.lowest,
                mass_defect: path.mass_defect,
            },
        }
    }
}

/// The part of a tail that a reader can use: down to 1e-16, and at most 10,000 levels.
fn visible(tails: &[f64]) -> Vec<f64> {
    const MOST: usize = 10_000;
    let end = tails.iter().position(|x| *x < 1e-16).unwrap_or(tails.len());
    tails[..end.clamp(1.min(tails.len()), MOST.min(tails.len()))].to_vec()
}

impl FinitePart {
    /// From what the sampler found.
    #[must_use]
    pub fn new(model: &Model, s: &Summary) -> Self {
        let point = |p: &crate::finite::Snapshot| FinitePoint {
            time: p.time,
            tails: ByPool::new(model, p.tails.iter().cloned()),
            phases: by_phase(model, &p.phases),
            mean_jobs: p.mean_jobs,
            messages: p.messages.clone(),
        };
        Self {
            sampler: s.sampler,
            n: s.n,
            pool_sizes: ByPool::new(model, s.pool_sizes.iter().copied()),
            replications: s.replications,
            horizon: s.horizon,
            warmup: s.warmup,
            measures: s.measures.clone(),
            tails: ByPool::new(model, s.tails.iter().cloned()),
            levels: ByPool::new(model, s.levels.iter().cloned()),
            job_times: s.job_times.clone(),
            trajectory: s.transient.iter().map(point).collect(),
            statistics: s.statistics,
        }
    }
}

/// Tails by phase, of the pools that have several.
fn by_phase<T: Clone>(model: &Model, phases: &[Vec<Vec<T>>]) -> ByPool<Vec<Vec<T>>> {
    let several = ByPool::new(model, phases.iter().cloned()).0.into_iter().filter(|(_, x)| !x.is_empty());
    ByPool(several.collect())
}
