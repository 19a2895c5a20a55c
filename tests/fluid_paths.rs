//! Does the fluid path follow the right one? Against paths and event times computed outside this
//! program to about 1e-15 (tests/oracles/README.md), at the default tolerance of 1e-10. Bound: 1e-9.

mod common;

use common::{close, model, number, numbers, oracles};
use fluidlimit::fluid::{EventKind, Path, Plan, integrate};
use fluidlimit::model::{Initial, Model, Policy, Top};
use serde_json::Value;

const BOUND: f64 = 1e-9;

fn times(transient: &Value) -> Vec<f64> {
    let mut times: Vec<f64> = transient.as_object().unwrap().keys().map(|k| k.parse().unwrap()).collect();
    times.sort_by(f64::total_cmp);
    times
}

fn at(transient: &Value, time: f64) -> &Value {
    let entries = transient.as_object().unwrap();
    entries.iter().find(|(k, _)| k.parse::<f64>().unwrap() == time).unwrap().1
}

fn path(model: &Model, initial: Initial, times: &[f64]) -> Path {
    integrate(model, &Plan { initial, times: times.to_vec(), tolerance: 1e-10, cut: Top::Reflecting })
        .unwrap()
}

fn tail(path: &Path, i: usize, pool: usize, k: usize) -> f64 {
    path.snapshots[i].tails[pool].get(k - 1).copied().unwrap_or(0.0)
}

fn check_sanity(path: &Path) {
    assert!(path.mass_defect < 1e-12, "mass defect {:e}", path.mass_defect);
    assert!(path.clipped > -1e-14, "clipped {:e}", path.clipped);
}

/// Runs a case of the PULL family and compares everything the oracle holds.
fn follow(case: &str, model: &Model, initial: Initial) -> Path {
    let oracle = &oracles()[case];
    let times = times(&oracle["transient"]);
    let path = path(model, initial, &times);
    for (i, &t) in times.iter().enumerate() {
        let expected = at(&oracle["transient"], t);
        let what = |name: &str| format!("{case} at {t}: {name}");
        for (j, idle) in numbers(&expected["y0_j"]).into_iter().enumerate() {
            close(path.snapshots[i].idle[j], idle, BOUND, &what("idle"));
        }
        for (j, tails) in expected["x_kj_k1.."].as_array().unwrap().iter().enumerate() {
            for (k, x) in numbers(tails).into_iter().enumerate() {
                close(tail(&path, i, j, k + 1), x, BOUND, &what("tail"));
            }
        }
        for (j, jobs) in numbers(&expected["sum_k_x_kj"]).into_iter().enumerate() {
            close(path.snapshots[i].jobs[j], jobs, 10.0 * BOUND, &what("jobs"));
        }
        close(path.snapshots[i].to_idle, number(&expected["D"]), BOUND, &what("D"));
    }
    let events = oracle["events"].as_array().unwrap();
    assert_eq!(path.events.len(), events.len(), "{case}: {:?}", path.events);
    for (event, expected) in path.events.iter().zip(events) {
        let kind = if expected["type"] == "hit" { EventKind::Hit } else { EventKind::Leave };
        assert_eq!(event.kind, kind);
        close(event.time, number(&expected["t"]), BOUND, &format!("{case}: event"));
    }
    check_sanity(&path);
    path
}

#[test]
fn pull_from_idle_below_capacity() {
    let three = [(0.5, 2.0, None), (0.3, 1.0, None), (0.2, 0.5, None)];
    follow("P1_single_subcritical_3pools", &model(0.9, &three, Policy::pull()), Initial::Idle);
    let two = [(0.5, 2.0, None), (0.5, 1.0 / 3.0, None)];
    let path = follow("P2_paper_example_PULL", &model(1.0, &two, Policy::pull()), Initial::Idle);
    // From idle no server ever holds two jobs.
    assert!(path.snapshots.iter().all(|s| s.tails.iter().all(|x| x[1..].iter().all(|&x| x == 0.0))));
}

#[test]
fn pull_in_overload_slides_for_ever() {
    let pools = [(0.6, 1.0, Some(3)), (0.4, 0.5, Some(5))];
    follow("P4_overload_finite", &model(1.2, &pools, Policy::pull()), Initial::Idle);
    let pools = [(0.5, 1.0, Some(1)), (0.5, 2.0, Some(2))];
    follow("P4b_overload_B1_B2", &model(1.8, &pools, Policy::pull()), Initial::Idle);
    let pools = [(0.3, 2.0, None), (0.3, 1.0, None), (0.4, 0.5, None)];
    follow("P6_overload_infinite", &model(1.25, &pools, Policy::pull()), Initial::Idle);
    let pools = [(0.5, 1.0, Some(2)), (0.5, 0.5, None)];
    follow("P7_overload_mixed", &model(1.0, &pools, Policy::pull()), Initial::Idle);
}

