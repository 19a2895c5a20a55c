//! Does the fluid limit have the properties that follow from what it is? No oracle here: order, time
//! shifts, merged pools, conservation, brackets, on fixed and on random systems. Tolerance of the paths
//! 1e-10; bounds are stated where they are used. Proptest draws the same number of cases on every run.

mod common;

use common::{close, model};
use fluidlimit::fluid::{Path, Plan, Snapshot, bracketed, fixed_point, integrate};
use fluidlimit::model::{Initial, LevelSet, Measures, Model, PhaseType, Policy, Tier, Tiers, Top};
use proptest::prelude::*;

type Pools = Vec<(f64, f64, Option<u32>)>;

/// Ten times the tolerance of a path: what two paths may differ by.
const PATHS: f64 = 1e-9;

fn path_to(model: &Model, initial: &Initial, times: &[f64], tolerance: f64) -> Path {
    let plan = Plan { initial: initial.clone(), times: times.to_vec(), tolerance, cut: Top::Reflecting };
    let path = integrate(model, &plan).unwrap_or_else(|e| panic!("{}: {e}\n{model:?}", model.policy.label()));
    assert!(path.mass_defect < 1e-12, "mass defect {:e}\n{model:?} {initial:?}", path.mass_defect);
    assert!(path.lowest >= -1e-14, "an entry of {:e} along the path\n{model:?} {initial:?}", path.lowest);
    // What a step pushed below zero was set to zero before the path went on: a change within the step's own
    // error bound, a hundredth of the tolerance.
    assert!(path.clipped > -0.01 * tolerance, "clipped {:e}\n{model:?}", path.clipped);
    for s in &path.snapshots {
        let lowest = s.idle.iter().chain(s.tails.iter().flatten()).fold(0.0, |a: f64, x| a.min(*x));
        assert!(lowest >= -1e-14, "an entry of {lowest:e} at {}\n{model:?}", s.time);
    }
    path
}

fn path(model: &Model, initial: &Initial, times: &[f64]) -> Path {
    path_to(model, initial, times, 1e-10)
}

fn at(tails: &[f64], k: usize) -> f64 {
    tails.get(k).copied().unwrap_or(0.0)
}

/// The largest excess of a tail of `low` over that of `high`.
fn excess(low: &[Vec<f64>], high: &[Vec<f64>]) -> f64 {
    let pools = low.iter().zip(high);
    let each = pools.flat_map(|(a, b)| (0..a.len().max(b.len())).map(|k| at(a, k) - at(b, k)));
    each.fold(0.0, f64::max)
}

fn distance(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    excess(a, b).max(excess(b, a))
}

#[track_caller]
fn assert_same(a: &Path, b: &Path, bound: f64, what: &str) {
    for (a, b) in a.snapshots.iter().zip(&b.snapshots) {
        let off = distance(&a.tails, &b.tails);
        assert!(off <= bound, "{what} at {}: off by {off:e}", a.time);
    }
}

fn singles(pools: usize) -> Vec<Vec<usize>> {
    (0..pools).map(|j| vec![j]).collect()
}

fn every_policy(pools: usize) -> Vec<Policy> {
    let levels = |from, to| LevelSet { from, to };
    vec![
        Policy::random(),
        Policy::jsq_d(2, true, false),
        Policy::jsq_d(3, true, true),
        Policy::jsq(),
        Policy::pull(),
        Policy::jiq(2),
        Policy::i1f(),
        Policy::threshold(2),
        Policy::threshold(3),
        Policy::fastest_idle_first(&singles(pools)),
        Policy::tiers(&[levels(0, 1), levels(2, 2)], 2),
    ]
}

/// Policies whose tiers hold no level but 0: a longer buffer then never takes a job from elsewhere.
fn tiers_at_idle_only(pools: usize) -> Vec<Policy> {
    vec![
        Policy::random(),
        Policy::jsq_d(2, true, false),
        Policy::pull(),
        Policy::jiq(2),
        Policy::fastest_idle_first(&singles(pools)),
    ]
}

