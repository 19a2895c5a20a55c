//! The part of the result document that the exact chain fills.

use super::{ByPool, by_phase, visible};
use crate::finite::{Exact, ExactSnapshot, ExactStatistics};
use crate::model::{Measures, Model};
use serde::Serialize;

/// The exact solution at one n.
#[derive(Debug, Clone, Serialize)]
pub struct ExactPart {
    /// Number of servers.
    pub n: u64,
    /// Servers of each pool.
    pub pool_sizes: ByPool<u64>,
    /// Stationary measures.
    pub measures: Measures,
    /// Stationary tails as fractions of all servers.
    pub tails: ByPool<Vec<f64>>,
    /// The same by the phase of the job in service, S_{i,m}, of pools with several phases.
    #[serde(skip_serializing_if = "ByPool::is_empty")]
    pub phases: ByPool<Vec<Vec<f64>>>,
    /// Stationary messages at each router as fractions of all servers; nothing with one router.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<f64>,
    /// Fractions of the pool's servers by level, from 0.
    pub levels: ByPool<Vec<f64>>,
    /// Probabilities that 0, 1, ... n servers are idle.
    pub idle_servers: Vec<f64>,
    /// Probabilities of 0, 1, ... jobs in the system.
    pub jobs: Vec<f64>,
    /// Expectations at the recorded times.
    pub trajectory: Vec<ExactPoint>,
    /// How it was found.
    pub statistics: ExactStatistics,
}

/// Expectations at one time.
#[derive(Debug, Clone, Serialize)]
pub struct ExactPoint {
    /// Time.
    pub time: f64,
    /// Tails as fractions of all servers.
    pub tails: ByPool<Vec<f64>>,
    /// The same by the phase of the job in service, S_{i,m}, of pools with several phases.
    #[serde(skip_serializing_if = "ByPool::is_empty")]
    pub phases: ByPool<Vec<Vec<f64>>>,
    /// Messages at each router as fractions of all servers; nothing with one router.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<f64>,
    /// Jobs per server.
    pub mean_jobs: f64,
    /// Shares of the arrivals of this moment.
    pub p_idle: f64,
    /// See `p_idle`.
    pub p_wait: f64,
    /// See `p_idle`.
    pub p_block: f64,
}

impl ExactPart {
    /// From what the solver found.
    #[must_use]
    pub fn new(model: &Model, e: &Exact) -> Self {
        let visible = |tails: &[Vec<f64>]| ByPool::new(model, tails.iter().map(|x| visible(x)));
        let point = |p: &ExactSnapshot| ExactPoint {
            time: p.time,
            tails: visible(&p.tails),
            phases: by_phase(model, &p.phases),
            messages: p.messages.clone(),
            mean_jobs: p.mean_jobs,
            p_idle: p.p_idle,
            p_wait: p.p_wait,
            p_block: p.p_block,
        };
        Self {
            n: e.n,
            pool_sizes: ByPool::new(model, e.pool_sizes.iter().copied()),
            measures: e.measures.clone(),
            tails: visible(&e.tails),
            phases: by_phase(model, &e.phases),
            messages: e.messages.clone(),
            levels: ByPool::new(model, e.levels.iter().cloned()),
            idle_servers: e.idle_servers.clone(),
            jobs: e.jobs.clone(),
            trajectory: e.transient.iter().map(point).collect(),
            statistics: e.statistics.clone(),
        }
    }
}
