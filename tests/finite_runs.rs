//! Are results repeatable, interruptible, and refused when they would mean nothing?

mod finite_support;

use std::sync::atomic::{AtomicU32, Ordering};

use finite_support::{exponential, model, one_pool, settings, value};
use fluidlimit::finite::{Control, FiniteError, Settings, Summary, simulate};
use fluidlimit::model::{Initial, Model, PhaseType, Policy};

fn two_pools() -> Model {
    let coxian = PhaseType::coxian(&[2.0, 0.5], &[0.25]).unwrap();
    model(0.9, Policy::jiq(2), &[(0.5, Some(4), coxian), (0.5, None, exponential(1.5))])
}

fn with_threads(threads: usize, settings: &Settings) -> Summary {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| simulate(&two_pools(), settings, &()).unwrap())
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let settings = Settings {
        replications: 23,
        paths: 3,
        sample_times: vec![1.0, 5.0, 9.0],
        ..settings(30, 10.0, 5.0, 7)
    };
    let one = with_threads(1, &settings);
    assert_eq!((one.paths.len(), one.runs.len()), (3, 23));
    // Values printed with all digits: equal text is equal bits.
    let text = serde_json::to_string(&one).unwrap();
    for threads in [2, 7] {
        assert_eq!(text, serde_json::to_string(&with_threads(threads, &settings)).unwrap());
    }
    let other = Settings { seed: 8, ..settings };
    assert_ne!(text, serde_json::to_string(&with_threads(1, &other)).unwrap());
}

#[test]
fn looking_at_a_path_does_not_change_it() {
    let plain = settings(30, 10.0, 5.0, 7);
    let watched = Settings { sample_times: vec![0.0, 5.0, 7.5, 10.0], ..plain.clone() };
    assert_eq!(with_threads(2, &plain).runs, with_threads(2, &watched).runs);
}

#[test]
fn counts_agree_with_one_another() {
    let settings = Settings { sample_times: vec![50.0], paths: 64, ..settings(30, 50.0, 0.0, 3) };
    for policy in [Policy::pull(), Policy::jsq(), Policy::jsq_d(3, false, true)] {
        let summary = simulate(&Model { policy, ..two_pools() }, &settings, &()).unwrap();
        let all = summary.statistics;
        assert_eq!(all.events, all.arrivals + all.departures + all.phase_changes);
        for (run, path) in summary.runs.iter().zip(&summary.paths) {
            let m = |name: &str| value(&run.measures, name);
            assert!((m("p_idle") + m("p_wait") + m("p_block") - 1.0).abs() < 1e-12);
            let by_pools = m("0.p_idle") + m("1.p_idle");
            assert!((by_pools - m("p_idle")).abs() < 1e-12);
            let tails: f64 = run.tails.iter().flatten().sum();
            assert!((tails - m("mean_jobs")).abs() < 1e-9);
            let done = run.statistics;
            let left = u32::try_from(done.arrivals - done.lost - done.departures).unwrap();
            assert!((path.mean_jobs[0] * 30.0 - f64::from(left)).abs() < 1e-9);
        }
    }
}

/// Stops after some replications.
struct StopAfter(u32, AtomicU32);

impl Control for StopAfter {
    fn finished_replication(&self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }

    fn cancelled(&self) -> bool {
        self.1.load(Ordering::SeqCst) >= self.0
    }
}

#[test]
fn an_interrupted_run_keeps_what_is_finished() {
    let settings = settings(30, 10.0, 5.0, 7);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let control = StopAfter(5, AtomicU32::new(0));
    let some = pool.install(|| simulate(&two_pools(), &settings, &control)).unwrap();
    assert!(some.interrupted && some.replications == 5 && some.runs.len() == 5);
    let all = with_threads(2, &settings);
    assert!(!all.interrupted && all.replications == 64);
    assert_eq!(some.runs, all.runs[..5]);

    let never = StopAfter(0, AtomicU32::new(0));
    assert_eq!(simulate(&two_pools(), &settings, &never), Err(FiniteError::Interrupted));
}