/// A random system: load, pools, and for every pool two starting profiles, one below the other.
#[derive(Debug, Clone)]
struct Drawn {
    load: f64,
    pools: Pools,
    low: Vec<Vec<f64>>,
    high: Vec<Vec<f64>>,
}

impl Drawn {
    fn model(&self, policy: Policy) -> Model {
        let capacity: f64 = self.pools.iter().map(|p| p.0 * p.1).sum();
        model(self.load * capacity, &self.pools, policy)
    }
}

fn drawn(infinite: bool) -> impl Strategy<Value = Drawn> {
    let buffer = proptest::option::weighted(if infinite { 0.6 } else { 0.999_999_999 }, 1..=5u32);
    let profile = proptest::collection::vec((0.0..1.0f64, 0.0..1.0f64), 5);
    // Now and then all servers start busy, to slide from the beginning.
    let pool = (0.1..1.0f64, 0.3..2.0f64, buffer, profile, any::<bool>());
    (0.2..1.6f64, proptest::collection::vec(pool, 1..=3)).prop_map(|(load, drawn)| {
        let total: f64 = drawn.iter().map(|p| p.0).sum();
        let pools: Pools = drawn.iter().map(|p| (p.0 / total, p.1, p.2)).collect();
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for (pool, (_, _, _, profile, busy)) in pools.iter().zip(&drawn) {
            let levels = pool.2.unwrap_or(5) as usize;
            let (mut a, mut b) = (pool.0, pool.0);
            let (mut lows, mut highs) = (Vec::new(), Vec::new());
            for (k, (u, v)) in profile.iter().take(levels).enumerate() {
                b *= if *busy && k < 2 { 1.0 } else { *v };
                a = if *busy && k == 0 { a } else { (a * u).min(b) };
                lows.push(a);
                highs.push(b);
            }
            low.push(lows);
            high.push(highs);
        }
        Drawn { load, pools, low, high }
    })
}

/// Names a policy by index: proptest then shrinks to the first.
fn pick(of: fn(usize) -> Vec<Policy>, pools: usize, index: usize) -> Policy {
    let mut all = of(pools);
    let i = index % all.len();
    all.swap_remove(i)
}

