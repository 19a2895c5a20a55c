//! Does the sampler give the numbers that queueing theory gives?

mod finite_support;

use finite_support::{assert_near, exponential, measured, model, one_pool, settings, tail};
use fluidlimit::finite::{Settings, simulate};
use fluidlimit::model::{Initial, PhaseType, Policy};

fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).unwrap()
}

#[test]
fn two_and_three_servers_match_the_exact_rational_solutions() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracles/finite.json");
    let oracles: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let systems = oracles["systems"].as_array().unwrap();
    for (seed, system) in (0..).zip(systems) {
        let law = &oracles["laws"][system["law"].as_str().unwrap()];
        let numbers = |key: &str| law[key].as_array().unwrap().iter().map(number).collect::<Vec<_>>();
        let law = PhaseType::coxian(&numbers("rates"), &numbers("continue")).unwrap();
        let d = u32::try_from(system["d"].as_u64().unwrap_or(1)).unwrap();
        let policy = match system["policy"].as_str().unwrap() {
            "jsq" => Policy::jsq(),
            "jiq" => Policy::pull(),
            "i1f" => Policy::i1f(),
            "pod_wr" => Policy::jsq_d(d, true, false),
            "pod_wor" => Policy::jsq_d(d, false, false),
            _ => Policy::random(),
        };
        let buffer = u32::try_from(system["buffer"].as_u64().unwrap()).unwrap();
        let model = model(number(&system["arrival_rate"]), policy, &[(1.0, Some(buffer), law)]);
        let n = system["n"].as_u64().unwrap();
        let runs = simulate(&model, &settings(n, 500.0, 50.0, seed), &()).unwrap().runs;
        for name in ["p_busy", "p_block"] {
            let exact = number(&system[name]);
            assert_near(&format!("{name} of {system}"), &measured(&runs, name), exact, 0.01);
        }
        for (k, exact) in (1..).zip(system["tails"].as_array().unwrap()) {
            assert_near(&format!("x_{k} of {system}"), &tail(&runs, 0, k), number(exact), 0.01);
        }
    }
}

#[test]
fn one_server_is_an_mm1_queue_with_a_buffer() {
    let (rho, buffer) = (0.8f64, 4);
    let runs = simulate(&one_pool(rho, Policy::pull(), Some(4)), &settings(1, 2000.0, 50.0, 1), &());
    let runs = runs.unwrap().runs;
    let probability = |k: i32| (1.0 - rho) * rho.powi(k) / (1.0 - rho.powi(buffer + 1));
    let jobs: f64 = (0..=buffer).map(|k| f64::from(k) * probability(k)).sum();
    let accepted = 1.0 - probability(buffer);
    let waiting = (jobs - 1.0 + probability(0)) / (rho * accepted);
    for (name, exact) in [
        ("p_idle", probability(0)),
        ("p_block", probability(buffer)),
        ("mean_jobs", jobs),
        ("response_time", jobs / (rho * accepted)),
        ("waiting_time", waiting),
        ("utilisation", rho * accepted),
        ("throughput", rho * accepted),
        ("messages_per_job", probability(0)),
    ] {
        assert_near(name, &measured(&runs, name), exact, 0.05);
    }
    for k in 0..=buffer {
        let level = usize::try_from(k).unwrap();
        let estimates: Vec<f64> = runs.iter().map(|run| run.levels[0][level]).collect();
        assert_near(&format!("level {k}"), &estimates, probability(k), 0.01);
    }
}

#[test]
fn random_routing_makes_independent_mm1_queues_of_any_length() {
    let rho = 0.7f64;
    let summary = simulate(&one_pool(rho, Policy::random(), None), &settings(50, 400.0, 100.0, 1), &());
    let summary = summary.unwrap();
    for k in 1..=8 {
        let exact = rho.powi(i32::try_from(k).unwrap());
        assert_near(&format!("x_{k}"), &tail(&summary.runs, 0, k), exact, 0.01);
    }
    assert_near("jobs", &measured(&summary.runs, "mean_jobs"), rho / (1.0 - rho), 0.02);
    assert_near("response", &measured(&summary.runs, "response_time"), 1.0 / (1.0 - rho), 0.05);
    // Levels reported add up to all servers, and the interval is one of the replications reported.
    let levels: f64 = summary.levels[0].iter().map(|v| v.value).sum();
    assert!((levels - 1.0).abs() < 1e-9);
    assert!(summary.statistics.highest_level > 12 && summary.statistics.lost == 0);
    assert!(summary.measures.mean_jobs.unwrap().half_width.unwrap() < 0.05);
}

#[test]
fn pull_without_waiting_room_is_erlangs_loss_system() {
    let (n, load) = (20u32, 18.0);
    let erlang = (1..=n).fold(1.0, |b, k| load * b / (f64::from(k) + load * b));
    for (seed, law) in [
        (1, exponential(1.0)),
        (2, PhaseType::coxian(&[2.0, 0.5], &[0.25]).unwrap()),
        (3, PhaseType::erlang(3, 3.0).unwrap()),
    ] {
        let model = model(load / f64::from(n), Policy::pull(), &[(1.0, Some(1), law)]);
        let runs = simulate(&model, &settings(n.into(), 400.0, 50.0, seed), &()).unwrap().runs;
        // The loss does not depend on the service law beyond its mean.
        assert_near("p_block", &measured(&runs, "p_block"), erlang, 0.002);
        let busy = load / f64::from(n) * (1.0 - erlang);
        assert_near("utilisation", &measured(&runs, "utilisation"), busy, 0.002);
    }
}

