//! Tests that need what is not public: routers that could be merged but are not, and the Jacobian.

use super::field::{Field, Mode};
use super::follow;
use super::linear::Factor;
use super::space::Space;
use crate::fluid::drift::{Drift, Scratch};
use crate::fluid::integrate;
use crate::fluid::path::{Path, Plan};
use crate::model::{Initial, Message, Model, PhaseType, Policy, Pool, Routers, Top};

/// Share, service rate and buffer of a pool.
type Sketch = (f64, f64, Option<u32>);

fn model(arrival_rate: f64, pools: &[Sketch], policy: Policy) -> Model {
    let pools = pools.iter().map(|&(share, rate, buffer)| {
        Pool::new(String::new(), share, buffer, PhaseType::exponential(rate).unwrap())
    });
    Model { name: String::new(), description: String::new(), arrival_rate, pools: pools.collect(), policy }
}

/// The largest difference of tails and idle servers, and of event times.
fn difference(a: &Path, b: &Path) -> f64 {
    let mut worst: f64 = 0.0;
    for (a, b) in a.snapshots.iter().zip(&b.snapshots) {
        for (x, y) in a.tails.iter().zip(&b.tails) {
            let at = |x: &[f64], k: usize| x.get(k).copied().unwrap_or(0.0);
            (0..x.len().max(y.len())).for_each(|k| worst = worst.max((at(x, k) - at(y, k)).abs()));
        }
        a.idle.iter().zip(&b.idle).for_each(|(x, y)| worst = worst.max((x - y).abs()));
        worst = worst.max((a.p_idle - b.p_idle).abs()).max((a.p_block - b.p_block).abs());
    }
    worst
}

/// Equal routers that are followed one by one are one router: below and above capacity, from idle and
/// from long queues, whatever becomes of messages, through the events on the way.
#[test]
fn equal_routers_one_by_one_are_one_router() {
    let systems: [(f64, Initial, &[Sketch]); 4] = [
        (0.9, Initial::Idle, &[(0.5, 2.0, None), (0.3, 1.0, Some(2)), (0.2, 0.5, None)]),
        (1.2, Initial::Idle, &[(0.6, 1.0, Some(3)), (0.4, 0.5, Some(5))]),
        (0.7, Initial::Level(3), &[(0.5, 1.0, None), (0.5, 0.6, None)]),
        (0.8, Initial::Tails(vec![vec![0.95, 0.9, 0.9]]), &[(1.0, 1.0, None)]),
    ];
    for (lambda, initial, pools) in systems {
        let times = vec![0.05, 0.3, 1.0, 3.0, 6.0, 15.0, 25.0];
        let plan = Plan { initial: initial.clone(), times, tolerance: 1e-10, cut: Top::Reflecting };
        let one = integrate(&model(lambda, pools, Policy::pull()), &plan).unwrap();
        for message in [Message::Withdraw, Message::Keep] {
            let routers = Routers { message, ..Routers::equal(3) };
            let several = model(lambda, pools, Policy::pull_by(routers.clone()));
            let apart = follow(&several, &routers, &plan).unwrap();
            let what = format!("{lambda}, {initial:?}, {message:?}");
            assert!(difference(&one, &apart) < 1e-9, "{what}: {:e}", difference(&one, &apart));
            assert_eq!(apart.events.len(), 3 * one.events.len(), "{what}: {:?}", apart.events);
            for (i, event) in apart.events.iter().enumerate() {
                assert!((event.time - one.events[i / 3].time).abs() < 1e-9, "{what}");
            }
            let together = integrate(&several, &plan).unwrap();
            assert_eq!(difference(&one, &together), 0.0);
            assert!(together.snapshots.iter().all(|s| s.messages.len() == 3));
        }
    }
}

/// Merging changes nothing: routers in one proportion, routers without jobs or messages or either.
#[test]
fn merged_routers_do_what_they_do_apart() {
    let pools = [(0.4, 1.4, None), (0.6, 0.7, Some(3))];
    for message in [Message::Withdraw, Message::Keep] {
        for (streams, messages, groups) in [
            ([0.0, 0.5, 0.3, 0.2], [0.0, 0.2, 0.48, 0.32], 3),
            ([0.0, 0.6, 0.2, 0.2], [0.1, 0.0, 0.45, 0.45], 3),
            ([0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25], 4),
        ] {
            let routers = Routers { streams: streams.to_vec(), messages: messages.to_vec(), message };
            let model = model(0.8, &pools, Policy::pull_by(routers.clone()));
            let merged = super::alike::merge(&model, &routers, &Initial::Idle);
            assert_eq!(merged.routers.len(), groups, "{streams:?}");
            let times = vec![0.4, 1.5, 6.0, 20.0];
            let plan = Plan { initial: Initial::Idle, times, tolerance: 1e-10, cut: Top::Reflecting };
            let (apart, together) =
                (follow(&model, &routers, &plan).unwrap(), integrate(&model, &plan).unwrap());
            assert!(difference(&apart, &together) < 1e-9, "{message:?}, {streams:?}");
            for (a, b) in apart.snapshots.iter().zip(&together.snapshots) {
                a.messages.iter().zip(&b.messages).for_each(|(a, b)| assert!((a - b).abs() < 1e-9));
            }
        }
    }
}

