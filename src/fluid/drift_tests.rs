//! Is the drift what it says, in every mode of random models, and are its linear algebra and its
//! integrators right? Deterministic: proptest draws the same number of cases on every run.

use super::dispatch::{self, Target};
use super::drift::{Drift, Field, Linearisation, Scratch};
use super::linear::{Factor, Leveled, LowRank};
use super::step::{StepCounts, Stretch, Tolerance};
use super::{explicit, rosenbrock};
use crate::model::{LevelSet, Model, PhaseType, Policy, Pool, StateSpace, Top};
use nalgebra::{DMatrix, DVector};
use proptest::prelude::*;

/// A model over a state space, in each of its modes.
#[derive(Debug, Clone)]
struct Case {
    model: Model,
    states: StateSpace,
    /// Positive numbers that occupancies and perturbations are made of.
    weights: Vec<f64>,
}

fn law() -> impl Strategy<Value = PhaseType> {
    prop_oneof![
        3 => (0.2..5.0f64).prop_map(|r| PhaseType::exponential(r).unwrap()),
        1 => (0.3..4.0f64, 0.3..4.0f64, 0.05..1.0f64)
            .prop_map(|(a, b, p)| PhaseType::coxian(&[a, b], &[p]).unwrap()),
        1 => (1..=3usize, 0.5..3.0f64).prop_map(|(m, r)| PhaseType::erlang(m, r).unwrap()),
        1 => (0.1..0.9f64, 0.3..4.0f64, 0.3..4.0f64)
            .prop_map(|(p, a, b)| PhaseType::hyperexponential(&[p, 1.0 - p], &[a, b]).unwrap()),
    ]
}

fn policy(slots: Vec<u32>) -> impl Strategy<Value = Policy> {
    let each: Vec<Vec<usize>> = (0..slots.len()).map(|j| vec![j]).collect();
    let level = |from, to| LevelSet { from, to };
    proptest::sample::select(vec![
        Policy::random(),
        Policy::jsq_d(2, true, false),
        Policy::jsq_d(3, true, true),
        Policy::jsq_d(50, true, false),
        Policy::jsq_d(100, true, false),
        Policy::jsq(),
        Policy::pull(),
        Policy::pull_with_slots(slots),
        Policy::jiq(2),
        Policy::i1f(),
        Policy::threshold(2),
        Policy::threshold(3),
        Policy::fastest_idle_first(&each),
        Policy::tiers(&[level(0, 1), level(2, 3)], 2),
        Policy::tiers(&[level(0, 0), level(1, 2)], 1),
    ])
}

fn case() -> impl Strategy<Value = Case> {
    let pool = (0.05..1.0f64, law(), proptest::option::weighted(0.7, 1..=6u32), 1..=5u32);
    let pools = proptest::collection::vec(pool, 1..=3);
    let weights = proptest::collection::vec(0.01..1.0f64, 64);
    (pools, 0.1..4.0f64, weights, any::<bool>()).prop_flat_map(|(drawn, rate, weights, absorbing)| {
        let total: f64 = drawn.iter().map(|p| p.0).sum();
        let levels: Vec<u32> = drawn.iter().map(|p| p.2.unwrap_or(p.3 + 1)).collect();
        let pools: Vec<Pool> = drawn
            .iter()
            .enumerate()
            .map(|(j, (w, law, buffer, levels))| {
                let pool = Pool::new(format!("p{j}"), w / total, *buffer, law.clone());
                // Some pools are faster with more jobs, and take several at once.
                let speed = (1..=*levels).map(|k| 0.5 + 0.25 * f64::from(k)).collect();
                if levels % 2 == 0 { Pool { speed, slots: levels / 2, ..pool } } else { pool }
            })
            .collect();
        policy(pools.iter().map(|p| p.slots).collect()).prop_map(move |policy| {
            let model = Model {
                name: String::new(),
                description: String::new(),
                arrival_rate: rate,
                pools: pools.clone(),
                policy,
            };
            let cut = if absorbing { Top::Absorbing } else { Top::Reflecting };
            let states = StateSpace::new(&model, &levels, cut);
            Case { model, states, weights: weights.clone() }
        })
    })
}