#[test]
fn pull_hits_slides_and_leaves() {
    let pools = [(0.5, 1.0, None), (0.5, 0.6, None)];
    let start = Initial::Tails(vec![vec![0.45; 3], vec![0.45; 3]]);
    follow("P5_hit_slide_leave", &model(0.7, &pools, Policy::pull()), start);
    let one = model(0.8, &[(1.0, 1.0, None)], Policy::pull());
    let path = follow("P5b_slide_leave_homogeneous", &one, Initial::Level(3));
    assert!(path.sliding > 8.19 && path.sliding < 8.2);
}

#[test]
fn jsq2_from_empty() {
    let oracle = &oracles()["P14c_JSQ2_transient_from_empty"]["s_k"];
    let times = times(oracle);
    let path = path(&model(0.9, &[(1.0, 1.0, None)], Policy::jsq_d(2, true, false)), Initial::Idle, &times);
    for (i, &t) in times.iter().enumerate() {
        for (k, x) in numbers(at(oracle, t)).into_iter().enumerate() {
            close(tail(&path, i, 0, k + 1), x, BOUND, &format!("JSQ(2) at {t}, level {}", k + 1));
        }
    }
    check_sanity(&path);
}

#[test]
fn jsq2_over_two_pools() {
    let oracle = &oracles()["P15_JSQ2_heterogeneous"]["transient"];
    let times = times(oracle);
    let pools = [(0.5, 1.5, None), (0.5, 0.75, None)];
    let path = path(&model(0.9, &pools, Policy::jsq_d(2, true, false)), Initial::Idle, &times);
    for (i, &t) in times.iter().enumerate() {
        for (j, pool) in at(oracle, t).as_array().unwrap().iter().enumerate() {
            for (k, x) in numbers(pool).into_iter().enumerate() {
                close(tail(&path, i, j, k + 1), x, BOUND, &format!("P15 at {t}"));
            }
        }
    }
    check_sanity(&path);
}

#[test]
fn jsq2_on_slow_pools_grows() {
    let oracle = &oracles()["P16_JSQ2_instability_example"]["transient"];
    let times = times(oracle);
    let pools = [(0.5, 2.0, None), (0.5, 1.0 / 3.0, None)];
    let path = path(&model(1.0, &pools, Policy::jsq_d(2, true, false)), Initial::Idle, &times);
    for (i, &t) in times.iter().enumerate() {
        let expected = at(oracle, t);
        for (j, name) in ["x_k1", "x_k2"].iter().enumerate() {
            for (k, x) in numbers(&expected[*name]).into_iter().enumerate() {
                close(tail(&path, i, j, k + 1), x, BOUND, &format!("P16 at {t}, {name}"));
            }
        }
        close(path.snapshots[i].jobs[1], number(&expected["sum_x_k2"]), 10.0 * BOUND, "P16 jobs");
    }
    check_sanity(&path);
}

#[test]
fn jsq_in_overload_fills_one_level_after_the_other() {
    let oracle = &oracles()["P20_full_JSQ_overload_levels"]["transient"];
    let times = times(oracle);
    let pools = [(0.5, 1.0, None), (0.5, 0.5, None)];
    let path = path(&model(1.0, &pools, Policy::jsq()), Initial::Level(1), &times);
    for (i, &t) in times.iter().enumerate() {
        for (j, x) in numbers(&at(oracle, t)["x_2j"]).into_iter().enumerate() {
            close(tail(&path, i, j, 2), x, BOUND, &format!("P20 at {t}"));
        }
    }
    check_sanity(&path);
}

#[test]
fn hyperexponential_service_slides_too() {
    use fluidlimit::model::PhaseType;
    let oracle = &oracles()["P19_hyperexp_overload_sliding"];
    let times = times(&oracle["transient"]);
    let mut m = model(1.3, &[(1.0, 1.0, Some(2))], Policy::pull());
    m.pools[0].law = PhaseType::hyperexponential(&[0.9, 0.1], &[2.0, 2.0 / 11.0]).unwrap();
    let path = path(&m, Initial::Idle, &times);
    close(path.events[0].time, number(&oracle["events"][0]["t"]), BOUND, "P19 hit");
    for (i, &t) in times.iter().enumerate() {
        close(
            tail(&path, i, 0, 2),
            number(&at(&oracle["transient"], t)["x_2"]),
            BOUND,
            &format!("P19 at {t}"),
        );
    }
    check_sanity(&path);
}
