//! Is the fluid right when service has phases? Against values computed outside this program to 20 digits
//! (tests/oracles/README.md): equilibria of sampled queues, paths from idle, sliding through every mode,
//! overload. Bounds: 1e-11 for equilibria, 1e-9 for paths, 1e-8 for event times and sliding values.

mod common;

use common::{close, number, numbers};
use fluidlimit::fluid::{Path, Plan, fixed_point, integrate};
use fluidlimit::model::{Initial, Model, PhaseType, Policy, Pool, Top};
use serde_json::Value;

fn oracles() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracles/coxian.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn law(oracles: &Value, name: &str) -> PhaseType {
    let law = &oracles["dist"][name];
    let (rates, mut going_on) = (numbers(&law["mu"]), numbers(&law["p"]));
    going_on.pop();
    PhaseType::coxian(&rates, &going_on).unwrap()
}

fn text(v: &Value) -> &str {
    v.as_str().unwrap()
}

fn system(oracles: &Value, case: &Value) -> Model {
    let d = case["d"].as_u64().unwrap_or(1) as u32;
    let policy = match case["policy"].as_str() {
        None => Policy::jsq_d(d, true, false),
        Some("jsq") => Policy::jsq(),
        Some("jiq") => Policy::jiq(1),
        Some("i1f") => Policy::i1f(),
        other => panic!("policy {other:?}"),
    };
    let law = law(oracles, text(&case["law"]));
    let pool = Pool::new("all", 1.0, Some(case["b"].as_u64().unwrap() as u32), law);
    common::system(number(&case["lam"]), vec![pool], policy)
}

/// S_{i,m}, level by level.
fn compare(phases: &[Vec<f64>], expected: &Value, bound: f64, what: &str) {
    for (i, level) in expected.as_array().unwrap().iter().enumerate() {
        for (m, s) in numbers(level).into_iter().enumerate() {
            let found = phases.get(i).map_or(0.0, |level| level[m]);
            close(found, s, bound, &format!("{what}: S_{{{},{}}}", i + 1, m + 1));
        }
    }
}

/// S_{i,m}; of a law with one phase the tails are all.
fn phases(by_phase: &[Vec<Vec<f64>>], tails: &[Vec<f64>]) -> Vec<Vec<f64>> {
    if by_phase[0].is_empty() { tails[0].iter().map(|x| vec![*x]).collect() } else { by_phase[0].clone() }
}

#[test]
fn equilibria_of_sampled_queues() {
    let oracles = oracles();
    for case in oracles["pod_equilibrium"].as_array().unwrap() {
        let model = system(&oracles, case);
        let what = format!("{} d {} lambda {} b {}", case["law"], case["d"], case["lam"], case["b"]);
        let x = fixed_point(&model).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(x.is_proper() && x.residual < 1e-13, "{what}: residual {:e}", x.residual);
        compare(&phases(&x.phases, &x.tails), &case["s"], 1e-11, &what);
        let m = &x.measures;
        close(m.p_busy.unwrap().value, number(&case["p_wait"]), 1e-11, &what);
        close(m.p_block.unwrap().value, number(&case["p_block"]), 1e-11, &what);
        // Theory: E S_{1,m} = lambda (1 - p_block) v_m.
        let v = numbers(&oracles["dist"][text(&case["law"])]["v"]);
        let accepted = model.arrival_rate * (1.0 - m.p_block.unwrap().value);
        for (s, v) in phases(&x.phases, &x.tails)[0].iter().zip(v) {
            close(*s, accepted * v, 1e-12, &format!("{what}: phases of the job in service"));
        }
    }
}

