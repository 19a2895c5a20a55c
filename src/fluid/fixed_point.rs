//! Where the drift vanishes.
//!
//! Policies whose resting servers receive jobs at one rate have a scalar balance ([`super::balance`]).
//! For the others (a fallback that samples d >= 2) the path from idle is relaxed with large implicit
//! steps until the drift is small, and Newton's method finishes; an iterate that leaves the domain sends
//! it back to relax further. Pools that fill up for ever ([`super::escape`]) are taken out first: what
//! is left then has a fixed point, with those servers present as infinitely long queues.

use super::FluidError;
use super::balance;
use super::drift::{Drift, Field, Scratch, top_service};
use super::escape;
use super::flows::{self, Flows, PoolFlows};
use super::integrate::{Motion, Plan, transfer};
use super::linear::Factor;
use super::precise;
use super::stability;
use crate::model::{Initial, Measures, Model, Policy, StateSpace, Tier, Tiers, Top};
use serde::Serialize;

/// How the fixed point was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The scalar balance of the stream.
    Balance,
    /// Newton's method from a relaxed state.
    Newton,
}

/// The limit of the path from idle as time goes to infinity.
///
/// With `growth` all `None` it is the fixed point x*. Otherwise the pools with a growth rate fill up
/// for ever, and the rest is the fixed point that the other pools settle at.
#[derive(Debug, Clone)]
pub struct FixedPoint {
    /// Tails x_1, x_2, ... of each pool as fractions of all servers; empty for a pool that grows.
    pub tails: Vec<Vec<f64>>,
    /// Idle servers of each pool as fractions of all servers.
    pub idle: Vec<f64>,
    /// Growth of jobs per server of the pool, for pools that fill up for ever.
    pub growth: Vec<Option<f64>>,
    /// Measures at the fixed point; where a pool grows, in the limit.
    pub measures: Measures,
    /// How it was found.
    pub method: Method,
    /// Index of the first open tier; the number of tiers if all are closed.
    pub open: usize,
    /// Largest component of the drift.
    pub residual: f64,
    /// The most negative entry of the occupancy (0 if there is none).
    pub infeasibility: f64,
    /// Newton steps.
    pub iterations: u32,
    /// Largest real part of an eigenvalue of the Jacobian on the space that keeps each pool's mass.
    /// `None` if it could not be computed, or if pools grow.
    pub spectral_abscissa: Option<f64>,
    /// Bound on the error of any tail made by cutting infinite buffers.
    pub truncation: f64,
    /// Levels represented in each pool.
    pub levels: Vec<u32>,
    /// Occupancy over `states`; pools that grow are not in it.
    pub occupancy: Vec<f64>,
    /// The state space of the pools that do not grow.
    pub states: StateSpace,
}

impl FixedPoint {
    /// Does no pool grow?
    #[must_use]
    pub fn is_proper(&self) -> bool {
        self.growth.iter().all(Option::is_none)
    }

    /// One over the distance of the spectrum from the imaginary axis.
    #[must_use]
    pub fn relaxation_time(&self) -> Option<f64> {
        self.spectral_abscissa.filter(|a| *a < 0.0).map(|a| -1.0 / a)
    }
}

/// The resting occupancy of the pools that do not grow.
struct Rest {
    states: StateSpace,
    q: Vec<f64>,
    open: usize,
    iterations: u32,
    truncation: f64,
}

