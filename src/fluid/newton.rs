//! A zero of the drift under sampled queues: relax from idle, then Newton's method.
//!
//! The path from idle is relaxed with large implicit steps until the drift is small, then Newton's
//! method finishes; an iterate that leaves the domain sends it back to relax further. Levels of infinite
//! buffers grow until the cut does not matter.

use super::FluidError;
use super::drift::{Drift, Field, top_service};
use super::escape;
use super::flows;
use super::integrate::{Motion, transfer};
use super::linear::Factor;
use super::path::Plan;
use super::precise;
use crate::model::{Initial, Model, StateSpace, Top};

/// A tail of sampled queues falls doubly exponentially once it is below a half, but near criticality many
/// levels are needed to come there.
const MOST_LEVELS: u32 = 20_000;
/// The same where it is not known whether the pools settle: one that needs more is taken to fill up.
const MOST_TRIED_LEVELS: u32 = 250;

/// The resting occupancy of the pools that do not grow.
pub(super) struct Rest {
    pub states: StateSpace,
    pub q: Vec<f64>,
    pub open: usize,
    pub iterations: u32,
    pub truncation: f64,
}

impl Rest {
    pub fn nothing(settled: &Model, open: usize) -> Self {
        let states = StateSpace::new(settled, &[], Top::Reflecting);
        Self { states, q: Vec::new(), open, iterations: 0, truncation: 0.0 }
    }
}

/// What the settling pools stand beside.
pub(super) struct Beside {
    /// Mass of servers that hold infinitely many jobs.
    pub escaped: f64,
    /// About how much reaches the fallback.
    pub stream: f64,
    /// Is it known that the pools settle?
    pub known: bool,
}

/// Relaxes from near where the queues settle, then Newton; more levels until the cut does not matter.
pub(super) fn relax_and_solve(model: &Model, beside: &Beside) -> Result<Rest, FluidError> {
    const ROUNDS: u32 = 60;
    const COARSE: f64 = 1e-3;
    let escaped = beside.escaped;
    let heights = escape::heights(model, beside.stream, escaped);
    let tails = model.pools.iter().zip(&heights).map(|(p, &h)| vec![p.share; h as usize]).collect();
    let initial = Initial::Tails(tails);
    let plan = Plan { initial, times: Vec::new(), tolerance: COARSE, cut: Top::Reflecting };
    let mut motion = Motion::start_beside(model, &plan, escaped)?;
    motion.relax(if beside.known { MOST_LEVELS } else { MOST_TRIED_LEVELS });
    let mut span = 10.0 / motion.rate_scale();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        motion.advance(motion.state.time + span)?;
        span *= 2.0;
        let state = &motion.state;
        let residual = motion.field().residual(&state.occupancy);
        best = best.min(residual);
        if residual > 1e-3 * model.arrival_rate {
            continue;
        }
        let found = newton(model, &state.states, state.open, &state.occupancy, escaped);
        if let Some((q, iterations)) = found {
            return with_enough_levels(model, state.states.clone(), q, state.open, iterations, escaped);
        }
    }
    Err(FluidError::NoFixedPoint { residual: best })
}

fn largest(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |a, x| a.max(x.abs()))
}

/// Newton's method; the zero and the number of steps, or `None` if it does not settle inside the domain.
fn newton(
    model: &Model,
    states: &StateSpace,
    open: usize,
    start: &[f64],
    escaped: f64,
) -> Option<(Vec<f64>, u32)> {
    const MOST_STEPS: u32 = 40;
    const NEGATIVE: f64 = -1e-14;
    let field = Field::beside(model, states, open, escaped);
    let mut q = start.to_vec();
    let mut dq = vec![0.0; q.len()];
    let scale = field.rate_scale();
    let mut last = f64::INFINITY;
    for i in 0..MOST_STEPS {
        if !precise::drift(&field, &q, &mut dq) {
            return None;
        }
        let size = largest(&dq);
        // At rounding level the residual stops falling by halves.
        if size < 1e-13 * scale && size > 0.5 * last || size == 0.0 {
            let worst = flows::clip(states, &mut q);
            return (worst > NEGATIVE).then_some((q, i));
        }
        last = size;
        let linearisation = field.linearise(&q)?;
        let factor = Factor::new(states, &linearisation, 0.0)?;
        if !factor.solve(&mut dq) {
            return None;
        }
        let next: Vec<f64> = q.iter().zip(&dq).map(|(q, d)| q + d).collect();
        if next.iter().any(|x| *x < -0.01) {
            return None;
        }
        q = next;
        precise::restore_mass(states, &field.closed, &mut q);
    }
    None
}