impl Case {
    fn modes(&self) -> impl Iterator<Item = Field> + '_ {
        let tiers = dispatch::tier_count(&self.model, &self.states);
        let fields = (0..=tiers).map(|open| Field::new(&self.model, &self.states, open));
        // A tier that no server can be in with room (levels above every buffer) is never open.
        fields.filter(|f| !matches!(&f.dispatch.target, Target::Tier { states, .. } if states.is_empty()))
    }

    fn weight(&self, s: usize, shift: usize) -> f64 {
        self.weights[(s * 7 + shift * 13) % self.weights.len()]
    }

    /// An occupancy with mass in every state that is not closed.
    fn occupancy(&self, field: &Field) -> Vec<f64> {
        let mut q: Vec<f64> = (0..field.len())
            .map(|s| if field.closed[s].is_some() { 0.0 } else { self.weight(s, 0) })
            .collect();
        for pool in &self.states.pools {
            let sum: f64 = q[pool.range()].iter().sum();
            q[pool.range()].iter_mut().for_each(|x| *x *= pool.share / sum);
        }
        q
    }

    /// Numbers of both signs, zero in closed states; summing to zero in each pool if `balanced`.
    fn direction(&self, field: &Field, balanced: bool) -> Vec<f64> {
        let open = |s: usize| field.closed[s].is_none();
        let mut v: Vec<f64> =
            (0..field.len()).map(|s| if open(s) { self.weight(s, 3) - 0.5 } else { 0.0 }).collect();
        for pool in self.states.pools.iter().filter(|_| balanced) {
            let excess: f64 = v[pool.range()].iter().sum();
            let count = pool.range().filter(|&s| open(s)).count();
            #[allow(clippy::cast_precision_loss)]
            pool.range().filter(|&s| open(s)).for_each(|s| v[s] -= excess / count as f64);
        }
        v
    }
}

impl Case {
    /// Smallest over largest singular value of J on the vectors that sum to zero in each pool.
    fn condition(&self, field: &Field, q: &[f64]) -> f64 {
        let linearisation = field.linearise(q).unwrap();
        let mut columns = Vec::new();
        for pool in &self.states.pools {
            let mut open = pool.range().filter(|&s| field.closed[s].is_none());
            let ground = open.next().unwrap();
            for s in open {
                let mut delta = vec![0.0; q.len()];
                (delta[s], delta[ground]) = (1.0, -1.0);
                columns.push(DVector::from_vec(linearisation.apply(&delta)));
            }
        }
        let values = DMatrix::from_columns(&columns).singular_values();
        if values.max() > 0.0 { values.min() / values.max() } else { 0.0 }
    }
}

fn eval(field: &Field, q: &[f64]) -> Vec<f64> {
    let mut dq = vec![0.0; q.len()];
    assert!(field.eval(q, &mut dq, &mut Scratch::default()));
    dq
}

fn largest(v: &[f64]) -> f64 {
    v.iter().fold(0.0, |a, x| a.max(x.abs()))
}

/// The largest column sum of |J|.
fn norm(linearisation: &Linearisation<'_>, n: usize) -> f64 {
    let column = |s: usize| {
        let mut unit = vec![0.0; n];
        unit[s] = 1.0;
        linearisation.apply(&unit).iter().map(|x| x.abs()).sum::<f64>()
    };
    (0..n).map(column).fold(0.0, f64::max)
}