/// The limit of the fluid path of `model` from the idle state.
///
/// # Errors
/// If the relaxation gets stuck, needs too many levels, or Newton's method finds no zero.
pub fn fixed_point(model: &Model) -> Result<FixedPoint, FluidError> {
    let everyone_escapes = |growth: &[Option<f64>]| growth.iter().all(Option::is_some);
    if let Some(balance) = balance::find(model) {
        let settled = without(model, &balance.escaped);
        let rest = if everyone_escapes(&balance.escaped) {
            Rest::nothing(&settled, balance.open)
        } else {
            let (states, q) = balance::occupancy(&settled, &balance);
            let truncation = top_tail(&states, &q);
            Rest { states, q, open: balance.open, iterations: 0, truncation }
        };
        return Ok(describe(model, &settled, balance.escaped, rest, Method::Balance));
    }
    // Pools escape slowest first, but how many depends on the stream that reaches the fallback, and
    // that on the pools that settle: try more and more until what is left settles.
    let mut order: Vec<usize> = (0..model.pools.len()).filter(|&j| model.pools[j].buffer.is_none()).collect();
    order.sort_by(|&a, &b| model.pools[a].service_rate().total_cmp(&model.pools[b].service_rate()));
    let count = |growth: &[Option<f64>]| growth.iter().filter(|g| g.is_some()).count();
    let mut gone = count(&escape::escaping(model, least_stream(model), 0.0));
    if order.len() == model.pools.len() && model.arrival_rate >= model.capacity() {
        gone = gone.max(1);
    }
    while gone <= order.len() {
        let mut escaped = vec![None; model.pools.len()];
        order[..gone].iter().for_each(|&j| escaped[j] = Some(0.0));
        let settled = without(model, &escaped);
        let mass = escaped_mass(model, &escaped);
        let rest = if settled.pools.is_empty() {
            Rest::nothing(&settled, 0)
        } else {
            match relax_and_solve(&settled, mass) {
                Ok(rest) => rest,
                Err(FluidError::TooManyLevels { .. } | FluidError::NoFixedPoint { .. })
                    if gone < order.len() =>
                {
                    gone += 1;
                    continue;
                }
                Err(error) => return Err(error),
            }
        };
        let stream = if rest.q.is_empty() {
            model.arrival_rate
        } else {
            Field::beside(&settled, &rest.states, rest.open, mass).dispatch.reach(&rest.q)
        };
        let growth = escape::escaping(model, stream, full_mass(&settled, &rest));
        match count(&growth) {
            more if more > gone => gone = more,
            // Critical pools: they neither settle nor grow at a rate.
            fewer if fewer < gone => break,
            _ => return Ok(describe(model, &settled, growth, rest, Method::Newton)),
        }
    }
    Err(FluidError::NoFixedPoint { residual: f64::NAN })
}

impl Rest {
    fn nothing(settled: &Model, open: usize) -> Self {
        let states = StateSpace::new(settled, &[], Top::Reflecting);
        Self { states, q: Vec::new(), open, iterations: 0, truncation: 0.0 }
    }
}

/// The stream that reaches the fallback when all servers are busy and serve only into closed tiers:
/// what is left is the least there can be.
fn least_stream(model: &Model) -> f64 {
    match model.policy.tiers.count() {
        Some(0) => model.arrival_rate,
        _ => (model.arrival_rate - model.capacity()).max(0.0),
    }
}

/// The model without the pools that escape; pools named by tiers are renumbered.
fn without(model: &Model, escaped: &[Option<f64>]) -> Model {
    let kept: Vec<usize> = (0..model.pools.len()).filter(|&j| escaped[j].is_none()).collect();
    let renumber = |pools: &Vec<usize>| {
        kept.iter().enumerate().filter(|(_, j)| pools.contains(j)).map(|(i, _)| i).collect()
    };
    let tiers = match &model.policy.tiers {
        Tiers::EveryLevel => Tiers::EveryLevel,
        Tiers::List(list) => Tiers::List(
            list.iter().map(|t| Tier { levels: t.levels, pools: t.pools.as_ref().map(renumber) }).collect(),
        ),
    };
    Model {
        pools: kept.iter().map(|&j| model.pools[j].clone()).collect(),
        policy: Policy { tiers, ..model.policy.clone() },
        ..model.clone()
    }
}

fn escaped_mass(model: &Model, escaped: &[Option<f64>]) -> f64 {
    model.pools.iter().zip(escaped).filter(|(_, e)| e.is_some()).map(|(p, _)| p.share).sum()
}

/// Mass of full servers that the fallback passes over.
fn full_mass(settled: &Model, rest: &Rest) -> f64 {
    if !settled.policy.fallback.skip_full {
        return 0.0;
    }
    let full = rest.states.pools.iter().filter(|p| p.top == Top::Buffer);
    full.map(|p| rest.q[p.level(p.levels)].iter().sum::<f64>()).sum()
}

/// The largest mass at the end of a cut pool.
fn top_tail(states: &StateSpace, q: &[f64]) -> f64 {
    let cut = states.pools.iter().filter(|p| p.top != Top::Buffer);
    cut.map(|p| q[p.level(p.levels)].iter().sum::<f64>()).fold(0.0, f64::max)
}

