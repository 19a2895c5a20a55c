//! Servers whose speed depends on how many jobs they hold, and generalised PULL with a message for each
//! free slot (Stolyar 2015, section 6.1). Against values computed outside this program, closed forms, and
//! the sampler. Bounds: 1e-12 for fixed points, 1e-9 for paths.

mod common;

use common::{close, number, numbers, oracles, system};
use fluidlimit::finite::{self, Settings};
use fluidlimit::fluid::{FixedPoint, Plan, fixed_point, integrate};
use fluidlimit::model::{Initial, Model, PhaseType, Policy, Pool, Top, Value};

fn pool(name: &str, share: f64, buffer: Option<u32>, speed: &[f64], slots: u32) -> Pool {
    let law = PhaseType::exponential(1.0).unwrap();
    Pool { speed: speed.to_vec(), slots, ..Pool::new(name, share, buffer, law) }
}

fn slots(arrival_rate: f64, pools: Vec<Pool>) -> Model {
    let slots = pools.iter().map(|p| p.slots).collect();
    system(arrival_rate, pools, Policy::pull_with_slots(slots))
}

/// Cases P8 and P8b.
fn paper(lambda: f64, buffers: [Option<u32>; 2]) -> Model {
    let pools =
        vec![pool("a", 0.4, buffers[0], &[0.5, 1.0, 1.5], 3), pool("b", 0.6, buffers[1], &[1.0, 1.6], 2)];
    slots(lambda, pools)
}

fn value(v: Option<Value>) -> f64 {
    v.unwrap().value
}

/// Servers with exactly k jobs.
fn exactly(tails: &[f64], idle: f64, k: usize) -> f64 {
    let tail = |k: usize| tails.get(k - 1).copied().unwrap_or(0.0);
    if k == 0 { idle } else { tail(k) - tail(k + 1) }
}

fn compare_levels(x: &FixedPoint, expected: &serde_json::Value, from: usize, bound: f64) {
    for (j, pool) in expected.as_array().unwrap().iter().enumerate() {
        for (i, y) in numbers(pool).into_iter().enumerate() {
            close(
                exactly(&x.tails[j], x.idle[j], from + i),
                y,
                bound,
                &format!("y_{} of pool {j}", from + i),
            );
        }
    }
}

#[test]
fn below_capacity_jobs_find_free_slots() {
    let p8 = &oracles()["P8_multislot_sec61"];
    for buffers in [[None, None], [Some(3), Some(2)], [Some(9), None]] {
        let x = fixed_point(&paper(1.1, buffers)).unwrap();
        assert!(x.residual < 1e-14, "{:e}", x.residual);
        compare_levels(&x, &p8["fixed_point"]["y_kj"], 0, 1e-12);
        close(value(x.measures.p_idle), 1.0, 1e-12, "p_idle");
        close(value(x.measures.messages_per_job), 1.0, 1e-12, "messages");
        close(value(x.measures.waiting_time), 0.0, 1e-12, "waiting time");
        for (pool, jobs) in x.measures.pools.iter().zip(numbers(&p8["fixed_point"]["mean_jobs_per_server"])) {
            close(value(pool.mean_jobs), jobs, 1e-11, "mean jobs");
        }
    }
}

