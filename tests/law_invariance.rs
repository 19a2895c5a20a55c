//! What must not change the answer: another way to write the same law, other names for its phases, pools
//! that are one pool, another unit of time. And what phases of any rates must obey: the identities of
//! Coxian service (I1, I2, I5: mass, flow of jobs, phases of the job in service in proportion to v_m).
//! Bounds: 1e-12 for fixed points, 1e-9 for paths.

mod common;

use common::{close, system};
use fluidlimit::fluid::{FixedPoint, Plan, Snapshot, fixed_point, integrate};
use fluidlimit::model::{Initial, Model, PhaseType, Policy, Pool, Top};
use proptest::prelude::*;

fn policies() -> Vec<Policy> {
    vec![
        Policy::random(),
        Policy::jsq_d(2, true, false),
        Policy::jsq_d(3, true, true),
        Policy::jsq(),
        Policy::pull(),
        Policy::jiq(2),
        Policy::i1f(),
        Policy::threshold(2),
    ]
}

fn path(model: &Model, times: &[f64]) -> Vec<Snapshot> {
    let plan =
        Plan { initial: Initial::Level(1), times: times.to_vec(), tolerance: 1e-11, cut: Top::Reflecting };
    integrate(model, &plan).unwrap().snapshots
}

/// Tails pool by pool, padded.
fn same(a: &[Vec<f64>], b: &[Vec<f64>], bound: f64, what: &str) {
    for (j, (a, b)) in a.iter().zip(b).enumerate() {
        for k in 0..a.len().max(b.len()) {
            let at = |x: &Vec<f64>| x.get(k).copied().unwrap_or(0.0);
            close(at(a), at(b), bound, &format!("{what}: x_{} of pool {j}", k + 1));
        }
    }
}

#[test]
fn one_law_written_in_several_ways() {
    let (p, a, b) = (0.3, 2.5, 0.5);
    let h2 = PhaseType::hyperexponential(&[p, 1.0 - p], &[a, b]).unwrap();
    let swapped = PhaseType::hyperexponential(&[1.0 - p, p], &[b, a]).unwrap();
    // Exp(b) = Exp(a), and with probability 1 - b / a another Exp(b) on top.
    let coxian = PhaseType::coxian(&[a, b], &[(1.0 - p) * (1.0 - b / a)]).unwrap();
    let general = PhaseType::general(
        vec![0.0, 1.0],
        vec![vec![0.0, 0.0], vec![a * (1.0 - p) * (1.0 - b / a), 0.0]],
        vec![b, a * (1.0 - (1.0 - p) * (1.0 - b / a))],
    )
    .unwrap();
    for policy in policies() {
        for load in [0.7, 1.4] {
            let of = |law: &PhaseType| {
                let pools = vec![
                    Pool::new("a", 0.4, Some(4), law.clone()),
                    Pool::new("b", 0.6, Some(3), law.with_mean(0.8).unwrap()),
                ];
                system(load * (0.4 / law.mean() + 0.6 / 0.8), pools, policy.clone())
            };
            let reference = fixed_point(&of(&h2)).unwrap();
            for (name, law) in [("swapped", &swapped), ("Coxian", &coxian), ("general", &general)] {
                let what = format!("{name}, {} at load {load}", policy.name);
                let x = fixed_point(&of(law)).unwrap();
                same(&x.tails, &reference.tails, 1e-12, &what);
                // From idle: a start with busy servers would start its jobs in phases that differ.
                let run = |m: &Model| {
                    let plan = Plan {
                        initial: Initial::Idle,
                        times: vec![0.5, 4.0],
                        tolerance: 1e-11,
                        cut: Top::Reflecting,
                    };
                    integrate(m, &plan).unwrap().snapshots
                };
                for (a, b) in run(&of(law)).iter().zip(&run(&of(&h2))) {
                    same(&a.tails, &b.tails, 1e-9, &format!("{what} at {}", a.time));
                }
            }
        }
    }
}

#[test]
fn equal_rates_are_exponential_service() {
    let exponential = PhaseType::exponential(1.7).unwrap();
    let mixture = PhaseType::hyperexponential(&[0.2, 0.5, 0.3], &[1.7, 1.7, 1.7]).unwrap();
    for policy in policies() {
        for load in [0.7, 1.4] {
            let of = |law: &PhaseType| {
                system(load * 1.7, vec![Pool::new("a", 1.0, Some(4), law.clone())], policy.clone())
            };
            let (x, y) = (fixed_point(&of(&mixture)).unwrap(), fixed_point(&of(&exponential)).unwrap());
            same(&x.tails, &y.tails, 1e-12, &policy.name);
            for (a, b) in path(&of(&mixture), &[0.4, 3.0]).iter().zip(path(&of(&exponential), &[0.4, 3.0])) {
                same(&a.tails, &b.tails, 1e-9, &policy.name);
            }
        }
    }
}

