//! Does the sampler of servers draw from the process that the policy describes, and are the times of its
//! jobs those of queueing theory? Three readings are compared: counts, servers, exact.

mod finite_support;

use finite_support::chain::{Chain, policies, systems};
use finite_support::{
    assert_near, assert_within, exponential, measured, model, one_pool, settings, tail, value,
};
use fluidlimit::finite::{
    Control, FiniteError, Replication, Settings, Summary, exact, simulate, simulate_servers,
};
use fluidlimit::model::{Durations, Initial, Model, PhaseType, Policy};

type Sample = fn(&Model, &Settings, &dyn Control) -> Result<Summary, FiniteError>;

/// A hyperexponential law with mean 1 and squared coefficient of variation 4, its two branches bringing
/// equally much work.
fn hyperexponential() -> PhaseType {
    let p = 0.5 * (1.0 + 0.6f64.sqrt());
    PhaseType::hyperexponential(&[p, 1.0 - p], &[2.0 * p, 2.0 * (1.0 - p)]).unwrap()
}

/// One number of the job times of every replication.
fn times(runs: &[Replication], of: impl Fn(&Replication) -> Option<f64>) -> Vec<f64> {
    runs.iter().filter_map(of).collect()
}

fn waiting(name: &'static str) -> impl Fn(&Replication) -> Option<f64> {
    move |run| run.job_times.as_ref()?.waiting_time.get(name).map(|v| v.value)
}

fn response(name: &'static str) -> impl Fn(&Replication) -> Option<f64> {
    move |run| run.job_times.as_ref()?.response_time.get(name).map(|v| v.value)
}

#[test]
fn counts_servers_and_the_exact_chain_agree_for_every_law_and_policy() {
    let laws = [
        exponential(1.0),
        PhaseType::erlang(3, 3.0).unwrap(),
        hyperexponential(),
        PhaseType::coxian(&[2.8, 2.8 / 1.5, 2.8 / 3.0], &[0.6, 0.5]).unwrap(),
    ];
    // Four standard errors.
    let agree =
        |what: &str, found: &[f64], exact, resolution| assert_within(4.0, what, found, exact, resolution);
    let mut seed = 100;
    for law in &laws {
        for (n, buffer) in [(2, 3), (3, 2)] {
            // The policies that name two pools have rows of their own below.
            for policy in policies().into_iter().filter(|p| p.name != "fastest-idle-first") {
                seed += 1;
                let model = model(0.9, policy, &[(1.0, Some(buffer), law.clone())]);
                let exact = exact(&model, n, &Initial::Idle, &[], &|_| ()).unwrap();
                for (title, sample) in [("counts", simulate as Sample), ("servers", simulate_servers)] {
                    let runs = sample(&model, &settings(n, 1020.0, 20.0, seed), &()).unwrap().runs;
                    let what = format!("{title}, n = {n}, {}, SCV {:.2}", model.policy.label(), law.scv());
                    for name in
                        ["p_idle", "p_block", "mean_jobs", "waiting_time", "throughput", "utilisation"]
                    {
                        let wanted = value(&exact.measures, name);
                        agree(&format!("{name} of {what}"), &measured(&runs, name), wanted, 0.05);
                    }
                    let wanted = value(&exact.measures, "messages_per_job");
                    agree(&what, &measured(&runs, "messages_per_job"), wanted, 0.05);
                    for (k, &wanted) in (1..).zip(&exact.tails[0]) {
                        agree(&format!("x_{k} of {what}"), &tail(&runs, 0, k), wanted, 0.01);
                    }
                    if title == "servers" {
                        // What single jobs saw, against Little's law on the exact means.
                        for (name, found) in [
                            ("waiting_time", times(&runs, waiting("mean"))),
                            ("response_time", times(&runs, response("mean"))),
                        ] {
                            let wanted = value(&exact.measures, name);
                            agree(&format!("{name} of jobs, {what}"), &found, wanted, 0.05);
                        }
                    }
                }
            }
        }
    }
}

