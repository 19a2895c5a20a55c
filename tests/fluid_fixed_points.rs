//! Is x* right? Against closed forms and values computed outside this program to 20 digits
//! (tests/oracles/README.md). Bound: 1e-12; growth rates 1e-8 (they come out at rounding).

mod common;

use common::{close, model, number, numbers, oracles};
use fluidlimit::fluid::{FixedPoint, fixed_point};
use fluidlimit::model::{Model, Policy};
use serde_json::Value;

const BOUND: f64 = 1e-12;

fn solve(model: &Model) -> FixedPoint {
    let x = fixed_point(model).unwrap();
    assert!(x.residual < 1e-12, "residual {:e}", x.residual);
    assert!(x.infeasibility > -1e-14);
    assert!(x.truncation <= 1e-14, "truncation {:e}", x.truncation);
    x
}

fn tail(x: &FixedPoint, pool: usize, k: usize) -> f64 {
    x.tails[pool].get(k - 1).copied().unwrap_or(0.0)
}

fn value(v: Option<fluidlimit::model::Value>) -> f64 {
    v.unwrap().value
}

fn check_pull(case: &str, model: &Model) -> FixedPoint {
    let oracle = &oracles()[case]["fixed_point"];
    let x = solve(model);
    for (j, nu) in numbers(&oracle["nu"]).into_iter().enumerate() {
        close(tail(&x, j, 1), nu, BOUND, &format!("{case} nu"));
        assert_eq!(tail(&x, j, 2), 0.0);
    }
    let idle = number(&oracle["idle"]);
    close(x.idle.iter().sum::<f64>(), idle, BOUND * idle.max(1e-3), &format!("{case} idle"));
    close(value(x.measures.p_idle), 1.0, BOUND, "p_idle");
    close(value(x.measures.messages_per_job), 1.0, BOUND, "messages");
    x
}

#[test]
fn pull_below_capacity() {
    let x = check_pull(
        "P1_single_subcritical_3pools",
        &model(0.9, &[(0.5, 2.0, Some(4)), (0.3, 1.0, Some(2)), (0.2, 0.5, Some(9))], Policy::pull()),
    );
    // Upper levels relax at the service rates, the slowest at 0.5.
    close(x.spectral_abscissa.unwrap(), -0.5, BOUND, "abscissa");
    // With B = 1 only the first level is left: its eigenvalues are the oracle's.
    for (case, lambda, pools) in [
        (
            "P1_single_subcritical_3pools",
            0.9,
            vec![(0.5, 2.0, Some(1)), (0.3, 1.0, Some(1)), (0.2, 0.5, Some(1))],
        ),
        ("P2_paper_example_PULL", 1.0, vec![(0.5, 2.0, Some(1)), (0.5, 1.0 / 3.0, Some(1))]),
    ] {
        let x = check_pull(case, &model(lambda, &pools, Policy::pull()));
        let rightmost = numbers(&oracles()[case]["fixed_point"]["jac_x1_eigenvalues"])[0];
        close(x.spectral_abscissa.unwrap(), rightmost, 1e-11, &format!("{case} abscissa"));
    }
    let two = [(0.5, 2.0, None), (0.5, 1.0 / 3.0, None)];
    check_pull("P2_paper_example_PULL", &model(1.0, &two, Policy::pull()));
    check_pull("P3_near_critical", &model((1.0 - 1e-6) * 7.0 / 6.0, &two, Policy::pull()));
    check_pull("P5_hit_slide_leave", &model(0.7, &[(0.5, 1.0, None), (0.5, 0.6, None)], Policy::pull()));
    check_pull("P5b_slide_leave_homogeneous", &model(0.8, &[(1.0, 1.0, None)], Policy::pull()));
}

#[test]
fn pull_above_capacity() {
    for (case, lambda, pools) in [
        ("P4_overload_finite", 1.2, vec![(0.6, 1.0, Some(3)), (0.4, 0.5, Some(5))]),
        ("P4b_overload_B1_B2", 1.8, vec![(0.5, 1.0, Some(1)), (0.5, 2.0, Some(2))]),
    ] {
        let oracle = &oracles()[case]["fixed_point"];
        let x = solve(&model(lambda, &pools, Policy::pull()));
        close(value(x.measures.p_block), number(&oracle["blocking_prob"]), BOUND, case);
        close(value(x.measures.p_idle), number(&oracle["zero_wait_prob"]), BOUND, case);
        for (j, y) in oracle["y_kj_k1"].as_array().unwrap().iter().enumerate() {
            for (k, y) in numbers(y).into_iter().enumerate() {
                close(tail(&x, j, k + 1) - tail(&x, j, k + 2), y, BOUND, case);
            }
        }
    }
}

