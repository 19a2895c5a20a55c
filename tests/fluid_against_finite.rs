//! Do the two readings of a model agree? Every policy, with buffers of 1, 5 and infinitely many jobs, on
//! one pool and two, below and above capacity, from idle and from long queues, at n = 10,000.
//!
//! Bound: 5 standard errors of the mean over the replications, plus 10 / n. There are some thousand
//! comparisons, so 4 standard errors would trip by chance. The allowance covers the bias of order 1/n:
//! a coordinate that the fluid holds at zero has mean D / (lambda - D) / n there, which is below 10 in
//! all cases, and the 1/n terms of sampled queues are of order 1. Times are kept away from events,
//! right after which the bias is of order n^-1/2.

mod common;

use common::model;
use fluidlimit::finite::{self, Settings, Summary};
use fluidlimit::fluid::{Path, Plan, fixed_point, integrate};
use fluidlimit::model::{Initial, LevelSet, Model, Policy, Top, Value};

const N: u64 = 10_000;
const REPLICATIONS: u32 = 20;
/// Student's t quantile for 95 % and 19 degrees of freedom: half-widths are this many standard errors.
const T: f64 = 2.093;
const ERRORS: f64 = 5.0;

fn policies() -> Vec<(&'static str, Policy)> {
    let level = |from, to| LevelSet { from, to };
    vec![
        ("random", Policy::random()),
        ("jsq-2", Policy::jsq_d(2, true, false)),
        ("jsq-2 distinct", Policy::jsq_d(2, false, false)),
        ("jsq-3 skipping full", Policy::jsq_d(3, true, true)),
        ("jsq", Policy::jsq()),
        ("pull", Policy::pull()),
        ("jiq-2", Policy::jiq(2)),
        ("i1f", Policy::i1f()),
        ("threshold 2", Policy::threshold(2)),
        ("threshold 3", Policy::threshold(3)),
        ("tiers", Policy::tiers(&[level(0, 0), level(1, 2)], 2)),
        ("fastest idle first", Policy::fastest_idle_first(&[vec![0], vec![1]])),
    ]
}

fn systems(load: f64) -> Vec<(String, Model)> {
    let mut systems = Vec::new();
    for (name, policy) in policies() {
        for buffer in [Some(1), Some(5), None] {
            for pools in [vec![(1.0, 1.0, buffer)], vec![(0.4, 1.4, buffer), (0.6, 0.7, buffer)]] {
                if pools.len() == 1 && name == "fastest idle first" {
                    continue;
                }
                let capacity: f64 = pools.iter().map(|p| p.0 * p.1).sum();
                let what = format!("{name}, buffer {buffer:?}, {} pools, load {load}", pools.len());
                systems.push((what, model(load * capacity, &pools, policy.clone())));
            }
        }
    }
    systems
}

fn simulate(model: &Model, initial: &Initial, horizon: f64, warmup: f64, times: &[f64]) -> Summary {
    let settings = Settings {
        n: N,
        replications: REPLICATIONS,
        horizon,
        warmup,
        seed: 20_261_130,
        initial: initial.clone(),
        sample_times: times.to_vec(),
        levels: 40,
        paths: 0,
    };
    finite::simulate(model, &settings, &()).unwrap()
}

#[track_caller]
fn agree(fluid: f64, finite: Value, what: &str) {
    let standard_error = finite.half_width.unwrap() / T;
    let bound = ERRORS * standard_error + 10.0 / N as f64;
    // A comparison that cannot fail proves nothing.
    assert!(bound < 0.1 * fluid.abs().max(1.0), "{what}: the bound {bound} is too wide");
    assert!((fluid - finite.value).abs() <= bound, "{what}: fluid {fluid}, finite {finite:?}, bound {bound}");
}

/// Times of the list that are not near an event of the path.
fn calm(path: &Path, times: &[f64]) -> Vec<f64> {
    let near = |t: f64| path.events.iter().any(|e| (-0.4..1.6).contains(&(t - e.time)));
    times.iter().copied().filter(|&t| !near(t)).collect()
}

fn compare_paths(load: f64, initial: &Initial) {
    const TIMES: [f64; 6] = [0.8, 1.6, 2.8, 4.2, 5.6, 7.0];
    let mut compared = 0;
    for (what, model) in systems(load) {
        let plan = |times: &[f64]| Plan {
            initial: initial.clone(),
            times: times.to_vec(),
            tolerance: 1e-8,
            cut: Top::Reflecting,
        };
        let scout = integrate(&model, &plan(&TIMES)).unwrap();
        let times = calm(&scout, &TIMES);
        if times.is_empty() {
            continue;
        }
        let path = integrate(&model, &plan(&times)).unwrap();
        let finite = simulate(&model, initial, 7.0, 0.0, &times);
        for (a, b) in path.snapshots.iter().zip(&finite.transient) {
            for (j, (fluid, finite)) in a.tails.iter().zip(&b.tails).enumerate() {
                for k in 0..fluid.len().max(finite.len()).min(40) {
                    let x = fluid.get(k).copied().unwrap_or(0.0);
                    let none = Value { value: 0.0, half_width: Some(0.0) };
                    let seen = finite.get(k).copied().unwrap_or(none);
                    agree(x, seen, &format!("{what}: x_{} of pool {j} at {}", k + 1, a.time));
                }
            }
            compared += 1;
        }
    }
    assert!(compared > 100, "only {compared} snapshots were far from events");
}

#[test]
fn paths_from_idle_below_capacity() {
    compare_paths(0.9, &Initial::Idle);
}

#[test]
fn paths_from_idle_above_capacity() {
    compare_paths(1.4, &Initial::Idle);
}

#[test]
fn paths_from_long_queues() {
    compare_paths(0.5, &Initial::Level(3));
}

#[test]
fn the_long_run() {
    for load in [0.7, 1.3] {
        for (what, model) in systems(load) {
            let x = fixed_point(&model).unwrap();
            // Started at x*, a run stays there if x* is right, and drifts off by the time averages are
            // taken if it is not; where relaxation is slow, or queues grow, that shows nothing.
            if !x.is_proper() || x.relaxation_time().is_none_or(|t| t > 6.0) {
                continue;
            }
            let finite = simulate(&model, &Initial::Tails(x.tails.clone()), 16.0, 8.0, &[]);
            for name in
                ["p_idle", "p_wait", "p_block", "mean_jobs", "utilisation", "throughput", "messages_per_job"]
            {
                let (fluid, seen) = (x.measures.get(name), finite.measures.get(name));
                let (Some(fluid), Some(seen)) = (fluid, seen) else {
                    panic!("{what}: {name} is {fluid:?} and {seen:?}")
                };
                agree(fluid.value, seen, &format!("{what}: {name}"));
            }
            for (j, (fluid, finite)) in x.tails.iter().zip(&finite.tails).enumerate() {
                for (k, x) in fluid.iter().enumerate() {
                    let none = Value { value: 0.0, half_width: Some(0.0) };
                    let seen = finite.get(k).copied().unwrap_or(none);
                    agree(*x, seen, &format!("{what}: x_{} of pool {j}", k + 1));
                }
            }
        }
    }
}
