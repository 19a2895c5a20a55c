//! Are the 1/n terms and the covariances right? Against tables of other programs, closed forms, and the exact
//! chain, from which they must differ by 1/n^2 and 1/n.

mod common;

use common::{close, number, numbers, system};
use fluidlimit::finite::{Settings, exact, simulate};
use fluidlimit::fluid::expansion::{Expansion, ExpansionError, expand};
use fluidlimit::fluid::fixed_point;
use fluidlimit::model::{Initial, Measures, Model, PhaseType, Policy, Pool, Routers};
use serde_json::Value;

fn oracle(file: &str) -> Value {
    let path = format!("{}/tests/oracles/{file}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn exponential(rate: f64) -> PhaseType {
    PhaseType::exponential(rate).unwrap()
}

fn one(arrival_rate: f64, buffer: Option<u32>, law: PhaseType, policy: Policy) -> Model {
    system(arrival_rate, vec![Pool::new("all", 1.0, buffer, law)], policy)
}

fn supermarket(case: &Value, buffer: Option<u32>, replacement: bool) -> Model {
    let d = u32::try_from(case["d"].as_u64().unwrap()).unwrap();
    one(number(&case["rho"]), buffer, exponential(1.0), Policy::jsq_d(d, replacement, false))
}

fn expanded(m: &Model) -> Expansion<'_> {
    expand(m, &fixed_point(m).unwrap()).unwrap()
}

fn measure(measures: &Measures, name: &str) -> f64 {
    measures.get(name).unwrap().value
}

/// n times the variance of the jobs per server.
fn variance_of_jobs(x: &Expansion, m: &Model) -> f64 {
    let states = fixed_point(m).unwrap().states;
    x.variance_of(|s| {
        let pool = states.pools.iter().find(|p| p.range().contains(&s)).unwrap();
        f64::from((0..=pool.levels).find(|&k| pool.level(k).contains(&s)).unwrap())
    })
}

/// The tables are cut at K = 12 to 20: of the tails listed nothing is lost.
#[test]
fn join_the_shortest_of_d_has_the_terms_of_the_tables() {
    for case in oracle("refined.json")["expansion"].as_array().unwrap() {
        let m = supermarket(case, None, true);
        let x = expanded(&m);
        let what = format!("rho {}, d {}", case["rho"], case["d"]);
        let v = &x.correction()[0];
        for (k, (found, wanted)) in v.iter().zip(numbers(&case["V"])).enumerate() {
            close(*found, wanted, 1e-9, &format!("V_{} {what}", k + 1));
        }
        close(v.iter().sum(), number(&case["sumV"]), 1e-9, &what);
        for (k, (found, wanted)) in x.variances()[0].iter().zip(numbers(&case["Wdiag"])).enumerate() {
            close(*found, wanted, 1e-9, &format!("W_{} {what}", k + 1));
        }
        close(variance_of_jobs(&x, &m), number(&case["varL"]), 1e-9, &what);
        assert!(x.residual() < 1e-13, "{what}: {}", x.residual());
        // The rate of jobs accepted is the load: the mean of x_1 has no correction.
        assert!(v[0].abs() < 1e-12);
    }
}

#[test]
fn distinct_servers_change_the_drift_itself() {
    for case in oracle("refined.json")["distinct"].as_array().unwrap() {
        let m = supermarket(case, None, false);
        let v = &expanded(&m).correction()[0];
        close(v.iter().sum(), number(&case["sumV_distinct"]), 1e-9, "sum");
        for (found, wanted) in v.iter().zip(numbers(&case["V"])) {
            close(*found, wanted, 1e-9, "V");
        }
    }
}

/// Coxian service, buffers of 5: V by phase, the probabilities that a job waits or is blocked, the variance of
/// busy servers; and V of busy servers in phase m is -lambda v_m times V of the blocking probability, since as
/// many jobs end as are accepted.
#[test]
fn coxian_service_has_the_terms_of_the_tables() {
    let laws = &oracle("coxian.json")["dist"];
    for case in oracle("refined.json")["coxian"].as_array().unwrap() {
        let law = &laws[case["law"].as_str().unwrap()];
        let rates = numbers(&law["mu"]);
        let on = numbers(&law["p"]);
        let law_v = numbers(&law["v"]);
        let law = PhaseType::coxian(&rates, &on[..rates.len() - 1]).unwrap();
        let lambda = number(&case["lam"]);
        let buffer = u32::try_from(case["b"].as_u64().unwrap()).unwrap();
        let m = one(lambda, Some(buffer), law, Policy::jsq_d(2, true, false));
        let x = expanded(&m);
        let phases = &x.phase_correction()[0];
        for (k, row) in case["V"].as_array().unwrap().iter().enumerate() {
            for (m, wanted) in numbers(row).iter().enumerate() {
                close(phases[k][m], *wanted, 1e-9, &format!("V of s_{},{}", k + 1, m + 1));
            }
        }
        let at = |n: u64, name: &str| measure(&x.measures(n), name);
        const LARGE: u64 = 1 << 40;
        for (name, zero, first) in [("p_busy", "P_wait_0", "P_wait_1"), ("p_block", "P_block_0", "P_block_1")]
        {
            close(at(LARGE, name), number(&case[zero]), 1e-11, name);
            let change = (at(1000, name) - at(LARGE, name)) * 1000.0;
            close(change, number(&case[first]), 1e-7, name);
        }
        let blocked = number(&case["P_block_1"]);
        for (m, v) in law_v.iter().enumerate() {
            close(phases[0][m], -lambda * v * blocked, 1e-12 * 1e3, "side condition");
        }
        close(x.variances()[0][0], number(&case["N_var_S1"]), 1e-9, "variance of busy servers");
    }
}