#[test]
fn infinite_pools_slower_than_the_overflow_grow() {
    for (case, lambda, pools) in [
        ("P6_overload_infinite", 1.25, vec![(0.3, 2.0, None), (0.3, 1.0, None), (0.4, 0.5, None)]),
        ("P7_overload_mixed", 1.0, vec![(0.5, 1.0, Some(2)), (0.5, 0.5, None)]),
    ] {
        let oracle = &oracles()[case]["asymptotics"];
        let x = solve(&model(lambda, &pools, Policy::pull()));
        for (j, g) in numbers(&oracle["queue_growth_per_server"]).into_iter().enumerate() {
            close(x.growth[j].unwrap_or(0.0), g, 1e-12, case);
        }
        close(value(x.measures.p_block), number(&oracle["blocking_prob"]), BOUND, case);
        close(value(x.measures.p_idle), number(&oracle["zero_wait_prob"]), BOUND, case);
        for (j, y) in oracle["y_kj_k1"].as_array().unwrap().iter().enumerate().filter(|(_, y)| y.is_array()) {
            for (k, y) in numbers(y).into_iter().enumerate() {
                close(tail(&x, j, k + 1) - tail(&x, j, k + 2), y, BOUND, case);
            }
        }
    }
}

#[test]
fn jsq_d_homogeneous() {
    let oracle = &oracles()["P14_JSQd_homogeneous"]["s_k"];
    for d in [1, 2, 3] {
        let x = solve(&model(0.9, &[(1.0, 1.0, None)], Policy::jsq_d(d, true, false)));
        for (k, s) in numbers(&oracle[format!("d={d}")]).into_iter().enumerate() {
            close(tail(&x, 0, k + 1), s, BOUND, &format!("JSQ({d}) level {}", k + 1));
        }
    }
}

#[test]
fn jsq_d_with_finite_buffers() {
    for (case, oracle) in oracles()["P14b_JSQd_finite_stationary"].as_object().unwrap() {
        let parts: Vec<f64> =
            case.split(',').map(|p| p.split('=').nth(1).unwrap().parse().unwrap()).collect();
        let policy = Policy::jsq_d(parts[0] as u32, true, false);
        let x = solve(&model(parts[2], &[(1.0, 1.0, Some(parts[1] as u32))], policy));
        for (k, s) in numbers(&oracle["s_k"]).into_iter().enumerate() {
            close(tail(&x, 0, k + 1), s, BOUND, case);
        }
        close(value(x.measures.p_block), number(&oracle["blocking_prob"]), BOUND, case);
    }
}

#[test]
fn jsq_2_over_two_pools() {
    let o = oracles();
    let compare = |x: &FixedPoint, expected: &Value, what: &str| {
        for (j, pool) in expected.as_array().unwrap().iter().enumerate() {
            for (k, s) in numbers(pool).into_iter().enumerate() {
                close(tail(x, j, k + 1), s, BOUND, what);
            }
        }
    };
    let x = solve(&model(0.9, &[(0.5, 1.5, None), (0.5, 0.75, None)], Policy::jsq_d(2, true, false)));
    compare(&x, &o["P15_JSQ2_heterogeneous"]["fixed_point_x_kj"], "P15");
    let x = solve(&model(1.0, &[(0.5, 1.5, Some(2)), (0.5, 0.75, Some(3))], Policy::jsq_d(2, true, false)));
    let p17 = &o["P17_JSQ2_heterogeneous_finite"];
    compare(&x, &p17["fixed_point_x_kj"], "P17");
    close(value(x.measures.p_block), number(&p17["blocking_prob"]), BOUND, "P17");
}

#[test]
fn jsq_2_on_slow_pools_grows_at_the_derived_rate() {
    let x = solve(&model(1.0, &[(0.5, 2.0, None), (0.5, 1.0 / 3.0, None)], Policy::jsq_d(2, true, false)));
    close(x.growth[1].unwrap(), 1.0 / 6.0, 1e-12, "per slow server");
    close(value(x.measures.growth), 1.0 / 12.0, 1e-12, "in all");
    let p16 = &oracles()["P16_JSQ2_instability_example"];
    for (k, s) in numbers(&p16["pool1_limit_x_k1"]).into_iter().enumerate() {
        close(tail(&x, 0, k + 1), s, BOUND, "fast pool");
    }
    close(
        value(x.measures.pools[0].mean_jobs),
        number(&p16["pool1_limit_mean_jobs_per_server"]),
        1e-11,
        "jobs at fast servers",
    );
}

