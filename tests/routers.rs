//! Pull with several routers: is the fluid right, does it agree with finite n, and do routers that do
//! nothing of their own change nothing? Outside numbers: tests/oracles/README.md.

mod common;

use common::{close, model, number, numbers, oracles};
use fluidlimit::fluid::{EventKind, Path, Plan, Snapshot, Split, fixed_point, integrate};
use fluidlimit::model::{Initial, Message, Model, Policy, Routers, Top};
use serde_json::Value;

const BOUND: f64 = 1e-9;

/// Routers with these streams, equally many messages each.
fn routers(streams: &[f64], message: Message) -> Routers {
    let total: f64 = streams.iter().sum();
    Routers { message, ..Routers::with_streams(streams.iter().map(|s| s / total).collect()) }
}

fn pull(streams: &[f64]) -> Policy {
    Policy::pull_by(routers(streams, Message::Withdraw))
}

fn path(model: &Model, initial: Initial, times: &[f64]) -> Path {
    integrate(model, &Plan { initial, times: times.to_vec(), tolerance: 1e-10, cut: Top::Reflecting })
        .unwrap()
}

fn tail(path: &Path, i: usize, pool: usize, k: usize) -> f64 {
    path.snapshots[i].tails[pool].get(k - 1).copied().unwrap_or(0.0)
}

/// Times of an oracle's path, in order.
fn transient(oracle: &Value) -> Vec<(f64, Value)> {
    let entries = oracle["transient"].as_object().unwrap();
    let mut entries: Vec<(f64, Value)> =
        entries.iter().map(|(t, v)| (t.parse().unwrap(), v.clone())).collect();
    entries.sort_by(|a, b| a.0.total_cmp(&b.0));
    entries
}

fn check_sanity(path: &Path) {
    assert!(path.mass_defect < 1e-12, "mass defect {:e}", path.mass_defect);
    assert!(path.clipped > -1e-12, "clipped {:e}", path.clipped);
    for s in &path.snapshots {
        if s.stale.is_empty() {
            let (idle, held): (f64, f64) = (s.idle.iter().sum(), s.messages.iter().sum());
            close(idle, held, 1e-14, "idle servers have one message each");
        }
    }
}

/// The events that an oracle lists, one for each router.
fn events(oracle: &Value) -> Vec<(f64, EventKind, usize)> {
    let list = oracle["events"].as_array().unwrap().iter();
    list.flat_map(|e| {
        let kind = if e["type"] == "hit" { EventKind::Hit } else { EventKind::Leave };
        let one = e["router"].as_u64().into_iter();
        let several = e["routers"].as_array().into_iter().flatten().filter_map(Value::as_u64);
        let time = number(&e["t"]);
        one.chain(several).map(move |r| (time, kind, usize::try_from(r).unwrap())).collect::<Vec<_>>()
    })
    .collect()
}

fn check_events(case: &str, path: &Path, oracle: &Value, bound: f64) {
    let expected = events(oracle);
    assert_eq!(path.events.len(), expected.len(), "{case}: {:?}", path.events);
    for (event, (time, kind, router)) in path.events.iter().zip(expected) {
        assert_eq!((event.kind, event.router), (kind, Some(router)), "{case}");
        close(event.time, time, bound, &format!("{case}: event of router {router}"));
    }
}

/// Follows a case where messages are withdrawn and compares everything the oracle holds.
fn follow(case: &str, model: &Model, initial: Initial) -> Path {
    let oracle = &oracles()[case];
    let entries = transient(oracle);
    let times: Vec<f64> = entries.iter().map(|(t, _)| *t).collect();
    let path = path(model, initial, &times);
    for (i, (t, expected)) in entries.iter().enumerate() {
        let what = |name: &str| format!("{case} at {t}: {name}");
        let s = &path.snapshots[i];
        for (j, by_router) in expected["y0_jr"].as_array().unwrap().iter().enumerate() {
            close(s.idle[j], numbers(by_router).iter().sum(), BOUND, &what("idle"));
        }
        for (r, z) in numbers(&expected["z_r"]).into_iter().enumerate() {
            close(s.messages[r], z, BOUND, &what("messages"));
        }
        for (j, tails) in expected["x_kj_k1.."].as_array().unwrap().iter().enumerate() {
            for (k, x) in numbers(tails).into_iter().enumerate() {
                close(tail(&path, i, j, k + 1), x, BOUND, &what("tail"));
            }
        }
        for (j, jobs) in numbers(&expected["sum_k_x_kj"]).into_iter().enumerate() {
            close(s.jobs[j], jobs, 10.0 * BOUND, &what("jobs"));
        }
        close(s.to_idle, number(&expected["D"]), BOUND, &what("D"));
    }
    check_events(case, &path, oracle, BOUND);
    check_sanity(&path);
    path
}