/// Speeds that depend on the level, and messages for free slots: three readings again, jobs one by one.
#[test]
fn slots_and_speeds_are_read_alike() {
    let law = |scv: f64| if scv < 1.0 { PhaseType::erlang(2, 2.0).unwrap() } else { exponential(1.0) };
    let mut seed = 500;
    for scv in [1.0, 0.5] {
        for n in [2, 3] {
            for slots in [true, false] {
                seed += 1;
                let policy =
                    if slots { Policy::pull_with_slots(vec![3, 2]) } else { Policy::jsq_d(2, true, false) };
                let pools = [(0.4, Some(4), law(scv)), (0.6, Some(2), law(scv))];
                let mut model = model(1.3, policy, &pools);
                model.pools[0].speed = vec![0.5, 1.0, 1.5];
                model.pools[1].speed = vec![1.0, 1.6];
                if slots {
                    (model.pools[0].slots, model.pools[1].slots) = (3, 2);
                }
                let exact = exact(&model, n, &Initial::Idle, &[], &|_| ()).unwrap();
                for (title, sample) in [("counts", simulate as Sample), ("servers", simulate_servers)] {
                    let runs = sample(&model, &settings(n, 1020.0, 20.0, seed), &()).unwrap().runs;
                    let what = format!("{title}, n = {n}, {}, slots {slots}", model.policy.label());
                    for name in
                        ["p_idle", "p_wait", "p_block", "mean_jobs", "waiting_time", "messages_per_job"]
                    {
                        let wanted = value(&exact.measures, name);
                        assert_within(
                            4.0,
                            &format!("{name} of {what}"),
                            &measured(&runs, name),
                            wanted,
                            0.05,
                        );
                    }
                    if title == "servers" {
                        let wanted = value(&exact.measures, "waiting_time");
                        assert_within(4.0, &what, &times(&runs, waiting("mean")), wanted, 0.05);
                    }
                }
            }
        }
    }
}

#[test]
fn two_pools_match_the_chain_with_every_server_kept_apart() {
    let mut seed = 0;
    for (arrival_rate, n, pools) in systems().into_iter().filter(|s| s.2.len() > 1) {
        for policy in policies() {
            seed += 1;
            let model = model(arrival_rate, policy, &pools);
            let chain = Chain::new(&model, n);
            let law = chain.stationary();
            let runs = simulate_servers(&model, &settings(n, 620.0, 20.0, seed), &()).unwrap().runs;
            let title = format!("{:?}, {pools:?}", model.policy);
            for (name, exact) in chain.measures(&law) {
                assert_near(&format!("{name} of {title}"), &measured(&runs, &name), exact, 0.05);
            }
            for (j, pool) in pools.iter().enumerate() {
                for k in 1..=pool.1.unwrap() {
                    let exact = chain.tail(&law, j, k);
                    assert_near(&format!("x_{k} of {j}, {title}"), &tail(&runs, j, k as usize), exact, 0.01);
                }
                // Jobs that were followed, pool by pool.
                let accepted = chain.measures(&law)[&format!("{j}.p_idle")];
                if accepted > 0.01 {
                    let found = times(&runs, |run| {
                        run.job_times.as_ref()?.pools[j].response_time.mean.map(|v| v.value)
                    });
                    let exact = chain.measures(&law)[&format!("{j}.response_time")];
                    assert_near(&format!("response of {j}, {title}"), &found, exact, 0.1);
                }
            }
        }
    }
}