#[test]
fn random_routing() {
    let p18 = &oracles()["P18_random_routing_finite"];
    let x = solve(&model(0.9, &[(0.5, 1.5, Some(4)), (0.5, 0.75, Some(3))], Policy::random()));
    close(value(x.measures.p_block), number(&p18["blocking_prob"]), BOUND, "P18");
    for (j, y) in p18["y_kj_k0"].as_array().unwrap().iter().enumerate() {
        let y = numbers(y);
        close(x.idle[j], y[0], BOUND, "P18 idle");
        for (k, &y) in y.iter().enumerate().skip(1) {
            close(tail(&x, j, k) - tail(&x, j, k + 1), y, BOUND, "P18");
        }
    }
}

#[test]
fn near_critical_many_pools_tiny_shares() {
    let theta = 1.0 - 1e-4;
    // JSQ(2): x_k = lambda^(2^k - 1).
    let x = solve(&model(theta, &[(1.0, 1.0, None)], Policy::jsq_d(2, true, false)));
    for k in 1..=20 {
        close(tail(&x, 0, k), theta.powf((2f64).powi(k as i32) - 1.0), BOUND, &format!("JSQ(2), level {k}"));
    }
    // Random: x_k = lambda^k, hundreds of thousands of levels.
    let x = solve(&model(theta, &[(1.0, 1.0, None)], Policy::random()));
    for k in [1, 10, 1000, 100_000] {
        close(tail(&x, 0, k), theta.powi(k as i32), BOUND, &format!("random, level {k}"));
    }
    close(value(x.measures.mean_jobs), theta / (1.0 - theta), 1e-8, "M/M/1 mean");
    // 200 pools at 1 - 1e-4 of capacity: the balance holds, and every pool has x_1 = beta / (1 + mu s).
    let pools: Vec<_> = (0..200).map(|j| (1.0 / 200.0, 0.5 + f64::from(j) / 100.0, None)).collect();
    let capacity: f64 = pools.iter().map(|p| p.0 * p.1).sum();
    for policy in [Policy::pull(), Policy::jsq(), Policy::i1f(), Policy::jiq(2)] {
        let x = solve(&model(theta * capacity, &pools, policy));
        let s = x.idle.iter().sum::<f64>() / (theta * capacity);
        let flow: f64 = (0..200).map(|j| pools[j].1 * tail(&x, j, 1)).sum();
        close(flow, theta * capacity, BOUND, "throughput");
        for (j, pool) in pools.iter().enumerate() {
            close(tail(&x, j, 1), pool.0 / (1.0 + pool.1 * s), BOUND, "nu");
        }
    }
    // Under JSQ(2) at 1 - 1e-4 of capacity 200 pools hold, just: the fluid takes 10^5 time units.
    let x = solve(&model(theta * capacity, &pools, Policy::jsq_d(2, true, false)));
    assert!(x.is_proper() && x.spectral_abscissa.unwrap() < 0.0);
    // A hundred slow ones fill up.
    let pools: Vec<_> = pools.iter().map(|p| (p.0, if p.1 < 1.5 { p.1 / 20.0 } else { p.1 }, None)).collect();
    let capacity: f64 = pools.iter().map(|p| p.0 * p.1).sum();
    let x = solve(&model(theta * capacity, &pools, Policy::jsq_d(2, true, false)));
    let growing = x.growth.iter().filter(|g| g.is_some()).count();
    assert!(growing > 0 && x.growth[..growing].iter().all(Option::is_some));
    let total: f64 = pools.iter().zip(&x.growth).map(|(p, g)| p.0 * g.unwrap_or(0.0)).sum();
    let served: f64 =
        (0..200).map(|j| pools[j].1 * if j < growing { pools[j].0 } else { tail(&x, j, 1) }).sum();
    close(served + total, theta * capacity, BOUND, "flow balance with growth");
    let even: Vec<_> = (0..200).map(|j| (1.0 / 200.0, 0.9 + f64::from(j) / 1000.0, None)).collect();
    let x = solve(&model(0.9, &even, Policy::jsq_d(2, true, false)));
    assert!(x.is_proper());
    // A share of one in a million changes nothing for the rest, and gets its own answer.
    let x = solve(&model(0.8, &[(1e-6, 3.0, None), (1.0 - 1e-6, 1.0, None)], Policy::pull()));
    let s = x.idle.iter().sum::<f64>() / 0.8;
    close(tail(&x, 0, 1) / 1e-6, 1.0 / (1.0 + 3.0 * s), 1e-10, "tiny pool");
    let x = solve(&model(0.8, &[(1e-6, 3.0, None), (1.0 - 1e-6, 1.0, None)], Policy::jsq_d(2, true, false)));
    close(tail(&x, 1, 2), 0.8f64.powi(3), 2e-6, "JSQ(2) beside a tiny pool");
}