/// Grows the levels until the bracket between the lower (reflecting) and the upper (geometric tail)
/// fixed point is below what double precision shows.
fn with_enough_levels(
    model: &Model,
    mut states: StateSpace,
    mut q: Vec<f64>,
    open: usize,
    mut iterations: u32,
    escaped: f64,
) -> Result<Rest, FluidError> {
    const BRACKET: f64 = 1e-15;
    let mut truncation;
    loop {
        truncation = bracket(model, &states, &q, open, escaped).unwrap_or(f64::INFINITY);
        if truncation <= BRACKET || states.max_level() > MOST_LEVELS {
            break;
        }
        let levels: Vec<u32> = states.pools.iter().map(|p| p.more_levels()).collect();
        let larger = StateSpace::new(model, &levels, Top::Reflecting);
        let start = transfer(&states, &larger, &q);
        match newton(model, &larger, open, &start, escaped) {
            Some((new, steps)) => {
                iterations += steps;
                (states, q) = (larger, new);
            }
            None => break,
        }
    }
    if truncation > 1e-6 {
        return Err(FluidError::NoFixedPoint { residual: truncation });
    }
    Ok(Rest { states, q, open, iterations, truncation })
}

/// The bracket of the truncation at a fixed point `q` of the system with reflecting tops, which is a
/// lower bound. The upper bound lets every server above the cut receive jobs at the largest rate that
/// any of them can see there: its tail is geometric, and its drift in the true system is nowhere
/// positive. The two differ by the services that the upper one lacks at the top, so their distance is
/// what Newton's first step makes of those; taking the difference of two solutions would show rounding
/// instead. `None` if the rate at the top is not below some pool's service rate.
fn bracket(model: &Model, states: &StateSpace, q: &[f64], open: usize, escaped: f64) -> Option<f64> {
    const MARGIN: f64 = 1.01;
    if states.pools.iter().all(|p| !p.is_cut()) {
        return Some(0.0);
    }
    let lower = Field::beside(model, states, open, escaped);
    let cut = states.pools.iter().filter(|p| p.is_cut());
    let lowest_top = cut.map(|p| p.levels as usize).min().unwrap_or(0);
    let mut tails = Vec::new();
    lower.dispatch.level_tails(q, escaped, &mut tails);
    let d = model.policy.fallback.d;
    // The chance that the shortest of d samples is a given server above the cut is largest just there.
    let chance = f64::from(d) * tails[lowest_top].powi(i32::try_from(d - 1).unwrap_or(i32::MAX));
    let largest_rate = MARGIN * lower.dispatch.reach(q).max(0.0) * chance;
    let mut tops = top_service(states);
    for (j, pool) in states.pools.iter().enumerate().filter(|(_, p)| p.is_cut()) {
        // The slowest phase bounds how fast a long queue can drain.
        let speed = pool.speed_at(pool.levels);
        let phases = (0..pool.phases()).map(|m| speed * pool.law.rate(m));
        let slowest = phases.fold(model.pools[j].service_rate(), f64::min);
        if largest_rate >= slowest {
            return None;
        }
        tops[j] = 1.0 - largest_rate / slowest;
    }
    let upper = Field::with_tops(model, states, open, &tops, escaped);
    let mut gap = vec![0.0; q.len()];
    for (a, b) in lower.moves.iter().zip(&upper.moves) {
        let missing = (a.rate - b.rate) * q[a.from];
        gap[a.from] += missing;
        gap[a.to] -= missing;
    }
    let linearisation = upper.linearise(q)?;
    if !Factor::new(states, &linearisation, 0.0)?.solve(&mut gap) {
        return None;
    }
    let of_pool = |j: usize| largest(&states.tails(j, &gap));
    Some((0..states.pools.len()).map(of_pool).fold(0.0, f64::max))
}
