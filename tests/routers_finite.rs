//! Is the sampler of several routers right? Against a chain that keeps every server and its message
//! apart, and against the fluid at large n.

mod finite_support;

use finite_support::routers::{Chain, pull, systems};
use finite_support::{assert_near, exponential, measured, model, one_pool, settings, tail, value};
use fluidlimit::finite::{Control, FiniteError, Settings, Summary, exact, simulate, simulate_servers};
use fluidlimit::fluid::{FluidError, Plan, fixed_point, integrate};
use fluidlimit::model::{Initial, Message, Model, PhaseType, Policy, Routers, Top, Value};

type Sample = fn(&Model, &Settings, &dyn Control) -> Result<Summary, FiniteError>;

/// Both samplers.
const SAMPLERS: [(&str, Sample); 2] = [("counts", simulate), ("servers", simulate_servers)];

#[test]
fn stationary_measures_are_those_of_the_chain_with_every_message_kept_apart() {
    let mut seed = 100;
    for (lambda, n, pools, speed) in &systems() {
        for message in [Message::Withdraw, Message::Keep] {
            for (streams, messages) in [([0.5, 0.5], [0.5, 0.5]), ([0.7, 0.3], [0.4, 0.6])] {
                seed += 1;
                let mut model = model(*lambda, pull(&streams, &messages, message), pools);
                model.pools.iter_mut().for_each(|p| p.speed.clone_from(speed));
                let chain = Chain::new(&model, *n);
                let law = chain.stationary();
                for (sampler, sample) in SAMPLERS {
                    let runs = sample(&model, &settings(*n, 800.0, 50.0, seed), &()).unwrap().runs;
                    let title = format!("{sampler}, {message:?}, {streams:?}, {messages:?}, {pools:?}");
                    for (name, exact) in chain.measures(&law) {
                        assert_near(&format!("{name} of {title}"), &measured(&runs, name), exact, 0.02);
                    }
                    for (j, pool) in pools.iter().enumerate() {
                        for k in 1..=pool.1.unwrap() {
                            let what = format!("x_{k} of pool {j}, {title}");
                            let exact = chain.tail(&law, j, k);
                            assert_near(&what, &tail(&runs, j, k as usize), exact, 0.01);
                        }
                    }
                }
            }
        }
    }
}

/// Three routers, five servers of two pools, some busy at time 0 and messages where the start says: both
/// samplers and the exact chain on the way to rest.
#[test]
fn transients_from_a_start_with_messages_agree() {
    const N: u64 = 5;
    let pools = [(0.6, Some(3), exponential(1.0)), (0.4, Some(2), PhaseType::erlang(2, 3.0).unwrap())];
    let start = Initial::Messages {
        tails: vec![vec![0.2, 0.2], vec![]],
        idle: vec![vec![0.0, 0.2, 0.2], vec![0.2, 0.0, 0.2]],
    };
    let times = vec![0.0, 0.3, 1.0, 3.0];
    for message in [Message::Withdraw, Message::Keep] {
        let model = model(0.9, pull(&[0.5, 0.3, 0.2], &[0.2, 0.3, 0.5], message), &pools);
        let exact = exact(&model, N, &start, &times, &|_| ()).unwrap();
        for (sampler, sample) in SAMPLERS {
            let mut settings = settings(N, 3.0, 0.5, 11);
            settings.replications = 10_000;
            settings.paths = settings.replications;
            settings.sample_times.clone_from(&times);
            settings.initial = start.clone();
            let paths = sample(&model, &settings, &()).unwrap().paths;
            for (i, point) in exact.transient.iter().enumerate() {
                let title = format!("at {} by {sampler}, {message:?}", point.time);
                for (r, &wanted) in point.messages.iter().enumerate() {
                    let found: Vec<f64> = paths.iter().map(|p| p.messages[i][r]).collect();
                    assert_near(&format!("messages at router {r} {title}"), &found, wanted, 0.01);
                }
                for (j, tails) in point.tails.iter().enumerate() {
                    for (k, &wanted) in tails.iter().enumerate() {
                        let at = |x: &Vec<f64>| x.get(k).copied().unwrap_or(0.0);
                        let found: Vec<f64> = paths.iter().map(|p| at(&p.tails[i][j])).collect();
                        assert_near(&format!("x_{} of pool {j} {title}", k + 1), &found, wanted, 0.01);
                    }
                }
            }
        }
    }
}

/// The fluid and n = 10,000 agree at times away from events: within 4 standard errors and 10 / n for
/// the bias of coordinates that the fluid keeps at zero.
fn agree(model: &Model, initial: &Initial, times: &[f64]) {
    const N: u64 = 10_000;
    const REPLICATIONS: u32 = 40;
    /// Student's t quantile for 95 % and 39 degrees of freedom.
    const T: f64 = 2.0227;
    let plan =
        Plan { initial: initial.clone(), times: times.to_vec(), tolerance: 1e-9, cut: Top::Reflecting };
    let fluid = integrate(model, &plan).unwrap();
    let settings = Settings {
        n: N,
        replications: REPLICATIONS,
        horizon: times.iter().copied().fold(0.0, f64::max),
        warmup: 0.0,
        seed: 77,
        initial: initial.clone(),
        sample_times: times.to_vec(),
        levels: 30,
        paths: 0,
    };
    let finite = simulate(model, &settings, &()).unwrap();
    let near = |fluid: f64, seen: Value, what: String| {
        let bound = 4.0 * seen.half_width.unwrap() / T + 10.0 / 1e4;
        assert!(
            bound < 0.02 && (fluid - seen.value).abs() <= bound,
            "{what}: fluid {fluid}, finite {seen:?}"
        );
    };
    for (a, b) in fluid.snapshots.iter().zip(&finite.transient) {
        for (j, (x, seen)) in a.tails.iter().zip(&b.tails).enumerate() {
            for k in 0..x.len().max(seen.len()).min(30) {
                let none = Value { value: 0.0, half_width: Some(0.0) };
                let seen = seen.get(k).copied().unwrap_or(none);
                near(
                    x.get(k).copied().unwrap_or(0.0),
                    seen,
                    format!("x_{} of pool {j} at {}", k + 1, a.time),
                );
            }
        }
        assert_eq!(a.messages.len(), b.messages.len());
        for (r, (z, seen)) in a.messages.iter().zip(&b.messages).enumerate() {
            near(*z, *seen, format!("messages at router {r} at {}", a.time));
        }
    }
}