/// Small systems of which the chain is solved: the error of the refined means is of order 1/n^2. Doubling n
/// must divide it by about 4; a wrong 1/n term would leave a quotient of 2.
#[test]
fn refined_means_are_off_by_the_square_of_1_over_n() {
    let coxian = PhaseType::coxian(&[2.0, 0.5], &[0.25]).unwrap();
    let two = |a: Option<u32>, b: Option<u32>, law: &PhaseType| {
        vec![
            Pool::new("a", 0.5, a, law.with_mean(0.6).unwrap()),
            Pool::new("b", 0.5, b, law.with_mean(1.5).unwrap()),
        ]
    };
    let exp = exponential(1.0);
    let mut fast = two(Some(3), Some(2), &exp);
    fast[0].speed = vec![0.7, 1.0, 1.4];
    let systems = [
        (one(0.9, Some(2), exp.clone(), Policy::jsq_d(2, true, false)), [64, 128]),
        (one(0.9, Some(2), exp.clone(), Policy::jsq_d(3, true, false)), [64, 128]),
        (one(0.9, Some(2), exp.clone(), Policy::jsq_d(2, false, false)), [64, 128]),
        (one(0.8, Some(2), exp.clone(), Policy::jsq_d(3, false, true)), [64, 128]),
        (one(0.9, Some(2), coxian.clone(), Policy::jsq_d(2, true, false)), [12, 24]),
        (one(1.2, Some(2), coxian.clone(), Policy::jsq_d(2, false, false)), [12, 24]),
        (system(0.9, two(Some(2), Some(2), &exp), Policy::jsq_d(2, true, false)), [12, 24]),
        (system(1.0, fast, Policy::jsq_d(2, false, false)), [8, 16]),
    ];
    for (m, [few, many]) in systems {
        let x = expanded(&m);
        for name in ["mean_jobs", "p_block", "p_idle", "p_busy"] {
            let error = |n: u64| {
                let exact = exact(&m, n, &Initial::Idle, &[], &|_| ()).unwrap();
                measure(&x.measures(n), name) - measure(&exact.measures, name)
            };
            let (first, second) = (error(few), error(many));
            let fluid = measure(&x.measures(1 << 40), name) - measure(&x.measures(few), name);
            let quotient = first / second;
            let what =
                format!("{name}, {}, {} pools: {first:.2e} {second:.2e}", m.policy.label(), m.pools.len());
            // Where the error at the smaller n is a small part of the correction anyway, cubic terms may win.
            let small = first.abs() < 0.02 * fluid.abs();
            assert!(small || (3.0..6.0).contains(&quotient), "{what}, correction {fluid:.2e}");
            assert!(first.abs() < fluid.abs(), "{what}: worse than the fluid by {fluid:.2e}");
        }
    }
}

/// The variance of all jobs against the exact chain: n Var differs from its limit by 1/n or less, so that
/// doubling n must about halve the difference; a wrong limit would leave it as it is.
#[test]
fn the_variance_is_off_by_1_over_n_at_most() {
    let coxian = PhaseType::coxian(&[2.0, 0.5], &[0.25]).unwrap();
    for (law, policy) in [
        (exponential(1.0), Policy::jsq_d(2, true, false)),
        (coxian.clone(), Policy::jsq_d(2, false, false)),
        (coxian, Policy::random()),
    ] {
        let m = one(0.8, Some(2), law, policy);
        let limit = variance_of_jobs(&expanded(&m), &m);
        let off = |n: u64| {
            let law = exact(&m, n, &Initial::Idle, &[], &|_| ()).unwrap().jobs;
            let moment = |k: i32| (0..).zip(&law).map(|(t, p)| f64::from(t).powi(k) * p).sum::<f64>();
            #[allow(clippy::cast_precision_loss)]
            let n_f = n as f64;
            (moment(2) - moment(1).powi(2)) / n_f - limit
        };
        let (first, second) = (off(10), off(20));
        if first.abs() < 1e-9 {
            // Servers under random routing are independent: the variance is n times that of one.
            assert_eq!(m.policy.name, "random");
            continue;
        }
        assert!(first / second > 1.6, "{}: {first} {second}", m.policy.label());
        assert!(first.abs() < 0.2 * limit);
    }
}

