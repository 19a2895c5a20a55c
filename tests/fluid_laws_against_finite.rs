//! Fluid against finite with phases: every policy, four laws, from idle and from long queues, below and
//! above capacity, paths that slide included. Whole distributions are compared, phases of the job in
//! service too (by I6: E S_{1,m} = lambda (1 - p_block) v_m, which the fluid must hold along x*).
//!
//! n = 10,000; bound: 5 standard errors of 12 replications and 10 / n for the bias of the boundary; times
//! near an event are passed over, where the bias is of order n^(-1/2).

mod common;

use common::{close, system};
use fluidlimit::finite::{self, Settings};
use fluidlimit::fluid::{Plan, fixed_point, integrate};
use fluidlimit::model::{Initial, LevelSet, Model, PhaseType, Policy, Pool, Top};

const N: u64 = 10_000;
const REPLICATIONS: u32 = 12;
/// Student's t with 11 degrees of freedom at 97.5 %.
const T: f64 = 2.201;
const TIMES: [f64; 4] = [0.6, 1.5, 3.0, 5.0];

fn laws() -> [(&'static str, PhaseType); 4] {
    let p = 0.5 * (1.0 + 0.6f64.sqrt());
    [
        ("exponential", PhaseType::exponential(1.0).unwrap()),
        ("Erlang-3", PhaseType::erlang(3, 3.0).unwrap()),
        ("H2, SCV 4", PhaseType::hyperexponential(&[p, 1.0 - p], &[2.0 * p, 2.0 * (1.0 - p)]).unwrap()),
        ("Coxian-3", PhaseType::coxian(&[2.8, 2.8 / 1.5, 2.8 / 3.0], &[0.6, 0.5]).unwrap()),
    ]
}

fn policies() -> Vec<Policy> {
    let levels = |from, to| LevelSet { from, to };
    vec![
        Policy::random(),
        Policy::jsq_d(2, true, false),
        Policy::jsq_d(3, false, true),
        Policy::jsq(),
        Policy::pull(),
        Policy::jiq(2),
        Policy::i1f(),
        Policy::threshold(2),
        Policy::fastest_idle_first(&[vec![0], vec![1]]),
        Policy::tiers(&[levels(0, 1), levels(2, 2)], 2),
    ]
}

fn model(load: f64, law: &PhaseType, policy: Policy) -> Model {
    let pools = vec![
        Pool::new("fast", 0.4, Some(4), law.with_mean(1.0 / 1.5).unwrap()),
        Pool::new("slow", 0.6, None, law.with_mean(1.0 / 0.8).unwrap()),
    ];
    let capacity = 0.4 * 1.5 + 0.6 * 0.8;
    system(load * capacity, pools, policy)
}

fn compare(load: f64, initial: &Initial) {
    let mut compared = 0;
    for (name, law) in laws() {
        for policy in policies() {
            let model = model(load, &law, policy);
            let plan = Plan {
                initial: initial.clone(),
                times: TIMES.to_vec(),
                tolerance: 1e-8,
                cut: Top::Reflecting,
            };
            let path = integrate(&model, &plan).unwrap();
            let settings = Settings {
                n: N,
                replications: REPLICATIONS,
                horizon: 5.0,
                warmup: 0.0,
                seed: 20_261_201,
                initial: initial.clone(),
                sample_times: TIMES.to_vec(),
                levels: 30,
                paths: 0,
            };
            let finite = finite::simulate(&model, &settings, &()).unwrap();
            for (a, b) in path.snapshots.iter().zip(&finite.transient) {
                if path.events.iter().any(|e| (-0.4..1.2).contains(&(a.time - e.time))) {
                    continue;
                }
                for (j, (fluid, seen)) in a.tails.iter().zip(&b.tails).enumerate() {
                    for (k, (x, seen)) in fluid.iter().zip(seen).enumerate() {
                        let bound = 5.0 * seen.half_width.unwrap() / T + 10.0 / N as f64;
                        let what = format!(
                            "{name}, {}, load {load}, {initial:?}: x_{} of pool {j} at {}",
                            model.policy.label(),
                            k + 1,
                            a.time
                        );
                        close(*x, seen.value, bound, &what);
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 500, "only {compared} values were far from events");
}

#[test]
fn from_idle_below_capacity() {
    compare(0.8, &Initial::Idle);
}

#[test]
fn from_idle_above_capacity() {
    compare(1.5, &Initial::Idle);
}

#[test]
fn from_long_queues() {
    compare(0.6, &Initial::Level(3));
}

/// At x* every pool's busy servers spend their time in the phases as a job does, in proportion to v_m.
#[test]
fn phases_at_rest_are_those_of_a_job() {
    for (name, law) in laws() {
        for policy in policies() {
            for load in [0.8, 1.5] {
                let model = model(load, &law, policy.clone());
                let x = fixed_point(&model).unwrap_or_else(|e| panic!("{name} {} {load}: {e}", policy.name));
                for (j, phases) in x.phases.iter().enumerate().filter(|(_, p)| !p.is_empty()) {
                    let law = &model.pools[j].law;
                    let v = visits(law);
                    for (m, s) in phases[0].iter().enumerate() {
                        let expected = x.tails[j][0] * v[m] / law.mean();
                        close(
                            *s,
                            expected,
                            1e-11,
                            &format!("{name} {} {load}: phase {m} of pool {j}", policy.name),
                        );
                    }
                }
            }
        }
    }
}

/// Mean time that a job spends in each phase; phases lead to later ones only in these laws.
fn visits(law: &PhaseType) -> Vec<f64> {
    let mut reach = law.initial().to_vec();
    for m in 0..law.phases() {
        for to in m + 1..law.phases() {
            reach[to] += reach[m] * law.moves()[m][to] / law.rate(m);
        }
    }
    (0..law.phases()).map(|m| reach[m] / law.rate(m)).collect()
}