#[test]
fn large_systems_of_unequal_routers_follow_the_fluid() {
    let third = [1.0 / 3.0; 3];
    for message in [Message::Withdraw, Message::Keep] {
        // Events at 1.14, and at 0.79 and 4.38.
        let two = one_pool(0.8, pull(&[0.75, 0.25], &[0.5, 0.5], message), None);
        agree(&two, &Initial::Idle, &[0.6, 3.0, 5.0, 8.0]);
        let pools = [(0.5, Some(4), exponential(1.5)), (0.5, Some(3), exponential(0.5))];
        let three = model(0.8, pull(&[0.625, 0.25, 0.125], &third, message), &pools);
        agree(&three, &Initial::Idle, &[0.4, 2.0, 3.0, 8.0]);
    }
}

/// Before the empty router comes near its boundary the start shows: all messages at the other one.
#[test]
fn a_start_with_all_messages_at_one_router_is_the_same_on_both_sides() {
    let start = Initial::Messages { tails: vec![vec![]], idle: vec![vec![1.0, 0.0]] };
    for message in [Message::Withdraw, Message::Keep] {
        agree(&one_pool(0.8, pull(&[0.5; 2], &[0.5; 2], message), None), &start, &[0.5, 1.0, 2.0]);
    }
}

/// Equal routers at n = 200: a router is out of messages with a probability of order 1 / n. Simulated by
/// a server-level program outside this one: 0.02098 +- 0.0001.
#[test]
fn equal_routers_let_few_jobs_wait() {
    let model = one_pool(0.8, pull(&[0.5; 2], &[0.5; 2], Message::Withdraw), None);
    let settings = Settings { replications: 200, ..settings(200, 3000.0, 500.0, 9) };
    let summary = simulate(&model, &settings, &()).unwrap();
    let p_wait = summary.measures.p_wait.unwrap();
    let error = p_wait.half_width.unwrap() / 1.972;
    assert!(error < 1.5e-4, "{p_wait:?}");
    assert!((p_wait.value - 0.02098).abs() < 4.0 * error.hypot(0.5e-4), "{p_wait:?}");
    assert!((value(&summary.measures, "p_idle") + p_wait.value - 1.0).abs() < 1e-12);
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let model = one_pool(0.9, pull(&[0.6, 0.4], &[0.5, 0.5], Message::Keep), Some(6));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| simulate(&model, &settings(50, 30.0, 5.0, 3), &()).unwrap())
    };
    assert_eq!(run(1), run(3));
}

/// Routers that are alike act as one, whatever the service; each of them holds its share of the messages.
#[test]
fn large_systems_of_equal_routers_with_phases_and_speeds_follow_the_fluid() {
    let coxian = PhaseType::coxian(&[2.8, 2.8 / 1.5, 2.8 / 3.0], &[0.6, 0.5]).unwrap();
    let pools = [(0.5, Some(4), coxian), (0.5, Some(3), PhaseType::erlang(2, 2.0).unwrap())];
    for message in [Message::Withdraw, Message::Keep] {
        let shares = [0.5, 0.3, 0.2];
        let mut system = model(0.8, pull(&shares, &shares, message), &pools);
        system.pools[0].speed = vec![0.8, 1.2];
        agree(&system, &Initial::Idle, &[0.4, 2.0, 8.0]);
        let one = Model { policy: Policy::pull(), ..system.clone() };
        assert_eq!(fixed_point(&system).unwrap().tails, fixed_point(&one).unwrap().tails);
    }
}

/// Which router is told when one of several slots becomes free is not defined; the limit of unequal routers
/// is known for exponential service at speed 1.
#[test]
fn several_slots_are_refused_and_other_service_of_unequal_routers_by_the_fluid() {
    let plan = Plan { initial: Initial::Idle, times: vec![1.0], tolerance: 1e-9, cut: Top::Reflecting };
    let refused = |model: &Model, error: Option<FluidError>| {
        assert_eq!(integrate(model, &plan).err(), error);
        assert_eq!(fixed_point(model).err(), error);
    };
    let unequal = pull(&[0.7, 0.3], &[0.5, 0.5], Message::Withdraw);
    let erlang = PhaseType::erlang(2, 2.0).unwrap();
    let phases = model(0.8, unequal.clone(), &[(1.0, None, erlang)]);
    let mut fast = one_pool(0.8, unequal, None);
    fast.pools[0].speed = vec![2.0];
    for model in [phases, fast] {
        refused(&model, Some(FluidError::PhasesWithRouters));
        assert!(simulate(&model, &settings(10, 1.0, 0.0, 1), &()).is_ok());
    }
    let mut slots = one_pool(0.8, Policy::pull_by(Routers::equal(2)), None);
    slots.pools[0].slots = 2;
    refused(&slots, Some(FluidError::SlotsWithRouters));
    for (_, sample) in SAMPLERS {
        let error = sample(&slots, &settings(10, 1.0, 0.0, 1), &()).err();
        assert_eq!(error, Some(FiniteError::SlotsWithRouters));
    }
}