/// P11: two equal routers, all messages at the first.
fn one_sided(message: Message) -> (Model, Initial) {
    let policy = Policy::pull_by(routers(&[0.4, 0.4], message));
    let start = Initial::Messages { tails: vec![vec![]], idle: vec![vec![1.0, 0.0]] };
    (model(0.8, &[(1.0, 1.0, None)], policy), start)
}

#[test]
fn a_router_without_messages_gets_some_when_services_outpace_its_jobs() {
    let (model, start) = one_sided(Message::Withdraw);
    follow("P11_two_routers_asymmetric_W", &model, start);
}

#[test]
fn three_routers_over_two_pools_hit_and_leave() {
    let pools = [(0.5, 1.5, None), (0.5, 0.5, None)];
    let start = Initial::Messages {
        tails: vec![vec![0.28; 2], vec![0.38; 2]],
        idle: vec![vec![0.2, 0.02, 0.0], vec![0.1, 0.02, 0.0]],
    };
    follow("P12_three_routers_two_pools_W", &model(0.8, &pools, pull(&[1.0, 1.0, 1.0])), start);
}

/// P13: two routers of unequal streams, one pool.
fn unequal_two() -> Model {
    model(0.8, &[(1.0, 1.0, None)], pull(&[0.6, 0.2]))
}

/// P13b: three routers of unequal streams, two pools with finite buffers.
fn unequal_three() -> Model {
    model(0.8, &[(0.5, 1.5, Some(4)), (0.5, 0.5, Some(3))], pull(&[0.5, 0.2, 0.1]))
}

#[test]
fn busy_routers_run_out_for_ever() {
    follow("P13_skewed_two_routers_W", &unequal_two(), Initial::Idle);
    follow("P13b_skewed_three_routers_finite_W", &unequal_three(), Initial::Idle);
}

#[test]
fn messages_that_are_kept_mislead() {
    let case = "P11K_two_routers_asymmetric_K1";
    let (model, start) = one_sided(Message::Keep);
    let oracle = &oracles()[case];
    let entries = transient(oracle);
    let times: Vec<f64> = entries.iter().map(|(t, _)| *t).collect();
    let path = path(&model, start, &times);
    for (i, (t, expected)) in entries.iter().enumerate() {
        let what = |name: &str| format!("{case} at {t}: {name}");
        let s = &path.snapshots[i];
        for (k, x) in numbers(&expected["x_k"]).into_iter().enumerate() {
            close(tail(&path, i, 0, k + 1), x, BOUND, &what("tail"));
        }
        for (r, z) in numbers(&expected["messages_at_router"]).into_iter().enumerate() {
            close(s.messages[r], z, BOUND, &what("messages"));
        }
        for (r, z) in numbers(&expected["stale_by_router"]).into_iter().enumerate() {
            close(s.stale[r], z, BOUND, &what("out of date"));
        }
    }
    check_events(case, &path, oracle, BOUND);
    check_sanity(&path);
}

