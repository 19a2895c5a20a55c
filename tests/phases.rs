//! Is the job in service in each phase as often as it must be? At rest E S_{1,m} = lambda (1 - P(block)) v_m
//! exactly, for every n, buffer and policy (identity I6: what comes into a phase leaves it): for each pool,
//! what its servers complete times v_m. Three readings of the model are asked, and compared along the way.

mod finite_support;

use finite_support::chain::policies;
use finite_support::{assert_near, model, settings, value};
use fluidlimit::finite::{Control, Exact, FiniteError, Settings, Summary, exact, simulate, simulate_servers};
use fluidlimit::fluid::{Plan, integrate};
use fluidlimit::model::{Initial, Model, PhaseType, Policy, Top};

type Sample = fn(&Model, &Settings, &dyn Control) -> Result<Summary, FiniteError>;
const SAMPLERS: [(&str, Sample); 2] = [("counts", simulate), ("servers", simulate_servers)];

fn coxian() -> PhaseType {
    PhaseType::coxian(&[2.8, 28.0 / 15.0, 14.0 / 15.0], &[0.6, 0.5]).unwrap()
}

/// Phases that lead back, and two in which a job may start.
fn loops() -> PhaseType {
    let moves = vec![vec![0.0, 1.0], vec![0.5, 0.0]];
    PhaseType::general(vec![0.25, 0.75], moves, vec![1.0, 0.75]).unwrap()
}

fn solve(model: &Model, n: u64, times: &[f64]) -> Exact {
    exact(model, n, &Initial::Idle, times, &|_| ()).unwrap()
}

/// What pool j's servers complete per server of all pools, times the mean time of a job in each phase.
fn expected(model: &Model, solved: &Exact, n: u64, j: usize) -> Vec<f64> {
    #[allow(clippy::cast_precision_loss)]
    let share = solved.pool_sizes[j] as f64 / n as f64;
    let completed = value(&solved.measures, &format!("{j}.throughput")) * share;
    model.pools[j].law.time_in_phases().iter().map(|v| completed * v).collect()
}

#[test]
fn every_exact_chain_holds_its_phases_in_proportion() {
    for policy in policies() {
        for (load, buffers) in [(0.7, [1, 3]), (0.9, [2, 2]), (1.4, [3, 2])] {
            let pools = [(1.0 / 3.0, Some(buffers[0]), coxian()), (2.0 / 3.0, Some(buffers[1]), loops())];
            let model = model(load, policy.clone(), &pools);
            let solved = solve(&model, 3, &[]);
            let what = format!("{} at {load}", model.policy.label());
            for (j, phases) in solved.phases.iter().enumerate() {
                for (found, wanted) in phases[0].iter().zip(expected(&model, &solved, 3, j)) {
                    assert!((found - wanted).abs() < 1e-12, "{what}: {found}, not {wanted}");
                }
                // Phases are a finer view of the tails.
                for (level, tail) in phases.iter().zip(&solved.tails[j]) {
                    assert!((level.iter().sum::<f64>() - tail).abs() < 1e-13, "{what}: {level:?} {tail}");
                }
            }
        }
    }
}

/// 1,600 states, two units of time apart, in each of 64 replications: their means scatter around the chain's.
#[test]
fn both_samplers_hold_their_phases_in_proportion() {
    for (i, policy) in
        [Policy::jsq(), Policy::jsq_d(2, true, false), Policy::pull(), Policy::i1f()].into_iter().enumerate()
    {
        let pools = [(1.0 / 3.0, Some(2), coxian()), (2.0 / 3.0, Some(3), loops())];
        let model = model(0.8, policy, &pools);
        let solved = solve(&model, 3, &[]);
        for (name, sample) in SAMPLERS {
            let settings = Settings {
                sample_times: (0..1600).map(|i| 30.0 + 2.0 * f64::from(i)).collect(),
                paths: 64,
                ..settings(3, 3230.0, 30.0, 700 + i as u64)
            };
            let found = sample(&model, &settings, &()).unwrap();
            let mean = |j: usize, level: usize, m: usize| {
                let at = |pools: &Vec<Vec<Vec<f64>>>| pools[j].get(level - 1).map_or(0.0, |l| l[m]);
                let of = |path: &fluidlimit::finite::Path| path.phases.iter().map(at).sum::<f64>() / 1600.0;
                found.paths.iter().map(of).collect::<Vec<f64>>()
            };
            for j in 0..2 {
                let wanted = expected(&model, &solved, 3, j);
                for (m, &wanted) in wanted.iter().enumerate() {
                    let what = format!("{name}, {}, pool {j}, phase {m}", model.policy.label());
                    assert_near(&what, &mean(j, 1, m), wanted, 0.002);
                    assert_near(&format!("{what}, level 2"), &mean(j, 2, m), solved.phases[j][1][m], 0.002);
                }
            }
        }
    }
}

/// On the way from idle too, where nothing is in proportion yet.
#[test]
fn both_samplers_follow_the_chain_from_idle() {
    let times = [0.0, 0.2, 0.5, 1.0, 3.0];
    let model = model(1.1, Policy::jsq_d(2, false, false), &[(1.0, Some(3), coxian())]);
    let solved = solve(&model, 3, &times);
    assert!(solved.transient[0].phases[0].iter().flatten().all(|x| *x == 0.0));
    for (name, sample) in SAMPLERS {
        let settings = Settings {
            sample_times: times.to_vec(),
            replications: 40_000,
            paths: 40_000,
            ..settings(3, 3.0, 0.0, 77)
        };
        let found = sample(&model, &settings, &()).unwrap();
        for (i, point) in solved.transient.iter().enumerate().skip(1) {
            for level in 1..=2 {
                for m in 0..3 {
                    let of = |path: &fluidlimit::finite::Path| {
                        path.phases[i][0].get(level - 1).map_or(0.0, |l| l[m])
                    };
                    let all: Vec<f64> = found.paths.iter().map(of).collect();
                    let wanted = point.phases[0][level - 1][m];
                    let what = format!("{name}, t = {}, level {level}, phase {m}", point.time);
                    assert_near(&what, &all, wanted, 0.003);
                    // The summary is the mean of its paths, with its interval.
                    #[allow(clippy::cast_precision_loss)]
                    let mean = all.iter().sum::<f64>() / all.len() as f64;
                    let shown = found.transient[i].phases[0].get(level - 1).map_or(0.0, |l| l[m].value);
                    assert!((mean - shown).abs() < 1e-12, "{what}: {shown}, not {mean}");
                }
            }
        }
    }
}

/// Without several phases neither snapshot has a field for them.
#[test]
fn one_phase_is_left_out() {
    let json = |law: PhaseType| {
        let m = model(0.5, Policy::random(), &[(1.0, Some(2), law)]);
        let plan = Plan { initial: Initial::Idle, times: vec![1.0], tolerance: 1e-6, cut: Top::Reflecting };
        let path = integrate(&m, &plan).unwrap();
        let run =
            simulate(&m, &Settings { sample_times: vec![1.0], ..settings(10, 2.0, 1.0, 1) }, &()).unwrap();
        (serde_json::to_value(&path.snapshots[0]).unwrap(), serde_json::to_value(&run.transient[0]).unwrap())
    };
    let (fluid, finite) = json(PhaseType::exponential(1.0).unwrap());
    assert!(fluid.get("phases").is_none() && finite.get("phases").is_none());
    let (fluid, finite) = json(PhaseType::erlang(2, 2.0).unwrap());
    assert!(fluid.get("phases").is_some() && finite.get("phases").is_some());
}