#[test]
fn equal_pools_are_one_pool_and_time_has_no_unit() {
    let law = PhaseType::coxian(&[2.8, 2.8 / 1.5, 2.8 / 3.0], &[0.6, 0.5]).unwrap();
    let faster = law.with_mean(law.mean() / 7.0).unwrap();
    for policy in policies() {
        for load in [0.8, 1.3] {
            let one =
                system(load / law.mean(), vec![Pool::new("a", 1.0, Some(4), law.clone())], policy.clone());
            let two = system(
                load / law.mean(),
                vec![Pool::new("a", 0.3, Some(4), law.clone()), Pool::new("b", 0.7, Some(4), law.clone())],
                policy.clone(),
            );
            let fast = system(
                7.0 * load / law.mean(),
                vec![Pool::new("a", 1.0, Some(4), faster.clone())],
                policy.clone(),
            );
            let merged = |x: &[Vec<f64>]| -> Vec<Vec<f64>> {
                let length = x[0].len().max(x[1].len());
                let at = |j: usize, k: usize| x[j].get(k).copied().unwrap_or(0.0);
                vec![(0..length).map(|k| at(0, k) + at(1, k)).collect()]
            };
            let x = fixed_point(&one).unwrap();
            same(&merged(&fixed_point(&two).unwrap().tails), &x.tails, 1e-12, &policy.name);
            same(&fixed_point(&fast).unwrap().tails, &x.tails, 1e-12, &policy.name);
            let reference = path(&one, &[0.7, 3.5]);
            for (a, b) in path(&two, &[0.7, 3.5]).iter().zip(&reference) {
                same(&merged(&a.tails), &b.tails, 1e-9, &policy.name);
            }
            for (a, b) in path(&fast, &[0.1, 0.5]).iter().zip(&reference) {
                same(&a.tails, &b.tails, 1e-9, &policy.name);
            }
        }
    }
}

/// v_m over the mean, for phases that lead to later ones only.
fn phases_of_a_job(law: &PhaseType) -> Vec<f64> {
    let v = law.time_in_phases();
    v.iter().map(|v| v / law.mean()).collect()
}

fn identities(m: &Model, x: &FixedPoint, bound: f64, what: &str) {
    let value = |v: Option<fluidlimit::model::Value>| v.unwrap().value;
    let accepted = m.arrival_rate * (1.0 - value(x.measures.p_block));
    let mut served = 0.0;
    for (j, pool) in m.pools.iter().enumerate() {
        let mass = x.idle[j] + x.tails[j][0];
        close(mass, pool.share, 1e-12, &format!("{what}: mass of pool {j}"));
        let busy: f64 = x.phases[j][0].iter().sum();
        close(busy, x.tails[j][0], 1e-13, &format!("{what}: phases of pool {j} sum to its tail"));
        for (m, (s, v)) in x.phases[j][0].iter().zip(phases_of_a_job(&pool.law)).enumerate() {
            close(*s, busy * v, bound, &format!("{what}: phase {m} of pool {j}"));
        }
        served += busy / pool.law.mean();
    }
    close(served, accepted, bound * (1.0 + m.arrival_rate), &format!("{what}: jobs served and accepted"));
}

#[test]
fn rates_that_spread_over_ten_thousand() {
    let stiff = PhaseType::coxian(&[100.0, 1.0, 0.01], &[0.5, 0.02]).unwrap().with_mean(1.0).unwrap();
    for policy in policies() {
        for load in [0.8, 1.3] {
            let m = system(load, vec![Pool::new("a", 1.0, Some(6), stiff.clone())], policy.clone());
            let x = fixed_point(&m).unwrap_or_else(|e| panic!("{} {load}: {e}", policy.name));
            identities(&m, &x, 1e-12, &format!("{} {load}", policy.name));
            let plan = Plan {
                initial: Initial::Idle,
                times: vec![1.0, 100.0, 3e4],
                tolerance: 1e-10,
                cut: Top::Reflecting,
            };
            let path = integrate(&m, &plan).unwrap_or_else(|e| panic!("{} {load}: {e}", policy.name));
            assert!(path.mass_defect < 1e-12 && path.lowest >= -1e-14, "{} {load}", policy.name);
            same(&path.snapshots[2].tails, &x.tails, 1e-8, &format!("{} {load}: late path", policy.name));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn identities_hold_for_random_systems(
        load in 0.3..1.8f64,
        pools in proptest::collection::vec(
            (0.1..1.0f64, 1..=5u32, 0.1..10.0f64, 0.1..10.0f64, 0.1..10.0f64, 0.05..0.95f64, 0.05..0.95f64), 1..=3),
        index in 0..8usize,
    ) {
        prop_assume!((load - 1.0).abs() > 0.03);
        let total: f64 = pools.iter().map(|p| p.0).sum();
        let pools: Vec<Pool> = pools.iter().enumerate().map(|(j, p)| {
            let law = PhaseType::coxian(&[p.2, p.3, p.4], &[p.5, p.6]).unwrap();
            Pool::new(format!("p{j}"), p.0 / total, Some(p.1), law)
        }).collect();
        let capacity: f64 = pools.iter().map(|p| p.share / p.law.mean()).sum();
        let m = system(load * capacity, pools, policies()[index].clone());
        let x = fixed_point(&m).unwrap_or_else(|e| panic!("{}: {e}\n{m:?}", m.policy.label()));
        identities(&m, &x, 1e-11, &m.policy.label());
    }
}

/// Join the shortest queue in overload climbs level after level; each time a tier runs empty its
/// composition changes without bound, and late in the run the clock resolves less and less of that.
#[test]
fn a_long_ladder_has_no_end() {
    let pools = |scv: f64| {
        let law = PhaseType::from_moments(1.0, scv).unwrap().0;
        vec![Pool::new("a", 1.0, Some(2000), law)]
    };
    for scv in [2.0, 10.0] {
        for tolerance in [1e-6, 1e-10] {
            let m = system(1.3, pools(scv), Policy::jsq());
            let plan =
                Plan { initial: Initial::Idle, times: vec![100.0, 600.0], tolerance, cut: Top::Reflecting };
            let path = integrate(&m, &plan).unwrap();
            // All servers are busy: jobs grow by the excess exactly, one level each 1 / 0.3.
            let [a, b] = &path.snapshots[..] else { panic!("two snapshots") };
            close(b.jobs[0] - a.jobs[0], 0.3 * 500.0, 1e-7 + 500.0 * tolerance, "jobs");
            assert!(path.events.len() > 150 && path.mass_defect < 1e-12, "{}", path.events.len());
        }
    }
}
