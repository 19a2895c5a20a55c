//! What the tests of the finite sampler share: models in one line, and the comparison of an estimate
//! with an exact number.
#![allow(dead_code)]

pub mod chain;
#[path = "../common/mod.rs"]
mod common;
pub mod routers;

use fluidlimit::finite::{Replication, Settings};
use fluidlimit::model::{Initial, Measures, Model, PhaseType, Policy, Pool};

/// Standard errors that an estimate may be off. With 64 replications chance exceeds this once in
/// 200,000 comparisons; the seeds are fixed, so a passing test goes on passing.
const TOLERANCE: f64 = 5.0;

/// A model with pools (share, buffer, law).
pub fn model(arrival_rate: f64, policy: Policy, pools: &[(f64, Option<u32>, PhaseType)]) -> Model {
    let pools = pools
        .iter()
        .enumerate()
        .map(|(j, (share, buffer, law))| Pool::new(format!("p{}", j + 1), *share, *buffer, law.clone()))
        .collect();
    common::system(arrival_rate, pools, policy)
}

/// One pool of servers that work at rate 1.
pub fn one_pool(arrival_rate: f64, policy: Policy, buffer: Option<u32>) -> Model {
    model(arrival_rate, policy, &[(1.0, buffer, exponential(1.0))])
}

/// The exponential law.
pub fn exponential(rate: f64) -> PhaseType {
    PhaseType::exponential(rate).unwrap()
}

/// 64 replications from idle.
pub fn settings(n: u64, horizon: f64, warmup: f64, seed: u64) -> Settings {
    Settings {
        n,
        replications: 64,
        horizon,
        warmup,
        seed,
        initial: Initial::Idle,
        sample_times: vec![],
        levels: 50,
        paths: 0,
    }
}

/// Asserts that independent estimates scatter around `exact`, and that they scatter little enough to
/// tell: their standard error is below `resolution`.
pub fn assert_near(what: &str, estimates: &[f64], exact: f64, resolution: f64) {
    assert_within(TOLERANCE, what, estimates, exact, resolution);
}

/// As [`assert_near`], with the number of standard errors given.
pub fn assert_within(errors: f64, what: &str, estimates: &[f64], exact: f64, resolution: f64) {
    #[allow(clippy::cast_precision_loss)]
    let count = estimates.len() as f64;
    let mean = estimates.iter().sum::<f64>() / count;
    let squares: f64 = estimates.iter().map(|x| (x - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    assert!(error < resolution, "{what}: standard error {error} says nothing");
    assert!(
        (mean - exact).abs() <= errors * error + 1e-12,
        "{what}: {mean} with standard error {error}, exactly {exact}"
    );
}

/// One measure of every replication.
pub fn measured(runs: &[Replication], name: &str) -> Vec<f64> {
    runs.iter().map(|run| value(&run.measures, name)).collect()
}

/// A measure that must exist, of the system or, as `pool.measure`, of a pool counted from 0.
pub fn value(measures: &Measures, name: &str) -> f64 {
    let value = match name.split_once('.') {
        None => measures.get(name),
        Some((pool, name)) => measures.pools[pool.parse::<usize>().unwrap()].get(name),
    };
    value.unwrap_or_else(|| panic!("{name} does not exist")).value
}

/// One tail of every replication.
pub fn tail(runs: &[Replication], pool: usize, level: usize) -> Vec<f64> {
    runs.iter().map(|run| run.tails[pool].get(level - 1).copied().unwrap_or(0.0)).collect()
}