/// (gamma I - J) x - r.
fn defect(field: &Field, q: &[f64], gamma: f64, x: &[f64], r: &[f64]) -> Vec<f64> {
    let image = field.linearise(q).unwrap().apply(x);
    x.iter().zip(&image).zip(r).map(|((x, j), r)| gamma * x - j - r).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_drift_keeps_the_mass_of_every_pool(case in case()) {
        for field in case.modes() {
            let dq = eval(&field, &case.occupancy(&field));
            for pool in &case.states.pools {
                let sum: f64 = dq[pool.range()].iter().sum();
                prop_assert!(sum.abs() < 1e-13 * (1.0 + largest(&dq)), "mode {}: {sum:e}", field.open);
            }
            for (s, (closed, dq)) in field.closed.iter().zip(&dq).enumerate() {
                prop_assert!(closed.is_none() || *dq == 0.0, "mode {}: closed {s} moves", field.open);
            }
        }
    }

    #[test]
    fn the_drift_points_inward_where_a_state_is_empty(case in case()) {
        for field in case.modes() {
            for s in (0..field.len()).filter(|&s| field.closed[s].is_none()) {
                let mut q = case.occupancy(&field);
                q[s] = 0.0;
                // The last server of a tier of one state leaves it, and a stream that is used up by closed
                // tiers cannot be taken back: these are the two faces at which a mode ends.
                if field.dispatch.single() && field.dispatch.open_mass(&q) == Some(0.0)
                    || field.dispatch.reach(&q) < 0.0
                {
                    continue;
                }
                let dq = eval(&field, &q);
                prop_assert!(dq[s] >= -1e-15 * largest(&dq), "mode {}, state {s}: {:e}", field.open, dq[s]);
            }
        }
    }

    #[test]
    fn the_linearisation_is_the_derivative(case in case()) {
        const STEP: f64 = 1e-6;
        for field in case.modes() {
            let q = case.occupancy(&field);
            let delta: Vec<f64> =
                case.direction(&field, false).iter().zip(&q).map(|(d, q)| d * q).collect();
            let moved = |sign: f64| -> Vec<f64> {
                let q: Vec<f64> = q.iter().zip(&delta).map(|(q, d)| q + sign * STEP * d).collect();
                eval(&field, &q)
            };
            let (up, down) = (moved(1.0), moved(-1.0));
            let image = field.linearise(&q).unwrap().apply(&delta);
            let scale = largest(&image).max(largest(&eval(&field, &q)));
            for s in 0..q.len() {
                let slope = (up[s] - down[s]) / (2.0 * STEP);
                prop_assert!((image[s] - slope).abs() <= 1e-6 * scale,
                    "mode {}, state {s}: {} against {slope}", field.open, image[s]);
            }
        }
    }

    #[test]
    fn the_factorisation_solves(case in case(), exponent in -3.0..3.0f64) {
        const BACKWARD: f64 = 1e-13;
        for field in case.modes() {
            let q = case.occupancy(&field);
            let linearisation = field.linearise(&q).unwrap();
            // Where servers never come back from an absorbing top, the frozen part has no inverse.
            let absorbing = case.states.pools.iter().any(|p| p.top == Top::Absorbing);
            let gammas = if absorbing { vec![10f64.powf(exponent)] } else { vec![10f64.powf(exponent), 0.0] };
            let grouped = linearisation.groups() > 1;
            for (gamma, leveled) in gammas.into_iter().flat_map(|g| [(g, false), (g, true)]) {
                if leveled && !grouped {
                    continue;
                }
                let r = case.direction(&field, true);
                let factor = if leveled {
                    Leveled::new(&case.states, &linearisation, gamma).map(Factor::Leveled)
                } else {
                    LowRank::new(&case.states, &linearisation, gamma).map(Factor::LowRank)
                };
                let mut x = r.clone();
                if !factor.is_some_and(|f| f.solve(&mut x)) || largest(&x) > 1e8 * largest(&r) {
                    let condition = case.condition(&field, &q);
                    prop_assert!(gamma == 0.0 && condition < 1e-7,
                        "mode {}, gamma {gamma}, leveled {leveled}: called singular, but {condition:e}", field.open);
                    // Singular indeed: some modes conserve a sum of jobs.
                    continue;
                }
                // The backward error: relative to what was added up in the residual.
                let wrong = largest(&defect(&field, &q, gamma, &x, &r));
                let scale = largest(&r) + (gamma + norm(&linearisation, q.len())) * largest(&x);
                prop_assert!(wrong <= BACKWARD * scale,
                    "mode {}, gamma {gamma}, leveled {leveled}: residual {wrong:e} at |r| = {:e}, |x| = {:e}",
                    field.open, largest(&r), largest(&x));
                for pool in case.states.pools.iter().filter(|_| gamma == 0.0) {
                    let sum: f64 = x[pool.range()].iter().sum();
                    prop_assert!(sum.abs() <= 1e-10 * (1.0 + largest(&x)), "mode {}: mass {sum:e}", field.open);
                }
            }
        }
    }
}