#[test]
fn the_path_from_idle() {
    let p8 = &oracles()["P8_multislot_sec61"]["transient"];
    let mut points: Vec<(f64, &serde_json::Value)> =
        p8.as_object().unwrap().iter().map(|(t, point)| (t.parse().unwrap(), point)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let times = points.iter().map(|p| p.0).collect();
    let plan = Plan { initial: Initial::Idle, times, tolerance: 1e-11, cut: Top::Reflecting };
    let path = integrate(&paper(1.1, [None, None]), &plan).unwrap();
    assert!(path.events.is_empty() && path.lowest >= -1e-14 && path.mass_defect < 1e-12);
    for (s, (t, point)) in path.snapshots.iter().zip(points) {
        for (j, name) in ["y_k1", "y_k2"].into_iter().enumerate() {
            for (k, y) in numbers(&point[name]).into_iter().enumerate() {
                close(exactly(&s.tails[j], s.idle[j], k), y, 1e-9, &format!("{name}, level {k} at {t}"));
            }
        }
    }
}

#[test]
fn above_capacity_queues_form_over_full_slots() {
    let p8b = &oracles()["P8b_multislot_overload"]["fixed_point"];
    let x = fixed_point(&paper(1.8, [Some(5), Some(4)])).unwrap();
    close(value(x.measures.p_block), number(&p8b["blocking_prob"]), 1e-12, "blocking");
    close(value(x.measures.p_idle), number(&p8b["D"]) / 1.8, 1e-12, "a free slot");
    for (j, key) in p8b["y_from_k_eq_slots"].as_array().unwrap().iter().enumerate() {
        let first = [3, 2][j];
        for (i, y) in numbers(key).into_iter().enumerate() {
            close(exactly(&x.tails[j], x.idle[j], first + i), y, 1e-12, "level");
        }
    }
    // With endless buffers the pools whose full speed is below the rate of overflow grow.
    let x = fixed_point(&paper(1.8, [None, None])).unwrap();
    close(value(x.measures.growth), 1.8 - 0.4 * 1.5 - 0.6 * 1.6, 1e-12, "growth");
}

/// Speed k at level k makes a server b servers of speed 1: the levels are binomial.
#[test]
fn as_many_servers_as_slots() {
    let (b, lambda) = (4_u32, 2.6);
    let x = fixed_point(&slots(lambda, vec![pool("a", 1.0, None, &[1.0, 2.0, 3.0, 4.0], b)])).unwrap();
    let p = lambda / f64::from(b);
    let binomial = |k: u32| {
        let choose: f64 = (0..k).map(|i| f64::from(b - i) / f64::from(i + 1)).product();
        choose * p.powi(k as i32) * (1.0 - p).powi((b - k) as i32)
    };
    for k in 0..=b {
        close(exactly(&x.tails[0], x.idle[0], k as usize), binomial(k), 1e-12, &format!("level {k}"));
    }
}

/// One slot and constant speed is PULL; constant speed 2 is service twice as fast.
#[test]
fn special_cases_are_the_plain_model() {
    let plain = |rate: f64| Pool::new("a", 1.0, Some(3), PhaseType::exponential(rate).unwrap());
    let start = Initial::Level(2);
    let tails = |model: &Model| {
        let plan =
            Plan { initial: start.clone(), times: vec![0.5, 3.0], tolerance: 1e-11, cut: Top::Reflecting };
        integrate(model, &plan)
            .unwrap()
            .snapshots
            .into_iter()
            .flat_map(|s| s.tails)
            .flatten()
            .collect::<Vec<_>>()
    };
    for policy in [Policy::pull(), Policy::jsq_d(2, true, false), Policy::jsq(), Policy::threshold(2)] {
        let reference = tails(&system(1.3, vec![plain(2.0)], policy.clone()));
        for speed in [vec![2.0], vec![2.0, 2.0, 2.0]] {
            let fast = Pool { speed, ..plain(1.0) };
            for (a, b) in reference.iter().zip(tails(&system(1.3, vec![fast], policy.clone()))) {
                close(*a, b, 1e-10, &policy.name);
            }
        }
    }
    let one = tails(&system(1.3, vec![plain(2.0)], Policy::pull_with_slots(vec![1])));
    assert_eq!(one, tails(&system(1.3, vec![plain(2.0)], Policy::pull())));
}

/// Random routing leaves birth-death chains, whose law at rest is a product.
#[test]
fn speeds_under_random_routing() {
    let speed = [0.7, 1.1, 1.9];
    for buffer in [Some(2), Some(6), None] {
        let x = fixed_point(&system(0.9, vec![pool("a", 1.0, buffer, &speed, 1)], Policy::random())).unwrap();
        let top = buffer.unwrap_or(200);
        let mut weights = vec![1.0];
        for k in 1..=top as usize {
            weights.push(weights[k - 1] * 0.9 / speed[k.min(3) - 1]);
        }
        let total: f64 = weights.iter().sum();
        for (k, w) in weights.iter().enumerate().take(40) {
            close(exactly(&x.tails[0], x.idle[0], k), w / total, 1e-12, &format!("{buffer:?}, level {k}"));
        }
    }
}

/// The sampler and the fluid at n = 10,000: paths that slide, from long queues, over and under capacity,
/// with and without phases. 5 standard errors of 20 replications, and 10 / n for the bias.
#[test]
fn the_sampler_agrees_with_the_fluid() {
    const N: u64 = 10_000;
    let erlang = PhaseType::erlang(2, 2.0).unwrap();
    let speeds = |law: &PhaseType| {
        vec![
            Pool { speed: vec![0.5, 1.0, 1.5], slots: 3, ..Pool::new("a", 0.4, Some(5), law.clone()) },
            Pool { speed: vec![1.0, 1.6], slots: 2, ..Pool::new("b", 0.6, None, law.clone()) },
        ]
    };
    let one_slot = |pools: Vec<Pool>| pools.into_iter().map(|p| Pool { slots: 1, ..p }).collect::<Vec<_>>();
    let mut compared = 0;
    for law in [PhaseType::exponential(1.0).unwrap(), erlang] {
        for lambda in [1.1, 1.8] {
            let systems = [
                slots(lambda, speeds(&law)),
                system(lambda, one_slot(speeds(&law)), Policy::jsq_d(2, true, false)),
                system(lambda, one_slot(speeds(&law)), Policy::jsq()),
                system(lambda, one_slot(speeds(&law)), Policy::pull()),
            ];
            for (system, initial) in systems.iter().flat_map(|s| [(s, Initial::Idle), (s, Initial::Level(4))])
            {
                let times = vec![0.7, 2.0, 5.0];
                let plan = Plan {
                    initial: initial.clone(),
                    times: times.clone(),
                    tolerance: 1e-8,
                    cut: Top::Reflecting,
                };
                let path = integrate(system, &plan).unwrap();
                let settings = Settings {
                    n: N,
                    replications: 20,
                    horizon: 5.0,
                    warmup: 0.0,
                    seed: 3,
                    initial: initial.clone(),
                    sample_times: times,
                    levels: 40,
                    paths: 0,
                };
                let runs = finite::simulate(system, &settings, &()).unwrap();
                for (a, b) in path.snapshots.iter().zip(&runs.transient) {
                    // Right after an event the bias is of a larger order.
                    if path.events.iter().any(|e| (-0.4..1.0).contains(&(a.time - e.time))) {
                        continue;
                    }
                    for (j, (fluid, seen)) in a.tails.iter().zip(&b.tails).enumerate() {
                        for (k, (x, seen)) in fluid.iter().zip(seen).enumerate() {
                            let error = seen.half_width.unwrap() / 2.093;
                            let bound = 5.0 * error + 10.0 / N as f64;
                            close(
                                *x,
                                seen.value,
                                bound,
                                &format!(
                                    "{} {lambda} {initial:?} x_{} of pool {j} at {}",
                                    system.policy.name,
                                    k + 1,
                                    a.time
                                ),
                            );
                            compared += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(compared > 300, "only {compared} values were far from events");
}