#[test]
fn the_jacobian_is_the_derivative_of_the_drift() {
    let pools = [(0.4, 1.4, Some(3)), (0.6, 0.7, None)];
    for message in [Message::Withdraw, Message::Keep] {
        let routers = Routers { message, ..Routers::with_streams(vec![0.5, 0.3, 0.2]) };
        let model = model(0.9, &pools, Policy::pull_by(routers.clone()));
        for top in [Top::Reflecting, Top::Absorbing] {
            let space = Space::new(&model, &routers, &[3, 4], top);
            let modes = vec![Mode::Empty, Mode::Open, Mode::Open];
            let field = Field::new(&space, &routers, 0.9, modes);
            let q: Vec<f64> = (0..space.len()).map(|s| 0.1 + 0.03 * (s % 7) as f64).collect();
            let jacobian = field.jacobian(&q).unwrap();
            let (mut up, mut down) = (vec![0.0; q.len()], vec![0.0; q.len()]);
            for s in 0..q.len() {
                const STEP: f64 = 1e-5;
                let mut at = q.clone();
                at[s] = q[s] + STEP;
                field.eval(&at, &mut up, &mut Scratch::default());
                at[s] = q[s] - STEP;
                field.eval(&at, &mut down, &mut Scratch::default());
                for i in 0..q.len() {
                    let slope = (up[i] - down[i]) / (2.0 * STEP);
                    assert!((jacobian[(i, s)] - slope).abs() < 1e-6, "{message:?}, {top:?}: ({i}, {s})");
                }
                let sum: f64 = jacobian.column(s).sum();
                assert!(sum.abs() < 1e-14, "column {s} does not keep mass");
            }
        }
    }
}

#[test]
fn the_linear_solver_inverts_the_jacobian() {
    let pools = [(0.4, 1.4, Some(3)), (0.6, 0.7, None)];
    for message in [Message::Withdraw, Message::Keep] {
        for top in [Top::Reflecting, Top::Absorbing] {
            for held in [0.05, 1e-9] {
                let routers = Routers { message, ..Routers::with_streams(vec![0.4, 0.3, 0.2, 0.1]) };
                let model = model(0.9, &pools, Policy::pull_by(routers.clone()));
                let space = Space::new(&model, &routers, &[3, 4], top);
                let modes = vec![Mode::Empty, Mode::Open, Mode::Open, Mode::Empty];
                let field = Field::new(&space, &routers, 0.9, modes);
                let small = |s: usize| field.cells[s].holder == Some(1);
                let q = (0..space.len())
                    .map(|s| (0.1 + 0.03 * (s % 7) as f64) * if small(s) { held } else { 1.0 });
                let q: Vec<f64> = q.collect();
                let (gamma, jacobian) = (3.0, field.jacobian(&q).unwrap());
                let right: Vec<f64> = (0..q.len()).map(|s| (s * s % 11) as f64 - 4.0).collect();
                let mut x = right.clone();
                Factor::new(&field, &q, gamma).unwrap().solve(&mut x);
                let x = nalgebra::DVector::from_vec(x);
                let rest = gamma * &x - &jacobian * &x - nalgebra::DVector::from_vec(right);
                let size = jacobian.amax() * x.amax();
                assert!(
                    rest.amax() < 1e-14 * size,
                    "{message:?}, {top:?}, {held}: {:e} of {size:e}",
                    rest.amax()
                );
            }
        }
    }
}

/// With the jobs beyond the cut ignored, and with servers beyond it lost for ever, tails agree: the cut
/// of an infinite buffer does not show.
#[test]
fn the_cut_of_infinite_buffers_does_not_show() {
    for message in [Message::Withdraw, Message::Keep] {
        let routers = Routers { message, ..Routers::with_streams(vec![0.7, 0.2, 0.1]) };
        let model = model(0.8, &[(0.5, 1.5, None), (0.5, 0.6, None)], Policy::pull_by(routers));
        let plan = |cut| Plan { initial: Initial::Idle, times: vec![2.0, 8.0, 30.0], tolerance: 1e-10, cut };
        let (lower, upper) = (
            integrate(&model, &plan(Top::Reflecting)).unwrap(),
            integrate(&model, &plan(Top::Absorbing)).unwrap(),
        );
        assert!(difference(&lower, &upper) < 1e-12, "{message:?}: {:e}", difference(&lower, &upper));
    }
}