#[test]
fn without_arrivals_nothing_is_divided_by_zero() {
    let mut settings = settings(7, 3.0, 1.0, 1);
    let summary = simulate(&one_pool(0.0, Policy::pull(), None), &settings, &()).unwrap();
    assert_eq!(summary.measures.p_idle, None);
    assert_eq!(summary.measures.response_time, None);
    assert_eq!(summary.measures.messages_per_job, None);
    assert_eq!(summary.measures.mean_jobs.unwrap().value, 0.0);
    assert_eq!(summary.tails, vec![vec![]]);
    assert_eq!(summary.levels[0][0].value, 1.0);
    assert_eq!(summary.statistics.events, 0);

    // Ten jobs each and no arrivals: deaths only, x_10 decays as exp(-t).
    settings.n = 1000;
    settings.initial = Initial::Level(10);
    settings.sample_times = vec![0.0, 1.0];
    let summary = simulate(&one_pool(0.0, Policy::jsq(), None), &settings, &()).unwrap();
    assert_eq!(summary.transient[0].mean_jobs.value, 10.0);
    assert_eq!(summary.statistics.highest_level, 10);
    let left = summary.transient[1].tails[0][9];
    assert!((left.value - (-1.0f64).exp()).abs() < 2.5 * left.half_width.unwrap());
}

#[test]
fn a_pool_without_servers_has_no_values_per_server() {
    let pools = [(0.9, Some(3), exponential(1.0)), (0.1, None, exponential(2.0))];
    for policy in [Policy::pull(), Policy::jsq(), Policy::jsq_d(2, false, true)] {
        let summary = simulate(&model(0.5, policy, &pools), &settings(1, 200.0, 10.0, 1), &()).unwrap();
        assert_eq!(summary.pool_sizes, [1, 0]);
        let empty = &summary.measures.pools[1];
        assert_eq!((empty.mean_jobs, empty.utilisation, empty.response_time), (None, None, None));
        assert_eq!(empty.p_idle.unwrap().value, 0.0);
        assert!(summary.levels[1].is_empty() && summary.tails[1].is_empty());
    }
}

#[test]
fn an_initial_state_is_rounded_to_servers_and_kept() {
    let pools = [(0.3, Some(3), exponential(1.0)), (0.7, None, PhaseType::erlang(2, 2.0).unwrap())];
    let tails = vec![vec![0.3, 0.1], vec![0.7, 0.7, 0.04]];
    let settings = Settings {
        initial: Initial::Tails(tails),
        sample_times: vec![0.0],
        replications: 1,
        ..settings(100, 1e-9, 0.0, 1)
    };
    let summary = simulate(&model(0.5, Policy::pull(), &pools), &settings, &()).unwrap();
    let values = |j: usize| summary.transient[0].tails[j].iter().map(|v| v.value).collect::<Vec<_>>();
    assert_eq!((values(0), values(1)), (vec![0.3, 0.1], vec![0.7, 0.7, 0.04]));
    assert_eq!(summary.transient[0].tails[0][0].half_width, None);
}

#[test]
fn an_overloaded_system_grows_at_the_excess_rate() {
    // Every server starts with a thousand jobs and stays busy: mean jobs grow by 2 - 1 per unit of time.
    let coxian = PhaseType::coxian(&[2.0, 0.5], &[0.25]).unwrap();
    for (seed, policy) in (0..).zip([Policy::random(), Policy::jsq_d(2, true, false), Policy::jsq()]) {
        for law in [exponential(1.0), coxian.clone()] {
            let settings = Settings {
                initial: Initial::Level(1000),
                sample_times: vec![50.0],
                paths: 64,
                ..settings(100, 50.0, 0.0, seed)
            };
            let model = model(2.0, policy.clone(), &[(1.0, None, law.clone())]);
            let summary = simulate(&model, &settings, &()).unwrap();
            let jobs: Vec<f64> = summary.paths.iter().map(|path| path.mean_jobs[0]).collect();
            // A server that starts with a fresh job completes t + (SCV - 1) / 2 jobs by a late time t.
            let completed = 50.0 + (law.scv() - 1.0) / 2.0;
            assert_near("mean jobs", &jobs, 1000.0 + 100.0 - completed, 0.3);
        }
    }
}

#[test]
fn a_hundred_million_servers_follow_the_fluid() {
    // From idle, random routing: every server is an M/M/1 queue; x_1 grows by lambda t at first.
    let settings =
        Settings { replications: 2, sample_times: vec![0.001], ..settings(100_000_000, 0.001, 0.0, 1) };
    let summary = simulate(&one_pool(0.9, Policy::jsq(), None), &settings, &()).unwrap();
    let busy = summary.transient[0].tails[0][0].value;
    assert!((busy - 0.9 * (1.0 - (-0.001f64).exp())).abs() < 5.0 * 3e-6, "{busy}");
}
