//! Is the exact solution right with several routers? Against a chain that keeps every server and its
//! message apart, the exponential of its matrix, a closed form, and the sampler of counts.

mod finite_support;

use finite_support::routers::{Chain, Server, State, pull, systems};
use finite_support::{assert_near, exponential, measured, model, one_pool, settings, value};
use fluidlimit::finite::{Exact, ExactError, Method, exact, simulate};
use fluidlimit::model::{Initial, Message, Model};
use nalgebra::{DMatrix, DVector};

fn solve(model: &Model, n: u64, times: &[f64]) -> Exact {
    exact(model, n, &Initial::Idle, times, &|_| ()).unwrap()
}

#[track_caller]
fn close(what: &str, found: f64, wanted: f64) {
    let off = (found - wanted).abs();
    assert!(off <= 1e-11, "{what}: {found} against {wanted}, off by {off:e}");
}

/// The fraction of the servers whose message is at this router.
#[allow(clippy::cast_precision_loss)]
fn messages(state: &State, router: usize) -> f64 {
    let held = state.iter().filter(|s| s.holder == Some(router)).count();
    held as f64 / state.len() as f64
}

/// Every system, rule and choice of streams and messages.
fn models() -> Vec<(Model, u64)> {
    let mut models = vec![];
    for (lambda, n, pools, speed) in systems() {
        for message in [Message::Withdraw, Message::Keep] {
            for (streams, messages) in [
                ([0.5, 0.5], [0.5, 0.5]),
                ([0.7, 0.3], [0.4, 0.6]),
                // A router that gets no messages, and one that gets no jobs.
                ([0.5, 0.5], [1.0, 0.0]),
                ([1.0, 0.0], [0.5, 0.5]),
            ] {
                let mut model = model(lambda, pull(&streams, &messages, message), &pools);
                model.pools.iter_mut().for_each(|p| p.speed.clone_from(&speed));
                models.push((model, n));
            }
        }
    }
    models
}

#[test]
fn every_measure_is_that_of_the_chain_with_every_message_kept_apart() {
    for (model, n) in models() {
        let chain = Chain::new(&model, n);
        let law = chain.stationary();
        let solved = solve(&model, n, &[]);
        let title = format!("{model:?}");
        for (name, wanted) in chain.measures(&law) {
            close(&format!("{name} of {title}"), value(&solved.measures, name), wanted);
        }
        for (j, tails) in solved.tails.iter().enumerate() {
            for (k, &x) in (1..).zip(tails) {
                close(&format!("x_{k} of pool {j}, {title}"), x, chain.tail(&law, j, k));
            }
        }
        for (r, &z) in solved.messages.iter().enumerate() {
            let wanted = chain.mean(&law, |s| messages(s, r));
            close(&format!("messages at {r}, {title}"), z, wanted);
        }
        assert_eq!(solved.messages.len(), 2);
    }
}

#[test]
fn transients_are_those_of_the_matrix_exponential() {
    let times = [0.0, 0.4, 2.0];
    for (model, n) in models().into_iter().step_by(4) {
        let chain = Chain::new(&model, n);
        let states = chain.states.len();
        let mut generator = DMatrix::zeros(states, states);
        for (i, moves) in chain.moves.iter().enumerate() {
            for &(to, rate) in moves {
                generator[(to, i)] += rate;
                generator[(i, i)] -= rate;
            }
        }
        // Half of the messages at each router; with three servers the odd one at the first.
        let holder = |s: usize| Some(usize::from(s % 2 == 1));
        let idle: State = (0..usize::try_from(n).unwrap())
            .map(|s| Server { level: 0, phase: 0, holder: holder(s) })
            .collect();
        let start = chain.states.iter().position(|s| *s == idle);
        let two_pools = model.pools.len() > 1;
        // Pools of one server each round both messages to the first router.
        let start = if two_pools { Some(0) } else { start }.unwrap();
        let mut first = DVector::zeros(states);
        first[start] = 1.0;
        let solved = solve(&model, n, &times);
        for (time, point) in times.iter().zip(&solved.transient) {
            let law = (&generator * *time).exp() * &first;
            for (name, wanted) in chain.measures(&law) {
                let found = match name {
                    "p_idle" => point.p_idle,
                    "p_wait" => point.p_wait,
                    "p_block" => point.p_block,
                    _ => continue,
                };
                close(&format!("{name} at {time} of {model:?}"), found, wanted);
            }
            for (r, &z) in point.messages.iter().enumerate() {
                let wanted = chain.mean(&law, |s| messages(s, r));
                close(&format!("messages at {r}, {time}, {model:?}"), z, wanted);
            }
        }
    }
}

/// One server and no queue: Erlang's loss system, whatever the routers do. A job that comes to the router
/// without the message takes it back, with probability 0.4 0.3 + 0.6 0.7.
#[test]
fn one_server_is_a_loss_system_and_takes_back_messages() {
    let model = one_pool(0.8, pull(&[0.7, 0.3], &[0.4, 0.6], Message::Withdraw), Some(1));
    let solved = solve(&model, 1, &[]);
    close("p_block", value(&solved.measures, "p_block"), 0.8 / 1.8);
    close("messages", value(&solved.measures, "messages_per_job"), (1.0 + 0.54) / 1.8);
    close("messages at the first", solved.messages[0], 0.4 / 1.8);
}

/// A chain too large for elimination is solved by sweeps, and the sampler agrees.
#[test]
fn a_large_chain_agrees_with_the_sampler() {
    for message in [Message::Withdraw, Message::Keep] {
        let n = if message == Message::Keep { 8 } else { 30 };
        let pools = [(1.0, Some(3), exponential(1.0))];
        let model = model(0.9, pull(&[0.6, 0.4], &[0.5, 0.5], message), &pools);
        let solved = solve(&model, n, &[]);
        assert_eq!(solved.statistics.method, Method::GaussSeidel);
        let runs = simulate(&model, &settings(n, 400.0, 50.0, 5), &()).unwrap().runs;
        for name in ["p_idle", "p_wait", "p_block", "messages_per_job", "mean_jobs"] {
            let wanted = value(&solved.measures, name);
            assert_near(&format!("{name}, {message:?}"), &measured(&runs, name), wanted, 0.01);
        }
    }
}

#[test]
fn messages_that_gather_at_two_routers_have_no_law() {
    let policy = pull(&[1.0, 0.0, 0.0], &[0.2, 0.4, 0.4], Message::Keep);
    let model = one_pool(0.8, policy, Some(2));
    assert_eq!(exact(&model, 2, &Initial::Idle, &[], &|_| ()), Err(ExactError::Hoarders));
}

/// Nothing happens, so it does not matter where messages are.
#[test]
fn without_jobs_all_servers_stay_idle() {
    let model = one_pool(0.0, pull(&[0.5, 0.5], &[0.5, 0.5], Message::Keep), Some(2));
    let solved = solve(&model, 3, &[1.0]);
    assert_eq!(solved.idle_servers, [0.0, 0.0, 0.0, 1.0]);
    assert!(solved.messages.is_empty());
}