/// Two pools, one with Coxian service, far from any boundary for some time.
fn smooth(policy: Policy) -> (Model, StateSpace, Vec<f64>) {
    let pool = |name: &str, share, law| Pool::new(name, share, Some(4), law);
    let pools = vec![
        pool("a", 0.4, PhaseType::exponential(1.3).unwrap()),
        pool("b", 0.6, PhaseType::coxian(&[2.0, 0.7], &[0.4]).unwrap()),
    ];
    let model = Model { name: String::new(), description: String::new(), arrival_rate: 0.9, pools, policy };
    let states = StateSpace::new(&model, &[4, 4], Top::Reflecting);
    let mut q = states.idle();
    for pool in &states.pools {
        let mut left = pool.share;
        for q in &mut q[pool.offset + 1..pool.range().end] {
            *q = 0.08 * left;
            left -= *q;
        }
        q[pool.offset] = left;
    }
    (model, states, q)
}

#[test]
fn rodas_has_order_four_and_the_explicit_method_agrees() {
    const END: f64 = 1.0;
    for policy in [Policy::jsq_d(2, true, false), Policy::pull(), Policy::random()] {
        let (model, states, start) = smooth(policy.clone());
        let field = Field::new(&model, &states, 0);
        let stiff = rosenbrock::Structured { field: &field, states: &states };
        let mut counts = StepCounts::default();
        let tight = Tolerance::new(1e-14, start.len());
        let stretch = |tolerance| Stretch { t: 0.0, q: &start, end: END, first_step: 0.0, tolerance };
        let leg = explicit::integrate(&field, stretch(tight), &mut counts, &mut |_, _| false);
        let with_steps = |n: u32| {
            let (mut q, mut counts, mut scratch) = (start.clone(), StepCounts::default(), Scratch::default());
            for _ in 0..n {
                let h = END / f64::from(n);
                q = rosenbrock::step(&stiff, &q, h, &mut scratch, &mut counts).unwrap().0;
            }
            largest(&q.iter().zip(&leg.q).map(|(a, b)| a - b).collect::<Vec<_>>())
        };
        let errors = [16, 32, 64, 128].map(with_steps);
        for pair in errors.windows(2) {
            let order = (pair[0] / pair[1]).log2();
            assert!((3.7..4.6).contains(&order), "{}: errors {errors:?}", policy.label());
        }
        let tolerance = Tolerance::new(1e-10, start.len());
        let other = rosenbrock::integrate(&stiff, stretch(tolerance), &mut counts, &mut |_, _| false);
        for (a, b) in other.q.iter().zip(&leg.q) {
            assert!((a - b).abs() < 1e-10, "{}: {a} against {b}", policy.label());
        }
    }
}

/// Where the drift is not defined there is no rest either: NaN compares as nothing, and must not count as 0.
#[test]
fn outside_the_domain_the_residual_is_infinite() {
    let pool = |name| Pool::new(name, 0.5, Some(1), PhaseType::exponential(1.0).unwrap());
    let pools = vec![pool("a"), pool("b")];
    let model = Model {
        name: String::new(),
        description: String::new(),
        arrival_rate: 0.5,
        pools,
        policy: Policy::pull(),
    };
    let states = StateSpace::new(&model, &[1, 1], Top::Buffer);
    let field = Field::new(&model, &states, 0);
    // At rest half of the servers are idle; with none idle in either pool nothing says where a job goes.
    assert!(field.residual(&[0.25; 4]) < 1e-15);
    assert_eq!(field.residual(&[0.0, 0.5, 0.0, 0.5]), f64::INFINITY);
}