/// Says no once, to the question before the replication.
struct StopInside(AtomicU32);

impl Control for StopInside {
    fn cancelled(&self) -> bool {
        self.0.fetch_add(1, Ordering::SeqCst) > 0
    }
}

#[test]
fn a_run_that_would_last_for_ever_can_be_stopped() {
    let endless = Settings { replications: 1, ..settings(1_000_000, 1e12, 0.0, 1) };
    let control = StopInside(AtomicU32::new(0));
    let stopped = simulate(&one_pool(0.9, Policy::jsq(), None), &endless, &control);
    assert_eq!(stopped, Err(FiniteError::Interrupted));
}

#[test]
fn settings_that_mean_nothing_are_refused() {
    let good = settings(10, 10.0, 5.0, 1);
    let refuse = |model: &Model, settings: Settings| simulate(model, &settings, &()).unwrap_err();
    let model = two_pools();
    let with = |change: fn(&mut Settings)| {
        let mut settings = good.clone();
        change(&mut settings);
        refuse(&model, settings)
    };
    assert_eq!(with(|s| s.n = 0), FiniteError::NoServers);
    assert_eq!(with(|s| s.n = u64::MAX), FiniteError::TooManyServers { n: u64::MAX });
    assert_eq!(with(|s| s.replications = 0), FiniteError::NoReplications);
    assert!(matches!(with(|s| s.horizon = f64::NAN), FiniteError::Horizon { .. }));
    assert!(matches!(with(|s| s.horizon = -1.0), FiniteError::Horizon { .. }));
    assert!(matches!(with(|s| s.horizon = f64::INFINITY), FiniteError::Horizon { .. }));
    assert_eq!(with(|s| s.warmup = 10.0), FiniteError::Warmup { warmup: 10.0, horizon: 10.0 });
    assert!(matches!(with(|s| s.warmup = f64::NAN), FiniteError::Warmup { .. }));
    for times in [vec![-1.0], vec![11.0], vec![f64::NAN], vec![2.0, 1.0]] {
        let bad = Settings { sample_times: times, ..good.clone() };
        assert!(matches!(refuse(&model, bad), FiniteError::SampleTime { .. }));
    }
    let one = Initial::Tails(vec![vec![0.1]]);
    assert_eq!(
        refuse(&model, Settings { initial: one, ..good.clone() }),
        FiniteError::InitialPools { given: 1, pools: 2 }
    );
    for tails in [vec![0.6], vec![0.1, 0.2], vec![f64::NAN], vec![-0.1], vec![0.1; 5]] {
        let initial = Initial::Tails(vec![tails, vec![]]);
        let error = refuse(&model, Settings { initial, ..good.clone() });
        assert!(matches!(error, FiniteError::InitialTail { .. }), "{error}");
    }
    let deep = Settings { initial: Initial::Level(u32::MAX), ..good.clone() };
    assert!(matches!(refuse(&model, deep), FiniteError::InitialLevel { .. }));

    for rate in [-1.0, f64::NAN, f64::INFINITY] {
        let bad = Model { arrival_rate: rate, ..two_pools() };
        assert!(matches!(refuse(&bad, good.clone()), FiniteError::ArrivalRate { .. }));
    }
    let fast = Model { arrival_rate: 1e308, ..two_pools() };
    assert_eq!(refuse(&fast, good.clone()), FiniteError::Rates { n: 10 });
    let none = Model { pools: vec![], ..two_pools() };
    assert_eq!(refuse(&none, good.clone()), FiniteError::Shares { sum: 0.0 });
    let nobody = Model { policy: Policy::jsq_d(0, true, false), ..two_pools() };
    assert_eq!(refuse(&nobody, good.clone()), FiniteError::NoSample);
}