#[test]
fn transient_means_are_exact_from_any_start() {
    let law = hyperexponential();
    let pools = [(0.5, Some(3), law), (0.5, Some(2), exponential(2.0))];
    let sample_times = vec![0.0, 0.5, 2.0];
    for (seed, policy) in (0..).zip([Policy::jsq_d(2, false, false), Policy::pull(), Policy::jsq()]) {
        for initial in [Initial::Idle, Initial::Level(2), Initial::Tails(vec![vec![0.5, 0.25], vec![0.25]])] {
            let model = model(1.0, policy.clone(), &pools);
            let exact = exact(&model, 4, &initial, &sample_times, &|_| ()).unwrap();
            let settings = Settings {
                replications: 4000,
                paths: 4000,
                initial: initial.clone(),
                sample_times: sample_times.clone(),
                ..settings(4, 2.0, 0.5, seed)
            };
            for sample in [simulate as Sample, simulate_servers] {
                let paths = sample(&model, &settings, &()).unwrap().paths;
                for (i, snapshot) in exact.transient.iter().enumerate() {
                    for (j, tails) in snapshot.tails.iter().enumerate() {
                        // Rarer states are seen too seldom to have a standard error.
                        for (k, &wanted) in
                            tails.iter().enumerate().filter(|(_, x)| **x == 0.0 || **x > 0.002)
                        {
                            let found: Vec<f64> =
                                paths.iter().map(|p| p.tails[i][j].get(k).copied().unwrap_or(0.0)).collect();
                            let what =
                                format!("x_{} of pool {j}, {:?} from {initial:?}", k + 1, model.policy);
                            assert_near(&what, &found, wanted, 0.01);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn waits_under_random_routing_are_those_of_mm1() {
    let rho = 0.7f64;
    let rate = 1.0 - rho;
    let settings = Settings { replications: 32, ..settings(20, 5100.0, 100.0, 3) };
    let runs = simulate_servers(&one_pool(rho, Policy::random(), None), &settings, &()).unwrap().runs;
    // A wait exceeds t with probability rho exp(-(1 - rho) t), a response time with exp(-(1 - rho) t).
    let quantile = |p: f64, weight: f64| ((weight / (1.0 - p)).ln() / rate).max(0.0);
    for (name, p) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
        let resolution = if p > 0.99 { 0.5 } else { 0.2 };
        let found = times(&runs, waiting(name));
        assert_eq!(found.len(), 32);
        assert_near(&format!("waiting {name}"), &found, quantile(p, rho), resolution);
        assert_near(&format!("response {name}"), &times(&runs, response(name)), quantile(p, 1.0), resolution);
    }
    assert_near("waiting mean", &times(&runs, waiting("mean")), rho / rate, 0.02);
    assert_near("response mean", &times(&runs, response("mean")), 1.0 / rate, 0.02);
}

#[test]
fn waits_are_those_of_pollaczek_and_khinchine() {
    let rho = 0.6;
    for (seed, law) in (0..).zip([PhaseType::erlang(3, 3.0).unwrap(), hyperexponential()]) {
        let model = model(rho, Policy::random(), &[(1.0, None, law.clone())]);
        let runs = simulate_servers(&model, &settings(10, 4050.0, 50.0, seed), &()).unwrap().runs;
        let wait = rho * (1.0 + law.scv()) / 2.0 / (1.0 - rho);
        assert_near("waiting", &times(&runs, waiting("mean")), wait, 0.05);
        assert_near("response", &times(&runs, response("mean")), wait + 1.0, 0.05);
    }
}

#[test]
fn pull_without_waiting_room_is_erlangs_loss_system() {
    let (n, load) = (20u32, 18.0);
    let erlang = (1..=n).fold(1.0, |b, k| load * b / (f64::from(k) + load * b));
    let model = model(load / f64::from(n), Policy::pull(), &[(1.0, Some(1), hyperexponential())]);
    let summary = simulate_servers(&model, &settings(n.into(), 300.0, 30.0, 5), &()).unwrap();
    assert_near("p_block", &measured(&summary.runs, "p_block"), erlang, 0.003);
    // Accepted jobs never wait, whatever the law.
    let wait = summary.job_times.unwrap().waiting_time;
    assert!(Durations::NAMES.iter().filter_map(|name| wait.get(name)).all(|v| v.value == 0.0));
}

#[test]
fn jobs_still_there_at_the_horizon_are_followed_to_their_ends() {
    // Eight time units of a service of mean 10: most jobs outlive the horizon, yet the mean is right.
    let model = model(0.4, Policy::pull(), &[(1.0, Some(1), exponential(0.1))]);
    let settings = Settings { replications: 400, ..settings(50, 10.0, 2.0, 9) };
    let summary = simulate_servers(&model, &settings, &()).unwrap();
    assert_near("response", &times(&summary.runs, response("mean")), 10.0, 0.1);
    // All that were accepted in the time measured, and no others.
    let accepted: f64 = summary
        .runs
        .iter()
        .map(|run| {
            run.measures.mean_jobs.unwrap().value / run.measures.response_time.unwrap().value * 8.0 * 50.0
        })
        .sum();
    assert!((accepted - summary.job_times.unwrap().jobs.unwrap() as f64).abs() < 1e-6 * accepted);
}

#[test]
fn little_s_law_holds_between_the_books_and_the_stop_watches() {
    let pools = [(0.5, Some(5), hyperexponential()), (0.5, None, exponential(2.0))];
    let summary =
        simulate_servers(&model(1.2, Policy::jiq(2), &pools), &settings(20, 2000.0, 100.0, 1), &()).unwrap();
    let times = summary.job_times.unwrap();
    for (j, pool) in times.pools.iter().enumerate() {
        for (name, jobs) in [("waiting_time", &pool.waiting_time), ("response_time", &pool.response_time)] {
            let books = value(&summary.measures, &format!("{j}.{name}"));
            let watches = jobs.mean.unwrap().value;
            // They differ by the jobs that cross the ends of the 1900 time units.
            assert!((watches / books - 1.0).abs() < 2e-3, "{name} of pool {j}: {watches} against {books}");
        }
    }
    assert_eq!(times.jobs, times.pools.iter().map(|p| p.jobs).sum::<Option<u64>>());
}

#[test]
fn looking_at_a_path_does_not_change_it_and_cancelling_stops_it() {
    let model =
        model(0.9, Policy::jiq(2), &[(0.5, Some(4), hyperexponential()), (0.5, None, exponential(1.5))]);
    let plain = settings(30, 10.0, 5.0, 7);
    let watched = Settings { sample_times: vec![0.0, 5.0, 7.5, 10.0], paths: 64, ..plain.clone() };
    let summary = simulate_servers(&model, &watched, &()).unwrap();
    assert_eq!(simulate_servers(&model, &plain, &()).unwrap().runs, summary.runs);
    for (run, path) in summary.runs.iter().zip(&summary.paths) {
        let done = run.statistics;
        assert_eq!(done.events, done.arrivals + done.departures + done.phase_changes);
        let left = u32::try_from(done.arrivals - done.lost - done.departures).unwrap();
        assert!((path.mean_jobs[3] * 30.0 - f64::from(left)).abs() < 1e-9);
        let levels: f64 = run.levels.iter().map(|l| l.iter().sum::<f64>()).sum();
        let tails: f64 = run.tails.iter().flatten().sum();
        assert!((levels - 2.0).abs() < 1e-9 && (tails - value(&run.measures, "mean_jobs")).abs() < 1e-9);
    }
    struct Never;
    impl Control for Never {
        fn cancelled(&self) -> bool {
            true
        }
    }
    assert_eq!(simulate_servers(&model, &plain, &Never), Err(FiniteError::Interrupted));
}

#[test]
fn more_memory_than_the_bound_is_refused_at_once_or_when_it_is_reached() {
    let model = one_pool(0.9, Policy::pull(), None);
    let many = simulate_servers(&model, &settings(100_000_000, 1.0, 0.0, 1), &()).unwrap_err();
    assert!(matches!(many, FiniteError::Memory { n: 100_000_000, jobs: 0, .. }), "{many}");
    let deep = Settings { initial: Initial::Level(1_000_000), ..settings(100, 1.0, 0.0, 1) };
    assert!(matches!(simulate_servers(&model, &deep, &()), Err(FiniteError::Memory { .. })));
}

#[test]
fn without_arrivals_no_job_is_measured() {
    let started = Settings { initial: Initial::Level(3), ..settings(7, 3.0, 1.0, 1) };
    let summary = simulate_servers(&one_pool(0.0, Policy::pull(), None), &started, &()).unwrap();
    let times = summary.job_times.unwrap();
    assert_eq!((times.jobs, times.response_time.mean, times.waiting_time.p50), (Some(0), None, None));
    assert_eq!(summary.measures.p_idle, None);
}

/// A start that says in which phase the jobs in service are: three readings of its transient.
#[test]
fn a_start_by_phases_is_read_alike() {
    let law = PhaseType::erlang(2, 2.0).unwrap();
    let model = model(0.7, Policy::jiq(2), &[(1.0, Some(3), law)]);
    // A third of the servers in each of: two jobs, the first in phase 2; one job in phase 1; idle.
    let initial = Initial::PhaseTails(vec![vec![vec![1.0 / 3.0, 1.0 / 3.0], vec![0.0, 1.0 / 3.0]]]);
    let times = [0.0, 0.3, 1.0];
    let exact = exact(&model, 3, &initial, &times, &|_| ()).unwrap();
    assert!((exact.transient[0].mean_jobs - 1.0).abs() < 1e-12);
    for (title, sample) in [("counts", simulate as Sample), ("servers", simulate_servers)] {
        let settings = Settings {
            initial: initial.clone(),
            sample_times: times.to_vec(),
            replications: 20_000,
            ..settings(3, 1.0, 0.0, 9)
        };
        let seen = sample(&model, &settings, &()).unwrap().transient;
        for (a, b) in exact.transient.iter().zip(&seen) {
            let error = b.mean_jobs.half_width.unwrap() / 1.96;
            let off = (a.mean_jobs - b.mean_jobs.value).abs();
            assert!(off <= 4.0 * error + 1e-12, "{title} at {}: off by {off}, error {error}", a.time);
        }
    }
}