const TIMES: [f64; 6] = [0.1, 0.4, 1.0, 2.0, 4.0, 7.0];

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(150))]

    /// x(0) <= x'(0) implies x(t) <= x'(t): all these policies can be coupled so (Stolyar 2015, Lemma 3,
    /// for PULL).
    #[test]
    fn order_is_preserved(d in drawn(true), index in 0..11usize) {
        let m = d.model(pick(every_policy, d.pools.len(), index));
        let low = path(&m, &Initial::Tails(d.low.clone()), &TIMES);
        let high = path(&m, &Initial::Tails(d.high.clone()), &TIMES);
        for (a, b) in low.snapshots.iter().zip(&high.snapshots) {
            let over = excess(&a.tails, &b.tails);
            prop_assert!(over <= PATHS, "{} at {}: {over:e}", m.policy.label(), a.time);
        }
    }

    #[test]
    fn more_arrivals_and_slower_servers_mean_more_jobs(d in drawn(true), index in 0..11usize, by in 1.0..1.5f64) {
        let m = d.model(pick(every_policy, d.pools.len(), index));
        let start = Initial::Tails(d.low.clone());
        let base = path(&m, &start, &TIMES);
        let busier = Model { arrival_rate: m.arrival_rate * by, ..m.clone() };
        let mut slower = m.clone();
        slower.pools[0].law = PhaseType::exponential(d.pools[0].1 / by).unwrap();
        for other in [busier, slower] {
            for (a, b) in base.snapshots.iter().zip(&path(&other, &start, &TIMES).snapshots) {
                let over = excess(&a.tails, &b.tails);
                prop_assert!(over <= PATHS, "{} at {}: {over:e}", m.policy.label(), a.time);
            }
        }
    }

    #[test]
    fn longer_buffers_mean_more_jobs(d in drawn(false), index in 0..5usize, more in proptest::option::of(1..4u32)) {
        let m = d.model(pick(tiers_at_idle_only, d.pools.len(), index));
        let mut larger = m.clone();
        larger.pools[0].buffer = more.and_then(|b| m.pools[0].buffer.map(|a| a + b));
        let start = Initial::Tails(d.low.clone());
        let (a, b) = (path(&m, &start, &TIMES), path(&larger, &start, &TIMES));
        for (a, b) in a.snapshots.iter().zip(&b.snapshots) {
            let over = excess(&a.tails, &b.tails);
            prop_assert!(over <= PATHS, "{} at {}: {over:e}", m.policy.label(), a.time);
        }
    }

    #[test]
    fn from_idle_tails_rise_towards_the_fixed_point(d in drawn(true), index in 0..11usize) {
        let m = d.model(pick(every_policy, d.pools.len(), index));
        let p = path(&m, &Initial::Idle, &TIMES);
        for pair in p.snapshots.windows(2) {
            let fall = excess(&pair[0].tails, &pair[1].tails);
            prop_assert!(fall <= PATHS, "{} at {}: falls by {fall:e}", m.policy.label(), pair[1].time);
        }
        // Within a twentieth of critical the fixed point is ill conditioned, or does not exist.
        if m.pools.iter().any(|p| p.buffer.is_none()) || (d.load - 1.0).abs() < 0.05 {
            return Ok(());
        }
        let x = fixed_point(&m).unwrap();
        let over = excess(&p.snapshots.last().unwrap().tails, &x.tails);
        prop_assert!(over <= PATHS, "{}: {over:e} above the fixed point", m.policy.label());
    }

    /// A path stopped and started again from its tails goes on as if nothing had happened.
    #[test]
    fn a_path_can_be_restarted(d in drawn(true), index in 0..11usize, cut in 0.05..3.0f64) {
        let m = d.model(pick(every_policy, d.pools.len(), index));
        let start = Initial::Tails(d.high.clone());
        let whole = path(&m, &start, &[cut, cut + 1.0, cut + 3.0]);
        let again = path(&m, &Initial::Tails(whole.snapshots[0].tails.clone()), &[0.0, 1.0, 3.0]);
        for (a, b) in whole.snapshots.iter().zip(&again.snapshots) {
            let off = distance(&a.tails, &b.tails);
            prop_assert!(off <= 1e-8, "{} at {}: {off:e}", m.policy.label(), a.time);
        }
    }

    #[test]
    fn rates_are_shares_of_the_arrivals(d in drawn(true), index in 0..11usize) {
        let m = d.model(pick(every_policy, d.pools.len(), index));
        for s in &path(&m, &Initial::Tails(d.low.clone()), &TIMES).snapshots {
            let all = [s.p_idle, s.p_wait, s.p_block];
            prop_assert!(all.iter().all(|p| (-1e-9..=1.0 + 1e-9).contains(p)), "{all:?} {}", m.policy.label());
            close(all.iter().sum(), 1.0, 1e-9, &m.policy.label());
        }
    }

    /// The drift vanishes to rounding, jobs are conserved, and the late path from idle comes there.
    #[test]
    fn the_fixed_point_is_one_and_attracts(d in drawn(false), index in 0..11usize) {
        prop_assume!((d.load - 1.0).abs() > 0.1);
        let m = d.model(pick(every_policy, d.pools.len(), index));
        let x = fixed_point(&m).unwrap_or_else(|e| panic!("{}: {e}", m.policy.label()));
        let fastest = m.pools.iter().map(|p| p.service_rate()).fold(m.arrival_rate, f64::max);
        prop_assert!(x.residual < 1e-13 * fastest.max(1.0), "{}: {:e}", m.policy.label(), x.residual);
        check_measures(&m, &x.measures);
        // None if nothing can move at all: join the shortest queue above capacity, all servers full.
        let slowest = m.pools.iter().map(|p| p.service_rate()).fold(f64::INFINITY, f64::min);
        let relaxation = x.relaxation_time().unwrap_or(1.0 / slowest);
        prop_assume!(relaxation < 200.0);
        let end = path(&m, &Initial::Idle, &[30.0 * relaxation]);
        let off = distance(&end.snapshots[0].tails, &x.tails);
        prop_assert!(off < PATHS, "{}: {off:e} after 30 relaxation times", m.policy.label());
    }
}

