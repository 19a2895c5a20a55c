//! Where the drift vanishes.
//!
//! Policies whose resting servers receive jobs at one rate have a scalar balance ([`super::balance`]).
//! For the others (a fallback that samples d >= 2) the path from idle is relaxed with large implicit
//! steps until the drift is small, and Newton's method finishes; an iterate that leaves the domain sends
//! it back to relax further. Pools that fill up for ever ([`super::escape`]) are taken out first: what
//! is left then has a fixed point, with those servers present as infinitely long queues.

use super::FluidError;
use super::balance;
use super::drift::{Drift, Field};
use super::escape;
use super::flows::{self, Flows, PoolFlows};
use super::newton::{Beside, Rest, relax_and_solve};
use super::routers::{self, Split};
use super::stability;
use crate::model::{Levels, Measures, Model, Policy, Pool, StateSpace, Tier, Tiers};
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
    /// The same by the phase of the job in service, S_{1,1}.., S_{2,1}..; empty for pools with one phase.
    pub phases: Vec<Vec<Vec<f64>>>,
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
    /// Under pull with several routers: what each of them holds.
    pub split: Option<Split>,
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

/// The limit of the fluid path of `model` from the idle state.
///
/// # Errors
/// If the relaxation gets stuck, needs too many levels, or Newton's method finds no zero.
pub fn fixed_point(model: &Model) -> Result<FixedPoint, FluidError> {
    if let Some(several) = &model.policy.routers {
        return routers::fixed_point(model, several);
    }
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
    let (growth, rest) = settle(model)?;
    Ok(describe(model, &without(model, &growth), growth, rest, Method::Newton))
}

