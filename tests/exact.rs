//! Is the exact solution exact? Against rational solutions, closed forms, a chain that keeps every server
//! apart, and the exponential of its matrix.

mod finite_support;

use std::cell::Cell;

use finite_support::chain::{Chain, policies, systems};
use finite_support::{exponential, model, one_pool, value};
use fluidlimit::finite::{Exact, ExactError, Method, Size, exact};
use fluidlimit::model::{Initial, Model, PhaseType, Policy};
use nalgebra::{DMatrix, DVector};

fn solve(model: &Model, n: u64) -> Exact {
    exact(model, n, &Initial::Idle, &[], &|_| ()).unwrap()
}

#[track_caller]
fn close(what: &str, found: f64, wanted: f64, tolerance: f64) {
    let off = (found - wanted).abs();
    assert!(off <= tolerance, "{what}: {found} against {wanted}, off by {off:e}");
}

fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).unwrap()
}

/// The oracle's systems of one kind, each with its model.
fn oracles(kind: &str) -> Vec<(serde_json::Value, Model)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracles/exact.json");
    let all: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let system = |system: &serde_json::Value| {
        let law = &all["laws"][system["law"].as_str().unwrap()];
        let numbers = |key: &str| law[key].as_array().unwrap().iter().map(number).collect::<Vec<_>>();
        let law = PhaseType::coxian(&numbers("rates"), &numbers("continue")).unwrap();
        let d = u32::try_from(system["d"].as_u64().unwrap_or(1)).unwrap();
        let policy = match system["policy"].as_str().unwrap() {
            "jsq" => Policy::jsq(),
            "jiq" => Policy::pull(),
            "i1f" => Policy::i1f(),
            "pod_wr" => Policy::jsq_d(d, true, false),
            "pod_wor" => Policy::jsq_d(d, false, false),
            "random" => Policy::random(),
            other => panic!("unknown policy {other}"),
        };
        let buffer = u32::try_from(system["buffer"].as_u64().unwrap()).unwrap();
        (system.clone(), model(number(&system["arrival_rate"]), policy, &[(1.0, Some(buffer), law)]))
    };
    all[kind].as_array().unwrap().iter().map(system).collect()
}

#[test]
fn tiny_systems_match_their_rational_solutions() {
    let systems = oracles("tiny");
    assert_eq!(systems.len(), 92);
    for (system, model) in systems {
        let solved = solve(&model, system["n"].as_u64().unwrap());
        let check = |name: &str, found: f64| {
            close(&format!("{name} of {system}"), found, number(&system[name]), 1e-11)
        };
        for name in ["p_busy", "p_block", "waiting_time"] {
            check(name, value(&solved.measures, name));
        }
        check("p_all_idle", *solved.idle_servers.last().unwrap());
        check("p_all_idle", solved.jobs[0]);
        for (found, wanted) in solved.tails[0].iter().zip(system["tails"].as_array().unwrap()) {
            close(&format!("tails of {system}"), *found, number(wanted), 1e-11);
        }
        assert!(solved.statistics.residual < 1e-14 && solved.statistics.method == Method::Elimination);
    }
}

#[test]
fn up_to_forty_servers_match_another_program() {
    let systems = oracles("medium");
    assert!(!systems.is_empty());
    for (system, model) in systems.iter().filter(|(system, _)| system["states"].as_u64() < Some(12_000)) {
        let solved = solve(model, system["n"].as_u64().unwrap());
        assert_eq!(Some(solved.statistics.size.states as u64), system["states"].as_u64(), "{system}");
        for name in ["p_busy", "p_block"] {
            close(
                &format!("{name} of {system}"),
                value(&solved.measures, name),
                number(&system[name]),
                1e-11,
            );
        }
        for (found, wanted) in solved.tails[0].iter().zip(system["tails"].as_array().unwrap()) {
            close(&format!("tails of {system}"), *found, number(wanted), 1e-11);
        }
    }
}