fn check_measures(m: &Model, x: &Measures) {
    let of = |v: Option<fluidlimit::model::Value>| v.unwrap().value;
    let label = m.policy.label();
    let (idle, wait, block) = (of(x.p_idle), of(x.p_wait), of(x.p_block));
    for p in [idle, wait, block] {
        assert!((0.0..=1.0 + 1e-12).contains(&p), "{label}: {p}");
    }
    close(idle + wait + block, 1.0, 1e-12, &format!("{label}: sum"));
    close(of(x.p_busy), wait + block, 1e-15, "p_busy");
    let accepted = m.arrival_rate * (1.0 - block);
    close(of(x.throughput), accepted, 1e-12 * (1.0 + m.arrival_rate), &format!("{label}: throughput"));
    close(of(x.response_time) * accepted, of(x.mean_jobs), 1e-11, &format!("{label}: Little"));
    for (pool, p) in m.pools.iter().zip(&x.pools) {
        let accepted = m.arrival_rate * (of(p.p_idle) + of(p.p_wait));
        close(of(p.throughput) * pool.share, accepted, 1e-12 * (1.0 + m.arrival_rate), &label);
        close(of(p.utilisation) * pool.service_rate(), of(p.throughput), 1e-11, &label);
    }
}

fn inf2() -> Pools {
    vec![(0.4, 1.5, None), (0.6, 0.8, None)]
}

fn starts() -> [Initial; 3] {
    [Initial::Idle, Initial::Level(1), Initial::Level(3)]
}

#[test]
fn names_for_the_same_policy_give_the_same_path() {
    let levels: Vec<LevelSet> = (0..4).map(|k| LevelSet { from: k, to: k }).collect();
    for rate in [0.7, 1.4] {
        for buffer in [Some(1), Some(4), None] {
            let pools = [(0.4, 1.5, buffer), (0.6, 0.8, buffer)];
            let pairs = [
                (Policy::jsq_d(1, true, false), Policy::random()),
                (Policy::jiq(1), Policy::pull()),
                (Policy::threshold(1), Policy::pull()),
                (Policy::fastest_idle_first(&[vec![0, 1]]), Policy::pull()),
            ];
            let listed = (Policy::tiers(&levels, 1), Policy::jsq());
            let pairs = pairs.into_iter().chain((buffer.is_some()).then_some(listed));
            for ((a, b), start) in pairs.flat_map(|p| starts().map(|s| (p.clone(), s))) {
                let what = format!("{} against {}, {buffer:?}, {start:?}", a.name, b.name);
                let (a, b) = (model(rate, &pools, a), model(rate, &pools, b));
                assert_same(&path(&a, &start, &TIMES), &path(&b, &start, &TIMES), 1e-10, &what);
                if let (Ok(x), Ok(y)) = (fixed_point(&a), fixed_point(&b)) {
                    assert!(distance(&x.tails, &y.tails) < 1e-12, "fixed point, {what}");
                }
            }
        }
    }
}