#[test]
fn overload_equilibria() {
    let oracles = oracles();
    for case in oracles["overload_equilibrium"].as_array().unwrap() {
        let what = format!("{} {} lambda {} b {}", case["policy"], case["law"], case["lam"], case["b"]);
        let x = fixed_point(&system(&oracles, case)).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(x.residual < 1e-13, "{what}: residual {:e}", x.residual);
        compare(&phases(&x.phases, &x.tails), &case["s"], 1e-11, &what);
        close(x.measures.p_busy.unwrap().value, number(&case["p_wait"]), 1e-11, &what);
        close(x.measures.p_block.unwrap().value, number(&case["p_block"]), 1e-11, &what);
    }
}

#[test]
fn spectra_at_the_equilibrium() {
    let oracles = oracles();
    for case in oracles["spectra"].as_array().unwrap() {
        let x = fixed_point(&system(&oracles, case)).unwrap();
        let expected: f64 = text(&case["rightmost"]).split('+').next().unwrap().parse().unwrap();
        close(x.spectral_abscissa.unwrap(), expected, 1e-10, &format!("{} b {}", case["law"], case["b"]));
    }
}

fn start(model: &Model, init: &Value) -> Initial {
    let Some((state, _)) = init.as_object().and_then(|o| o.iter().next()) else { return Initial::Idle };
    let [level, phase] = state[2..state.len() - 1].split(',').collect::<Vec<_>>()[..] else {
        panic!("{state}")
    };
    let (level, phase): (usize, usize) = (level.parse().unwrap(), phase.parse().unwrap());
    let mut tails = vec![vec![0.0; model.pools[0].law.phases()]; level];
    tails.iter_mut().for_each(|level| level[phase - 1] = 1.0);
    Initial::PhaseTails(vec![tails])
}

fn path(model: &Model, case: &Value) -> Path {
    let times = case["points"].as_array().unwrap().iter().map(|p| number(&p["t"])).collect();
    let plan = Plan { initial: start(model, &case["init"]), times, tolerance: 1e-11, cut: Top::Reflecting };
    integrate(model, &plan).unwrap()
}

#[test]
fn paths_from_idle_under_sampled_queues() {
    let oracles = oracles();
    for case in oracles["pod_transient"].as_array().unwrap() {
        let path = path(&system(&oracles, case), case);
        for (snapshot, point) in path.snapshots.iter().zip(case["points"].as_array().unwrap()) {
            let what = format!("{} at {}", case["law"], snapshot.time);
            compare(&phases(&snapshot.phases, &snapshot.tails), &point["s"], 1e-9, &what);
            close(snapshot.p_wait + snapshot.p_block, number(&point["p_wait"]), 1e-9, &what);
        }
    }
}

#[test]
fn sliding_through_all_modes() {
    let oracles = oracles();
    let cases = ["sliding", "sliding_cascade"].iter().flat_map(|k| oracles[k].as_array().unwrap());
    for case in cases {
        let model = system(&oracles, case);
        let what = format!("{} {} lambda {} from {}", case["policy"], case["law"], case["lam"], case["init"]);
        let path = path(&model, case);
        let last = path.snapshots.last().unwrap().time;
        let expected: Vec<f64> = case["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| number(&e["t"]))
            .filter(|t| *t < last)
            .collect();
        let found: Vec<f64> = path.events.iter().map(|e| e.time).filter(|t| *t > 0.0).collect();
        assert_eq!(found.len(), expected.len(), "{what}: {found:?} against {expected:?}");
        for (a, b) in found.iter().zip(&expected) {
            close(*a, *b, 1e-8, &format!("{what}: event"));
        }
        for (snapshot, point) in path.snapshots.iter().zip(case["points"].as_array().unwrap()) {
            let what = format!("{what} at {}", snapshot.time);
            compare(&phases(&snapshot.phases, &snapshot.tails), &point["s"], 1e-8, &what);
            if let Some(p) = point.get("p_wait") {
                close(snapshot.p_wait + snapshot.p_block, number(p), 1e-8, &what);
                close(snapshot.p_block, number(&point["p_block"]), 1e-8, &what);
            }
        }
    }
}