#[test]
fn fixed_points_of_unequal_routers() {
    let x = fixed_point(&unequal_two()).unwrap();
    let at = |name: &str| x.measures.get(name).unwrap().value;
    // rho = (lambda_1 - lambda_2) / (2 - lambda / mu) = 1/3, the closed form for one pool.
    close(at("p_wait"), 1.0 / 3.0, 1e-12, "p_wait");
    close(at("p_block"), 0.0, 1e-15, "p_block");
    close(x.tails[0][0], 0.8, 1e-12, "x_1");
    for k in 1..12 {
        let y = 0.8 * (2.0 / 3.0) * (1.0f64 / 3.0).powi(k);
        close(x.tails[0][k as usize] - x.tails[0][k as usize + 1], y, 1e-12, "y_k");
    }
    close(at("waiting_time"), 0.5, 1e-12, "rho / (mu (mu - rho))");
    let Some(Split::Unique { messages }) = &x.split else { panic!("{:?}", x.split) };
    close(messages[0], 0.0, 0.0, "z_1");
    close(messages[1], 0.2, 1e-12, "z_2");
    assert!(x.residual < 1e-14 && x.spectral_abscissa.unwrap() < 0.0, "{x:?}");

    let oracle = &oracles()["P13b_skewed_three_routers_finite_W"]["fixed_point"];
    let x = fixed_point(&unequal_three()).unwrap();
    close(x.measures.p_block.unwrap().value, number(&oracle["blocking_prob"]), 1e-12, "p_block");
    for (j, idle) in numbers(&oracle["y0_j"]).into_iter().enumerate() {
        close(x.idle[j], idle, 1e-12, "idle");
        let y = numbers(&oracle["y_kj"][j]);
        for k in 0..y.len() {
            close(x.tails[j][k], y[k..].iter().sum(), 1e-12, "tail");
        }
    }
    let Some(Split::Unique { messages }) = &x.split else { panic!("{:?}", x.split) };
    for (z, expected) in messages.iter().zip(numbers(&oracle["z_r"])) {
        close(*z, expected, 1e-12, "z_r");
    }
    assert!(x.residual < 1e-14 && x.spectral_abscissa.unwrap() < 0.0, "{x:?}");
}

/// rho = (lambda_1 - lambda_2) / (2 - lambda / mu), with both routers' loads on either side of balance.
#[test]
fn one_pool_with_two_routers_has_a_closed_form() {
    for (first, second, mu) in [(0.5, 0.1, 1.0), (0.9, 0.3, 1.7), (1e-3, 0.6, 0.9), (0.3, 0.299, 0.8)] {
        let lambda = first + second;
        let rho = f64::abs(first - second) / (2.0 - lambda / mu);
        let x = fixed_point(&model(lambda, &[(1.0, mu, None)], pull(&[first, second]))).unwrap();
        let what = format!("{first}, {second}, {mu}");
        close(x.measures.p_wait.unwrap().value, rho / mu, 1e-12, &what);
        close(x.idle[0], 1.0 - lambda / mu, 1e-12, &what);
        let sent = lambda * (1.0 - rho / mu);
        let withdrawn = rho * (1.0 - lambda / mu);
        close(x.measures.messages_per_job.unwrap().value, (sent + withdrawn) / lambda, 1e-12, &what);
    }
}

/// The drift vanishes where the path from idle comes to, whatever the routers, pools and buffers.
#[test]
fn fixed_points_are_where_paths_end() {
    for (lambda, streams, message) in [
        (0.7, vec![0.6, 0.3, 0.1], Message::Withdraw),
        (1.3, vec![0.8, 0.1, 0.1], Message::Withdraw),
        (0.7, vec![0.6, 0.3, 0.1], Message::Keep),
        (1.3, vec![0.8, 0.1, 0.1], Message::Keep),
    ] {
        let policy = Policy::pull_by(routers(&streams, message));
        let model = model(lambda, &[(0.4, 1.4, Some(6)), (0.6, 0.7, Some(3))], policy);
        let x = fixed_point(&model).unwrap();
        assert!(x.residual < 1e-13, "{lambda}, {message:?}: {:e}", x.residual);
        let path = path(&model, Initial::Idle, &[200.0]);
        let Some(Split::Unique { messages }) = &x.split else { panic!("{:?}", x.split) };
        for (z, end) in messages.iter().zip(&path.snapshots[0].messages) {
            close(*z, *end, 1e-8, "messages");
        }
        for j in 0..2 {
            for (k, tail) in x.tails[j].iter().enumerate() {
                close(*tail, path.snapshots[0].tails[j].get(k).copied().unwrap_or(0.0), 1e-8, "tail");
            }
        }
        close(x.measures.p_block.unwrap().value, path.snapshots[0].p_block, 1e-8, "p_block");
        close(x.measures.p_wait.unwrap().value, path.snapshots[0].p_wait, 1e-8, "p_wait");
    }
}