/// Which pools fill up for ever under sampled queues, and where the others settle.
///
/// Pools escape slowest first. How many depends on the stream that reaches the fallback, and that, where
/// tiers absorb or full servers lose a part of it, on the pools that settle: the number is bisected.
fn settle(model: &Model) -> Result<(Vec<Option<f64>>, Rest), FluidError> {
    let count = |growth: &[Option<f64>]| growth.iter().filter(|g| g.is_some()).count();
    let mut order: Vec<usize> = (0..model.pools.len()).filter(|&j| model.pools[j].buffer.is_none()).collect();
    order.sort_by(|&a, &b| model.pools[a].service_rate().total_cmp(&model.pools[b].service_rate()));
    let largest_stream = escape::largest_stream(model);
    let mut low = count(&escape::escaping(model, least_stream(model), 0.0));
    let mut high = if model.policy.fallback.skip_full {
        order.len()
    } else {
        count(&escape::escaping(model, largest_stream, 0.0)).max(low)
    };
    let mut gone = high;
    loop {
        let mut growth = vec![None; model.pools.len()];
        order[..gone].iter().for_each(|&j| growth[j] = Some(0.0));
        let settled = without(model, &growth);
        let mass = escaped_mass(model, &growth);
        let known = low == high;
        let rest = if settled.pools.is_empty() {
            Ok(Rest::nothing(&settled, 0))
        } else {
            relax_and_solve(&settled, &Beside { escaped: mass, stream: largest_stream, known })
        };
        let more_escape = match rest {
            Ok(rest) => {
                let stream = if rest.q.is_empty() {
                    model.arrival_rate
                } else {
                    Field::beside(&settled, &rest.states, rest.open, mass).dispatch.reach(&rest.q)
                };
                let now = escape::escaping(model, stream, full_mass(&settled, &rest));
                let more = count(&now);
                if more == gone {
                    return Ok((now, rest));
                }
                if known {
                    // Critical pools: they neither settle nor grow at a rate.
                    let growth = growth.iter().zip(&now).map(|(g, now)| g.map(|g| now.unwrap_or(g)));
                    return Ok((growth.collect(), rest));
                }
                more > gone
            }
            Err(FluidError::TooManyLevels { .. } | FluidError::NoFixedPoint { .. }) if !known => true,
            Err(error) => return Err(error),
        };
        if more_escape {
            low = (gone + 1).min(high);
        } else {
            high = gone.saturating_sub(1).max(low);
        }
        gone = low.midpoint(high);
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

/// The model without the pools that escape; pools named by tiers are renumbered. Under join the shortest
/// queue the others are full by then, and are sent just what they serve.
pub(super) fn without(model: &Model, escaped: &[Option<f64>]) -> Model {
    let kept: Vec<usize> = (0..model.pools.len()).filter(|&j| escaped[j].is_none()).collect();
    let renumber = |pools: &Vec<usize>| {
        kept.iter().enumerate().filter(|(_, j)| pools.contains(j)).map(|(i, _)| i).collect()
    };
    let levels = |levels: &Levels| match levels {
        Levels::Set(set) => Levels::Set(*set),
        Levels::FreeSlots(slots) => Levels::FreeSlots(kept.iter().map(|&j| slots[j]).collect()),
    };
    let tier = |t: &Tier| Tier { levels: levels(&t.levels), pools: t.pools.as_ref().map(renumber) };
    let tiers = match &model.policy.tiers {
        Tiers::EveryLevel => Tiers::EveryLevel,
        Tiers::List(list) => Tiers::List(list.iter().map(tier).collect()),
    };
    let pools: Vec<Pool> = kept.iter().map(|&j| model.pools[j].clone()).collect();
    let policy = Policy { tiers, ..model.policy.clone() };
    let mut settled = Model { pools, policy, ..model.clone() };
    if matches!(model.policy.tiers, Tiers::EveryLevel) && kept.len() < model.pools.len() {
        settled.arrival_rate = settled.capacity();
    }
    settled
}

pub(super) fn escaped_mass(model: &Model, escaped: &[Option<f64>]) -> f64 {
    model.pools.iter().zip(escaped).filter(|(_, e)| e.is_some()).map(|(p, _)| p.share).sum()
}

/// Mass of full servers that the fallback passes over.
fn full_mass(settled: &Model, rest: &Rest) -> f64 {
    if !settled.policy.fallback.skip_full {
        return 0.0;
    }
    let full = rest.states.pools.iter().filter(|p| !p.is_cut());
    full.map(|p| rest.q[p.level(p.levels)].iter().sum::<f64>()).sum()
}

/// The largest mass at the end of a cut pool.
pub(super) fn top_tail(states: &StateSpace, q: &[f64]) -> f64 {
    let cut = states.pools.iter().filter(|p| p.is_cut());
    cut.map(|p| q[p.level(p.levels)].iter().sum::<f64>()).fold(0.0, f64::max)
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
    let residual = if q.is_empty() { 0.0 } else { field.residual(&q) };
    let infeasibility = flows::clip(&states, &mut q);
    let spectral_abscissa =
        if mass == 0.0 { stability::spectral_abscissa(settled, &states, &field, &q) } else { None };
    let flows = if q.is_empty() { Flows::default() } else { flows::flows(&field, &states, &q) };
    let rest = Rest { states, q, open, iterations, truncation };
    assemble(model, growth, rest, flows, Found { method, residual, infeasibility, spectral_abscissa })
}

/// How a fixed point was found, and how good it is.
pub(super) struct Found {
    pub method: Method,
    pub residual: f64,
    pub infeasibility: f64,
    pub spectral_abscissa: Option<f64>,
}

/// Puts the pools that settle and those that grow together. `rest` and `settled` are about the former.
pub(super) fn assemble(
    model: &Model,
    growth: Vec<Option<f64>>,
    rest: Rest,
    settled: Flows,
    found: Found,
) -> FixedPoint {
    let proper = growth.iter().all(Option::is_none);
    let Rest { states, q, open, iterations, truncation } = rest;
    let Found { method, residual, infeasibility, spectral_abscissa } = found;
    let mut settled_pools = settled.pools.into_iter();
    let (mut tails, mut phases, mut idle, mut levels, mut pools) = (vec![], vec![], vec![], vec![], vec![]);
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
            phases.push(Vec::new());
            idle.push(0.0);
            levels.push(0);
        } else {
            tails.push(states.tails(i, &q));
            phases.push(states.by_phase(i, &q));
            idle.push(q[states.pools[i].offset]);
            levels.push(states.pools[i].levels);
            pools.push(settled_pools.next().unwrap_or_default());
            i += 1;
        }
    }
    let flows = Flows { pools, fallback: settled.fallback };
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
        phases,
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
        split: None,
    }
}