#[test]
fn every_measure_is_that_of_the_chain_with_every_server_kept_apart() {
    for (arrival_rate, n, pools) in systems() {
        for policy in policies() {
            let model = model(arrival_rate, policy, &pools);
            let chain = Chain::new(&model, n);
            let law = chain.stationary();
            let solved = solve(&model, n);
            let title = format!("{:?}, {pools:?}", model.policy);
            for (name, wanted) in chain.measures(&law) {
                close(&format!("{name} of {title}"), value(&solved.measures, &name), wanted, 1e-11);
            }
            for (j, pool) in pools.iter().enumerate() {
                for k in 1..=pool.1.unwrap() {
                    let found = solved.tails[j][k as usize - 1];
                    close(&format!("x_{k} of pool {j}, {title}"), found, chain.tail(&law, j, k), 1e-11);
                }
            }
            let share = |of: &dyn Fn(u32, usize) -> bool| -> f64 {
                let states = chain.states.iter().zip(&law);
                states
                    .filter(|(state, _)| {
                        let idle = state.iter().filter(|s| s.0 == 0).count();
                        of(state.iter().map(|s| s.0).sum(), idle)
                    })
                    .map(|(_, p)| p)
                    .sum()
            };
            for (i, found) in solved.idle_servers.iter().enumerate() {
                close(&format!("{i} idle, {title}"), *found, share(&|_, idle| idle == i), 1e-11);
            }
            for (t, found) in (0u32..).zip(&solved.jobs) {
                close(&format!("{t} jobs, {title}"), *found, share(&|jobs, _| jobs == t), 1e-11);
            }
        }
    }
}

#[test]
fn transients_are_those_of_the_matrix_exponential() {
    let times = [0.0, 0.3, 1.0, 4.0];
    for (arrival_rate, n, pools) in systems().into_iter().skip(4) {
        for policy in [Policy::jsq_d(2, false, false), Policy::pull(), Policy::jsq(), Policy::random()] {
            let model = model(arrival_rate, policy, &pools);
            let chain = Chain::new(&model, n);
            if chain.states.len() > 150 {
                continue;
            }
            let solved = exact(&model, n, &Initial::Idle, &times, &|_| ()).unwrap();
            let size = chain.states.len();
            // Columns are states before: d/dt p = matrix p.
            let mut matrix = DMatrix::zeros(size, size);
            for (from, moves) in chain.moves.iter().enumerate() {
                for &(to, rate) in moves {
                    matrix[(to, from)] += rate;
                    matrix[(from, from)] -= rate;
                }
            }
            let mut idle = DVector::zeros(size);
            idle[0] = 1.0;
            for (&time, snapshot) in times.iter().zip(&solved.transient) {
                let law: Vec<f64> = ((&matrix * time).exp() * &idle).iter().copied().collect();
                for (j, pool) in pools.iter().enumerate() {
                    for k in 1..=pool.1.unwrap() {
                        let found = snapshot.tails[j][k as usize - 1];
                        close(&format!("x_{k} of pool {j} at {time}"), found, chain.tail(&law, j, k), 1e-11);
                    }
                }
                let measures = chain.measures(&law);
                for (name, found) in
                    [("p_idle", snapshot.p_idle), ("p_wait", snapshot.p_wait), ("p_block", snapshot.p_block)]
                {
                    close(&format!("{name} at {time}"), found, measures[name], 1e-11);
                }
                close("mean jobs", snapshot.mean_jobs, measures["mean_jobs"], 1e-11);
            }
        }
    }
}