#[test]
fn one_router_in_a_list_is_one_router() {
    assert_eq!(pull(&[1.0]), Policy::pull());
    let routers = routers(&[1.0], Message::Keep);
    // Even where the constructor does not see to it.
    let listed = Policy { routers: Some(routers), ..Policy::pull() };
    let pools = [(0.6, 1.0, Some(3)), (0.4, 0.5, None)];
    let (one, list) = (model(1.1, &pools, Policy::pull()), model(1.1, &pools, listed));
    let times = [0.5, 2.0, 9.0];
    let (a, b) = (path(&one, Initial::Idle, &times), path(&list, Initial::Idle, &times));
    for (a, b) in a.snapshots.iter().zip(&b.snapshots) {
        assert_eq!((&a.tails, &a.idle), (&b.tails, &b.idle));
    }
    let (a, b) = (fixed_point(&one).unwrap(), fixed_point(&list).unwrap());
    assert_eq!((a.tails, a.growth, a.measures), (b.tails, b.growth, b.measures));
}

/// Routers with messages in proportion to their jobs settle as one router; the split is left open.
#[test]
fn balanced_routers_have_the_fixed_point_of_one() {
    let pools = [(0.5, 1.5, None), (0.5, 0.5, Some(4))];
    for lambda in [0.8, 1.3] {
        let one = fixed_point(&model(lambda, &pools, Policy::pull())).unwrap();
        let mut balanced = routers(&[0.6, 0.3, 0.1], Message::Withdraw);
        balanced.messages.clone_from(&balanced.streams);
        for routers in [Routers::equal(7), balanced] {
            let x = fixed_point(&model(lambda, &pools, Policy::pull_by(routers))).unwrap();
            assert_eq!((&x.tails, &x.idle, &x.measures), (&one.tails, &one.idle, &one.measures));
            match x.split.unwrap() {
                Split::Neutral { total } => {
                    close(total, one.idle.iter().sum(), 1e-15, "messages");
                    assert!(lambda < 1.0);
                }
                Split::Unique { messages } => assert!(lambda > 1.0 && messages.iter().all(|z| *z == 0.0)),
            }
        }
    }
}

/// While every router has messages no job is routed at random, so none goes out of date.
#[test]
fn what_becomes_of_old_messages_does_not_matter_until_a_router_is_empty() {
    let pools = [(0.5, 1.5, Some(4)), (0.5, 0.5, Some(3))];
    let on_the_way = |message| {
        let policy = Policy::pull_by(routers(&[0.5, 0.2, 0.1], message));
        path(&model(0.8, &pools, policy), Initial::Idle, &[0.3, 0.79, 2.0])
    };
    let (withdraw, keep) = (on_the_way(Message::Withdraw), on_the_way(Message::Keep));
    close(withdraw.events[0].time, keep.events[0].time, BOUND, "the first router runs out");
    for i in 0..2 {
        for j in 0..2 {
            close(tail(&withdraw, i, j, 1), tail(&keep, i, j, 1), BOUND, "x_1");
        }
        assert!(keep.snapshots[i].stale.iter().all(|x| *x == 0.0));
    }
    assert!((tail(&withdraw, 2, 0, 1) - tail(&keep, 2, 0, 1)).abs() > 1e-3, "then it does");
}