/// Two pools of idle servers below capacity, no waiting room: a closed set of numbers, the exact chain being
/// of one dimension for each pool.
#[test]
fn pull_below_capacity_has_a_correction_where_pools_differ() {
    let pools = |buffer| {
        vec![
            Pool::new("fast", 0.5, buffer, exponential(2.0)),
            Pool::new("slow", 0.5, buffer, exponential(1.0 / 3.0)),
        ]
    };
    let m = system(1.0, pools(Some(1)), Policy::pull());
    let x = expanded(&m);
    let v = x.correction();
    close(v[0][0], 0.02334596, 1e-8, "fast");
    close(v[1][0], -0.14007579, 1e-8, "slow");
    for (n, fast, slow) in [(100, 0.407_428_808_2, 0.480_750_688_6), (200, 0.415_608_399_7, 0.483_029_304_0)]
    {
        let solved = exact(&m, n, &Initial::Idle, &[], &|_| ()).unwrap();
        close(solved.tails[0][0], fast, 1e-9, "exact");
        close(solved.tails[1][0], slow, 1e-9, "exact");
    }
    // One pool has no correction at all.
    let m = one(0.9, None, exponential(1.0), Policy::pull());
    assert!(expanded(&m).correction()[0].iter().all(|v| v.abs() < 1e-14));
    close(expanded(&m).variances()[0][0], 0.9, 1e-12, "M/M/infinity");
}

/// Random routing: servers are independent, so means have no correction and variances are those of a sum.
#[test]
fn independent_servers_have_no_correction() {
    let m = one(0.7, Some(6), exponential(1.0), Policy::random());
    let x = expanded(&m);
    let solved = exact(&m, 1, &Initial::Idle, &[], &|_| ()).unwrap();
    for (k, p) in solved.tails[0].iter().enumerate() {
        assert!(x.correction()[0][k].abs() < 1e-13);
        close(x.variances()[0][k], p * (1.0 - p), 1e-12, "binomial");
    }
}

/// Standard deviations of measures against paths of a simulation, within 5 standard errors of a variance.
#[test]
#[allow(clippy::cast_precision_loss)]
fn deviations_are_those_of_simulated_paths() {
    const N: u64 = 400;
    const REPLICATIONS: u32 = 4000;
    let pools = vec![
        Pool::new("a", 0.5, Some(4), exponential(1.4)),
        Pool::new("b", 0.5, None, PhaseType::erlang(2, 2.0).unwrap()),
    ];
    let m = system(0.9, pools, Policy::jsq_d(2, true, false));
    let x = expanded(&m);
    let settings = Settings {
        n: N,
        replications: REPLICATIONS,
        horizon: 40.0,
        warmup: 0.0,
        seed: 3,
        initial: Initial::Idle,
        sample_times: vec![40.0],
        levels: 30,
        paths: REPLICATIONS,
    };
    let paths = simulate(&m, &settings, &()).unwrap().paths;
    // The variance of a sample variance is 2 / (replications - 1) of its square, for normal samples.
    let bound = 5.0 * (2.0 / f64::from(REPLICATIONS - 1)).sqrt() + 3.0 / N as f64;
    let check = |what: &str, sample: Vec<f64>, wanted: f64| {
        let mean = sample.iter().sum::<f64>() / sample.len() as f64;
        let variance = sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (sample.len() - 1) as f64;
        close(variance / wanted, 1.0, bound, what);
    };
    for j in 0..2 {
        for k in 0..3 {
            let of = |p: &fluidlimit::finite::Path| p.tails[0][j].get(k).copied().unwrap_or(0.0);
            let sample = paths.iter().map(of).collect();
            check(&format!("x_{} of pool {j}", k + 1), sample, x.variances()[j][k] / N as f64);
        }
    }
    let deviation = x.deviations(N, &["mean_jobs", "utilisation"]);
    let jobs = paths.iter().map(|p| p.mean_jobs[0]).collect();
    check("jobs", jobs, deviation[0].unwrap().powi(2));
    // Utilisation: busy servers by their rates, over the capacity.
    let busy = |p: &fluidlimit::finite::Path| (1.4 * p.tails[0][0][0] + p.tails[0][1][0]) / 1.2;
    check("utilisation", paths.iter().map(busy).collect(), deviation[1].unwrap().powi(2));
}

#[test]
fn what_has_no_expansion_is_refused_with_the_reason() {
    let refused = |m: &Model| expand(m, &fixed_point(m).unwrap()).err();
    let exp = exponential(1.0);
    assert_eq!(
        refused(&one(1.2, Some(3), exp.clone(), Policy::pull())),
        Some(ExpansionError::Kink { tier: 1 })
    );
    assert_eq!(refused(&one(1.2, None, exp.clone(), Policy::random())), Some(ExpansionError::Growth));
    assert_eq!(
        refused(&one(0.8, None, exp.clone(), Policy::pull_by(Routers::equal(2)))),
        Some(ExpansionError::Routers)
    );
    // Queues of 2,000 places, all of which hold mass.
    let full = refused(&one(0.99, Some(2000), exp, Policy::random()));
    assert_eq!(full, Some(ExpansionError::TooLarge { states: 2000, limit: 1500 }));
}