#[test]
fn a_start_is_spread_over_phases_and_relaxes() {
    // Four servers with two jobs each, phases 0.7 / 0.3 at the start, no arrivals: the law of one server
    // is that of the sum of two services.
    let law = PhaseType::hyperexponential(&[0.7, 0.3], &[2.0, 0.6]).unwrap();
    let model = model(0.0, Policy::pull(), &[(1.0, Some(3), law)]);
    let solved = exact(&model, 4, &Initial::Level(2), &[0.0, 0.5, 40.0], &|_| ()).unwrap();
    let first = |t: f64| 0.7 * (-2.0 * t).exp() + 0.3 * (-0.6 * t).exp();
    close("x_2 at first", solved.transient[0].tails[0][1], 1.0, 1e-15);
    close("x_2", solved.transient[1].tails[0][1], first(0.5), 1e-13);
    close("x_1 late", solved.transient[2].tails[0][0], 0.0, 1e-8);
    // Without arrivals the stationary law is the idle system, and what needs arrivals does not exist.
    assert_eq!((solved.idle_servers[4], solved.jobs.clone()), (1.0, vec![1.0]));
    assert_eq!((solved.measures.p_idle, solved.measures.response_time), (None, None));
}

#[test]
fn pull_without_waiting_room_is_erlangs_loss_system() {
    for (n, load) in [(3u32, 2.0), (20, 18.0), (300, 310.0)] {
        let erlang = (1..=n).fold(1.0, |b, k| load * b / (f64::from(k) + load * b));
        let model = one_pool(load / f64::from(n), Policy::pull(), Some(1));
        let solved = solve(&model, n.into());
        close("p_block", value(&solved.measures, "p_block"), erlang, 1e-14);
        assert_eq!(solved.statistics.size.states as u64, u64::from(n) + 1);
    }
    // It does not depend on the law beyond its mean.
    let erlang = (1..=6).fold(1.0, |b, k| 5.0 * b / (f64::from(k) + 5.0 * b));
    let law = PhaseType::coxian(&[2.0, 0.5], &[0.25]).unwrap();
    let solved = solve(&model(5.0 / 6.0, Policy::pull(), &[(1.0, Some(1), law)]), 6);
    close("p_block", value(&solved.measures, "p_block"), erlang, 1e-13);
}

#[test]
fn three_servers_with_eight_places_match_another_solver() {
    for (policy, jobs, lost) in
        [(Policy::jsq_d(2, true, false), 3.12135, 0.01789), (Policy::pull(), 2.70248, 0.03427)]
    {
        let solved = solve(&one_pool(0.9, policy, Some(8)), 3);
        close("mean jobs", value(&solved.measures, "mean_jobs"), jobs, 5e-6);
        close("p_block", value(&solved.measures, "p_block"), lost, 5e-6);
    }
}

#[test]
fn a_large_chain_is_solved_by_sweeps_to_the_same_digits() {
    // 12,376 states, too wide for elimination; flows in and out of each pool must balance, and each
    // level of the busy servers of a phase holds what the law says.
    let law = PhaseType::coxian(&[2.0, 0.5], &[0.25]).unwrap();
    let solved = solve(&model(0.9, Policy::jsq_d(2, false, false), &[(1.0, Some(3), law)]), 11);
    assert_eq!(solved.statistics.size.states, 12_376);
    assert_eq!(solved.statistics.method, Method::GaussSeidel);
    let lost = value(&solved.measures, "p_block");
    close("flow", value(&solved.measures, "throughput"), 0.9 * (1.0 - lost), 1e-12);
    close("busy", value(&solved.measures, "utilisation"), 0.9 * (1.0 - lost), 1e-12);
    let jobs: f64 = (0u32..).zip(&solved.jobs).map(|(t, p)| f64::from(t) * p).sum();
    close("jobs", jobs / 11.0, value(&solved.measures, "mean_jobs"), 1e-12);
}