/// A few hundred random systems: every path is followed to the end, keeps its mass, and comes to the
/// fixed point that is found without following it.
#[test]
fn paths_of_random_systems_end_at_their_fixed_points() {
    let mut state: u64 = 20_261_201;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let mut shares = |count: usize, zeros: bool| {
        let mut x: Vec<f64> = (0..count).map(|_| 0.05 + uniform()).collect();
        if zeros && uniform() < 0.3 {
            x[0] = 0.0;
        }
        let sum: f64 = x.iter().sum();
        (x.iter().map(|x| x / sum).collect::<Vec<f64>>(), uniform())
    };
    for i in 0..240 {
        let (count, pools) = (2 + i % 3, 1 + i / 3 % 3);
        let ((betas, load), (rates, start)) = (shares(pools, false), shares(pools, false));
        let ((streams, _), (messages, buffers)) = (shares(count, true), shares(count, true));
        let pools: Vec<(f64, f64, Option<u32>)> = (0..pools)
            .map(|j| (betas[j], 0.4 + 2.0 * rates[j], Some(1 + (buffers * 6.0) as u32 + j as u32)))
            .collect();
        let message = if i % 2 == 0 { Message::Withdraw } else { Message::Keep };
        let policy = Policy::pull_by(Routers { streams, messages, message });
        let capacity: f64 = pools.iter().map(|p| p.0 * p.1).sum();
        let model = model((0.4 + load) * capacity, &pools, policy);
        let what = format!("{i}: {model:?}");
        let x = fixed_point(&model).unwrap_or_else(|e| panic!("{e}: {what}"));
        assert!(x.residual < 1e-12, "residual {:e}: {what}", x.residual);
        let tolerance = [1e-7, 1e-9, 1e-11][i / 2 % 3];
        let initial = if start < 0.5 { Initial::Idle } else { Initial::Level(2) };
        let off = |end: &Snapshot| {
            let tails = x.tails.iter().zip(&end.tails).flat_map(|(a, b)| a.iter().zip(b));
            let off = tails.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            let Some(Split::Unique { messages }) = &x.split else { return off };
            messages.iter().zip(&end.messages).map(|(a, b)| (a - b).abs()).fold(off, f64::max)
        };
        // Routers that are all but balanced fill and empty at the tiny rate by which they are not.
        for end in [600.0, 30_000.0] {
            let initial = initial.clone();
            let plan = Plan { initial, times: vec![1.0, 20.0, end], tolerance, cut: Top::Reflecting };
            let path = integrate(&model, &plan).unwrap_or_else(|e| panic!("{e}: {what}"));
            assert!(path.mass_defect < 1e-12 && path.clipped > -1e-9, "{}: {what}", path.clipped);
            let off = off(&path.snapshots[2]);
            if off < 1e-6 {
                break;
            }
            assert!(end < 1_000.0, "off by {off}: {what}");
        }
    }
}

/// Where messages are kept, those at router r change at rate w_r D - lambda_r while it has any. So at
/// rest D is the least lambda_r / w_r, and only the router with that has messages.
#[test]
fn kept_messages_gather_at_one_router() {
    let streams = [0.5, 0.3, 0.2];
    let policy = Policy::pull_by(routers(&streams, Message::Keep));
    let x = fixed_point(&model(0.7, &[(0.4, 1.4, None), (0.6, 0.7, Some(4))], policy)).unwrap();
    close(x.measures.messages_per_job.unwrap().value, 3.0 * 0.2, 1e-12, "D / lambda");
    let Some(Split::Unique { messages }) = &x.split else { panic!("{:?}", x.split) };
    assert!(messages[..2].iter().all(|z| *z == 0.0) && messages[2] > 0.1, "{messages:?}");
}

/// Random routing can be too much for a slow pool although the load is below capacity. Growth rates are
/// those of the path, below capacity and above.
#[test]
fn pools_grow_behind_a_router_without_messages() {
    for (lambda, grows) in [(0.8, [false, true]), (1.2, [false, true]), (2.2, [true, true])] {
        let model = model(lambda, &[(0.5, 1.5, None), (0.5, 0.3, None)], pull(&[0.9, 0.1]));
        let x = fixed_point(&model).unwrap();
        assert!(x.residual < 1e-14, "{:e}", x.residual);
        let path = path(&model, Initial::Idle, &[200.0, 300.0]);
        let (before, after) = (&path.snapshots[0], &path.snapshots[1]);
        for (j, grows) in grows.into_iter().enumerate() {
            assert_eq!(x.growth[j].is_some(), grows, "{lambda}");
            let growth = (after.jobs[j] - before.jobs[j]) / 100.0;
            close(growth, 0.5 * x.growth[j].unwrap_or(0.0), 1e-6, "growth");
            x.tails[j].iter().zip(&after.tails[j]).for_each(|(a, b)| close(*a, *b, 1e-6, "tail"));
        }
        let Some(Split::Unique { messages }) = &x.split else { panic!("{:?}", x.split) };
        messages.iter().zip(&after.messages).for_each(|(a, b)| close(*a, *b, 1e-6, "messages"));
        close(x.measures.p_wait.unwrap().value, after.p_wait, 1e-6, "p_wait");
    }
}