/// Relaxes from idle beside `escaped`, then Newton; more levels until the cut does not matter.
fn relax_and_solve(model: &Model, escaped: f64) -> Result<Rest, FluidError> {
    const ROUNDS: u32 = 60;
    const COARSE: f64 = 1e-3;
    let plan = Plan { initial: Initial::Idle, times: Vec::new(), tolerance: COARSE, cut: Top::Reflecting };
    let mut motion = Motion::start_beside(model, &plan, escaped)?;
    motion.prefer_implicit();
    let mut span = 10.0 / motion.rate_scale();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        motion.advance(motion.state.time + span)?;
        span *= 2.0;
        let state = &motion.state;
        let residual = residual(motion.field(), &state.occupancy);
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

fn residual(field: &Field, q: &[f64]) -> f64 {
    let mut dq = vec![0.0; q.len()];
    field.eval(q, &mut dq, &mut Scratch::default());
    dq.iter().fold(0.0, |a, x| a.max(x.abs()))
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
    let scale = field.dispatch.arrival_rate + field.moves.iter().map(|m| m.rate).fold(0.0, f64::max);
    let mut last = f64::INFINITY;
    for i in 0..MOST_STEPS {
        if !precise::drift(&field, &q, &mut dq) {
            return None;
        }
        let size = dq.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
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
    // Levels that a tail of sampled queues never needs: it falls doubly exponentially.
    const MOST_LEVELS: u32 = 2000;
    let mut truncation;
    loop {
        truncation = bracket(model, &states, &q, open, escaped).unwrap_or(f64::INFINITY);
        if truncation <= BRACKET || states.max_level() > MOST_LEVELS {
            break;
        }
        let levels: Vec<u32> = states.pools.iter().map(|p| p.levels + 4 + p.levels / 2).collect();
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
    if states.pools.iter().all(|p| p.top == Top::Buffer) {
        return Some(0.0);
    }
    let lower = Field::beside(model, states, open, escaped);
    let cut = states.pools.iter().filter(|p| p.top != Top::Buffer);
    let lowest_top = cut.map(|p| p.levels as usize).min().unwrap_or(0);
    let mut tails = Vec::new();
    lower.dispatch.level_tails(q, escaped, &mut tails);
    let d = model.policy.fallback.d;
    // The chance that the shortest of d samples is a given server above the cut is largest just there.
    let chance = f64::from(d) * tails[lowest_top].powi(i32::try_from(d - 1).unwrap_or(i32::MAX));
    let largest_rate = MARGIN * lower.dispatch.reach(q).max(0.0) * chance;
    let mut tops = top_service(states);
    for (j, pool) in states.pools.iter().enumerate().filter(|(_, p)| p.top != Top::Buffer) {
        // The slowest phase bounds how fast a long queue can drain.
        let phases = (0..pool.phases()).map(|m| pool.law.rate(m));
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
    let of_pool = |j: usize| states.tails(j, &gap).iter().fold(0.0, |a: f64, x| a.max(x.abs()));
    Some((0..states.pools.len()).map(of_pool).fold(0.0, f64::max))
}

fn describe(
    model: &Model,
    settled: &Model,
    growth: Vec<Option<f64>>,
    rest: Rest,
    method: Method,
) -> FixedPoint {
    let mass = escaped_mass(model, &growth);
    let Rest { states, mut q, open, iterations, truncation } = rest;
    let field = Field::beside(settled, &states, open, mass);
    let proper = mass == 0.0;
    let residual = if q.is_empty() { 0.0 } else { residual(&field, &q) };
    let infeasibility = flows::clip(&states, &mut q);
    let spectral_abscissa =
        if proper { stability::spectral_abscissa(settled, &states, &field, &q) } else { None };
    let settled_flows = if q.is_empty() { Flows::default() } else { flows::flows(&field, &states, &q) };
    let mut settled_pools = settled_flows.pools.into_iter();
    let (mut tails, mut idle, mut levels, mut pools) = (vec![], vec![], vec![], vec![]);
    let mut i = 0;
    for (pool, growth) in model.pools.iter().zip(&growth) {
        if let Some(growth) = growth {
            // Its servers are always busy, and receive what they serve and what they grow by.
            let completed = pool.share * pool.service_rate();
            let wait = completed + growth * pool.share;
            pools.push(PoolFlows {
                wait,
                completed,
                jobs: f64::INFINITY,
                busy: pool.share,
                ..PoolFlows::default()
            });
            tails.push(Vec::new());
            idle.push(0.0);
            levels.push(0);
        } else {
            tails.push(states.tails(i, &q));
            idle.push(q[states.pools[i].offset]);
            levels.push(states.pools[i].levels);
            pools.push(settled_pools.next().unwrap_or_default());
            i += 1;
        }
    }
    let flows = Flows { pools, fallback: settled_flows.fallback };
    let mut measures = flows::from_flows(model, &flows);
    if !proper {
        for (pool, g) in measures.pools.iter_mut().zip(&growth) {
            pool.growth = Some(g.unwrap_or(0.0).into());
        }
        let total: f64 = model.pools.iter().zip(&growth).map(|(p, g)| p.share * g.unwrap_or(0.0)).sum();
        measures.growth = Some(total.into());
    }
    FixedPoint {
        tails,
        idle,
        growth,
        measures,
        method,
        open,
        residual,
        infeasibility,
        iterations,
        spectral_abscissa,
        truncation,
        levels,
        occupancy: q,
        states,
    }
}