#[test]
fn one_server_with_an_infinite_buffer_is_mg1() {
    let h2 = PhaseType::hyperexponential(
        &[0.887_298_334_620_741_7, 0.112_701_665_379_258_3],
        &[1.774_596_669_241_483_4, 0.225_403_330_758_516_6],
    )
    .unwrap();
    assert!((h2.scv() - 4.0).abs() < 1e-9);
    for law in [exponential(1.0), PhaseType::erlang(3, 3.0).unwrap(), h2] {
        let rho = 0.6;
        let solved = solve(&model(rho, Policy::jsq(), &[(1.0, None, law.clone())]), 1);
        // Pollaczek and Khinchine.
        let waiting = rho * (1.0 + law.scv()) / 2.0 / (1.0 - rho);
        close("waiting time", value(&solved.measures, "waiting_time"), waiting, 1e-9);
        close("p_idle", value(&solved.measures, "p_idle"), 1.0 - rho, 1e-12);
        assert!(solved.statistics.cut_mass < 1e-12 && solved.statistics.cut_mass > 0.0);
    }
}

#[test]
fn random_routing_cuts_infinite_buffers_where_nothing_is_left() {
    let rho: f64 = 0.5;
    let sizes = Cell::new(0);
    let announce = |size: &Size| {
        assert!(size.states > 0 && size.mebibytes > 0 && size.n == 2);
        sizes.set(sizes.get() + 1);
    };
    let solved = exact(&one_pool(rho, Policy::random(), None), 2, &Initial::Idle, &[5.0], &announce).unwrap();
    assert!(sizes.get() > 1);
    for k in 1..=20i32 {
        let found = solved.tails[0][usize::try_from(k).unwrap() - 1];
        close(&format!("x_{k}"), found, rho.powi(k), 1e-12);
    }
    close("mean jobs", value(&solved.measures, "mean_jobs"), 1.0, 1e-10);
    // Two independent queues: jobs are negative binomial.
    close("5 jobs", solved.jobs[5], 6.0 * 0.25 * rho.powi(5), 1e-12);
}

#[test]
fn the_shortest_of_all_queues_is_the_shortest_of_n_different_ones() {
    for (n, law) in [(2, exponential(1.0)), (3, PhaseType::coxian(&[2.0, 0.5], &[0.25]).unwrap())] {
        let with = |policy| solve(&model(0.9, policy, &[(1.0, Some(3), law.clone())]), n);
        let d = u32::try_from(n).unwrap();
        let (jsq, all) = (with(Policy::jsq()), with(Policy::jsq_d(d, false, false)));
        for name in ["p_idle", "p_wait", "p_block", "mean_jobs", "waiting_time"] {
            close(name, value(&all.measures, name), value(&jsq.measures, name), 1e-13);
        }
        let again = with(Policy::jsq_d(d, true, false));
        assert!(value(&again.measures, "p_block") > value(&jsq.measures, "p_block") + 1e-3);
    }
}

#[test]
fn what_has_no_exact_solution_is_refused() {
    let refused = |model: &Model, n| exact(model, n, &Initial::Idle, &[], &|_| ()).unwrap_err();
    #[track_caller]
    fn too_large(error: &ExactError) {
        assert!(matches!(error, ExactError::TooLarge { .. }), "{error}");
    }
    let spread = one_pool(0.9, Policy::random(), Some(20));
    too_large(&refused(&spread, 1000));
    let late = exact(&spread, 2, &Initial::Idle, &[1e12], &|_| ()).unwrap_err();
    assert!(matches!(late, ExactError::LateTimes { .. }), "{late}");
    let over = one_pool(1.0, Policy::jsq(), None);
    assert_eq!(refused(&over, 2), ExactError::Unstable { load: 1.0 });
    assert!(matches!(refused(&spread, 0), ExactError::Finite(_)));
    assert!(matches!(refused(&spread, u64::MAX), ExactError::Finite(_)));
    too_large(&refused(&spread, 1 << 39));
    for times in [[-1.0, 0.0], [1.0, 0.5], [0.0, f64::NAN], [0.0, f64::INFINITY]] {
        let error = exact(&spread, 1, &Initial::Idle, &times, &|_| ()).unwrap_err();
        assert!(matches!(error, ExactError::Time(_)), "{error}");
    }
    let deep = exact(&one_pool(0.5, Policy::jsq(), None), 1, &Initial::Level(5_000_000), &[], &|_| ());
    too_large(&deep.unwrap_err());
}