#[test]
fn identical_pools_are_one_pool() {
    for rate in [0.7, 1.3] {
        for buffer in [Some(1), Some(4), None] {
            let one = [(1.0, 1.0, buffer)];
            let two = [(0.3, 1.0, buffer), (0.7, 1.0, buffer)];
            for (i, policy) in every_policy(1).into_iter().enumerate() {
                let split_policy = match &policy.tiers {
                    Tiers::List(t) if t.iter().any(|t| t.pools.is_some()) => {
                        let tiers = t.iter().map(|t| Tier { pools: None, ..t.clone() }).collect();
                        Policy { tiers: Tiers::List(tiers), ..policy.clone() }
                    }
                    _ => policy.clone(),
                };
                for start in starts() {
                    let a = path_to(&model(rate, &one, policy.clone()), &start, &TIMES, 1e-12);
                    let b = path_to(&model(rate, &two, split_policy.clone()), &start, &TIMES, 1e-12);
                    for (a, b) in a.snapshots.iter().zip(&b.snapshots) {
                        for k in 0..a.tails[0].len().max(b.tails[0].len()) {
                            let merged = at(&b.tails[0], k) + at(&b.tails[1], k);
                            let what =
                                format!("policy {i} {} {start:?} {buffer:?} at {}", policy.name, a.time);
                            close(at(&a.tails[0], k), merged, 1e-10, &what);
                            close(at(&b.tails[0], k) * 0.7, at(&b.tails[1], k) * 0.3, 1e-10, &what);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn another_unit_of_time_changes_nothing_else() {
    for policy in every_policy(2) {
        for factor in [1e-4, 60.0, 1e4] {
            let fast: Pools = inf2().iter().map(|p| (p.0, p.1 * factor, p.2)).collect();
            let times: Vec<f64> = TIMES.iter().map(|t| t / factor).collect();
            for start in starts() {
                let a = path(&model(1.3, &inf2(), policy.clone()), &start, &TIMES);
                let b = path(&model(1.3 * factor, &fast, policy.clone()), &start, &times);
                assert_same(&a, &b, PATHS, &format!("{} times {factor}", policy.name));
                assert_eq!(a.events.len(), b.events.len(), "{}", policy.name);
            }
        }
    }
}

/// With infinite buffers and every server busy, jobs change at rate lambda - capacity whatever the policy.
#[test]
fn while_all_are_busy_jobs_change_at_the_excess_rate() {
    for policy in every_policy(2) {
        for rate in [0.7, 1.4] {
            let m = model(rate, &inf2(), policy.clone());
            let p = path(&m, &Initial::Level(4), &[0.0, 0.3, 0.6, 1.0, 2.0]);
            let busy = |s: &&Snapshot| s.idle.iter().all(|&y| y == 0.0);
            let jobs = |s: &Snapshot| s.jobs.iter().sum::<f64>();
            let count = p.snapshots.iter().take_while(busy).count();
            // Policies without an idle tier have idle servers at once.
            assert!(count > 2 || m.policy.tiers.count() == Some(0), "{}: {count}", policy.name);
            for s in p.snapshots.iter().take(count) {
                close(jobs(s), 4.0 + (rate - m.capacity()) * s.time, PATHS, &policy.name);
            }
        }
    }
}

#[test]
fn the_cut_of_infinite_buffers_is_bracketed() {
    for policy in every_policy(2) {
        for rate in [0.7, 1.4] {
            let m = model(rate, &inf2(), policy.clone());
            for initial in starts() {
                let plan = Plan { initial, times: TIMES.to_vec(), tolerance: 1e-10, cut: Top::Reflecting };
                let (lower, gap) = bracketed(&m, &plan).unwrap();
                assert!(gap < PATHS, "{}: {gap:e}", policy.name);
                let upper = integrate(&m, &Plan { cut: Top::Absorbing, ..plan }).unwrap();
                for (a, b) in lower.snapshots.iter().zip(&upper.snapshots) {
                    assert!(excess(&a.tails, &b.tails) < PATHS, "{}", policy.name);
                }
            }
        }
    }
}

/// From the fixed point itself nothing moves.
#[test]
fn the_fixed_point_stays() {
    for policy in every_policy(2) {
        for (rate, buffers) in [(0.7, None), (0.7, Some(3)), (1.4, Some(3))] {
            let pools: Pools = inf2().iter().map(|p| (p.0, p.1, buffers)).collect();
            let m = model(rate, &pools, policy.clone());
            let x = fixed_point(&m).unwrap();
            let p = path(&m, &Initial::Tails(x.tails.clone()), &[1.0, 10.0, 100.0]);
            for s in &p.snapshots {
                let off = distance(&s.tails, &x.tails);
                assert!(off < PATHS, "{} at {} ({rate}, {buffers:?}): {off:e}", policy.name, s.time);
            }
        }
    }
}

/// Faults of the past, each with its smallest case.
#[test]
fn a_stop_at_the_time_of_an_event_is_no_obstacle() {
    let pools = [(0.5, 1.0, Some(1)), (0.5, 1.0, None)];
    for policy in [Policy::jsq(), Policy::i1f()] {
        let m = model(1.5, &pools, policy);
        let stopped = path(&m, &Initial::Level(1), &[1.0, 5.0]);
        let straight = path(&m, &Initial::Level(1), &[5.0]);
        let off = distance(&stopped.snapshots[1].tails, &straight.snapshots[0].tails);
        assert!(off < PATHS, "{off:e}");
    }
}

#[test]
fn behind_a_tier_that_opens_jobs_meet_the_servers_that_come() {
    let m = model(0.5, &[(1.0, 1.0, None)], Policy::threshold(2));
    for s in &path(&m, &Initial::Level(2), &[0.0, 1e-9]).snapshots {
        close(s.p_wait, 1.0, 1e-8, "one job each");
    }
}

#[test]
fn full_servers_are_passed_over_for_endless_queues() {
    let m = model(1.5, &[(0.5, 1.0, Some(2)), (0.5, 0.5, None)], Policy::jsq_d(2, true, true));
    let x = fixed_point(&m).unwrap().measures;
    let all = [x.p_idle, x.p_wait, x.p_block].map(|v| v.unwrap().value);
    close(all.iter().sum(), 1.0, 1e-12, "shares");
}

#[test]
fn fast_service_beside_slow_needs_few_steps() {
    let pools = [(0.5, 1e6, Some(3)), (0.5, 1e-6, Some(3))];
    for policy in every_policy(2) {
        let steps = path(&model(0.5, &pools, policy.clone()), &Initial::Idle, &[20.0]).counts;
        assert!(steps.explicit_steps + steps.implicit_steps < 20_000, "{}: {steps:?}", policy.name);
    }
}

/// Stiff or not, long or short: nothing that should be quick takes many steps.
#[test]
fn extremes() {
    for policy in every_policy(2) {
        for (rate, pools, horizon) in [
            (0.0, [(0.3, 2.0, None), (0.7, 0.5, Some(4))], 20.0),
            (1.0, [(0.5, 1.0, Some(3)), (0.5, 1.0, Some(5))], 20.0),
            (0.8, [(1e-6, 3.0, Some(3)), (1.0 - 1e-6, 1.0, Some(3))], 20.0),
            (0.7, [(0.5, 1.0, None), (0.5, 0.8, None)], 1e6),
        ] {
            for start in starts() {
                let plan = Plan {
                    initial: start,
                    times: vec![0.0, horizon],
                    tolerance: 1e-10,
                    cut: Top::Reflecting,
                };
                let p = integrate(&model(rate, &pools, policy.clone()), &plan).unwrap();
                let steps = p.counts.explicit_steps + p.counts.implicit_steps;
                assert!(steps < 20_000, "{} {pools:?}: {:?}", policy.name, p.counts);
            }
        }
    }
}

/// Mass is kept and nothing falls below zero where the implicit method does all the work, for a long time.
#[test]
fn stiff_and_long_paths_keep_mass_and_sign() {
    let stiff = model(0.9, &[(0.5, 1.3, None), (0.5, 0.7, None)], Policy::jsq_d(100, true, false));
    path(&stiff, &Initial::Idle, &[1.0, 1e3, 1e6]);
    let tails = vec![vec![0.588, 0.089, 0.011]];
    let draining = model(1.418 * 0.3505, &[(1.0, 0.3505, Some(3))], Policy::threshold(2));
    path(&draining, &Initial::Tails(tails), &TIMES);
}
