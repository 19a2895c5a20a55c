//! The fluid limit of pull with several routers (see [`crate::model::Routers`]).
//!
//! Every router has a boundary of its own: it either has messages, or uses those that come at once and
//! routes the rest of its jobs to random servers. Routers that are alike are merged; where all are, the
//! system is that of one router, and its code is used.

mod alike;
mod field;
mod flows;
mod kept;
mod linear;
mod modes;
mod motion;
mod rest;
mod space;
#[cfg(test)]
mod tests;

pub use rest::Split;
pub(super) use rest::fixed_point;

use super::FluidError;
use super::path::{Event, Path, Plan, Snapshot};
use crate::model::{Model, Policy, Pool, Routers};
use motion::Motion;

/// Integrates the fluid limit of `model`, whose policy has these routers.
///
/// # Errors
/// As [`super::integrate`], for several slots, and for service that is not exponential at speed 1 where
/// routers are not alike.
pub(super) fn integrate(model: &Model, routers: &Routers, plan: &Plan) -> Result<Path, FluidError> {
    let merged = alike::merge(model, routers, &plan.initial);
    check(model, merged.is_one())?;
    let mut path = if merged.is_one() {
        let mut path = super::integrate(&one_router(model), plan)?;
        path.snapshots.iter_mut().for_each(|s| s.messages = vec![s.idle.iter().sum()]);
        path
    } else {
        follow(model, &merged.routers, &Plan { initial: merged.initial.clone(), ..plan.clone() })?
    };
    for s in &mut path.snapshots {
        s.messages = merged.spread(&s.messages);
        if !s.stale.is_empty() {
            s.stale = merged.spread(&s.stale);
        }
    }
    path.events = each_router(&path.events, &merged.belongs);
    Ok(path)
}

/// Refuses what the theory of several routers does not reach; routers that act as one do what one does.
fn check(model: &Model, act_as_one: bool) -> Result<(), FluidError> {
    if model.pools.iter().any(|p| p.slots > 1) {
        return Err(FluidError::SlotsWithRouters);
    }
    if !act_as_one && !model.pools.iter().all(Pool::is_plain) {
        return Err(FluidError::PhasesWithRouters);
    }
    Ok(())
}

/// Events of merged routers as events of each of theirs.
fn each_router(events: &[Event], belongs: &[(usize, f64)]) -> Vec<Event> {
    let of = |event: &Event| {
        let event = *event;
        let group = event.router.map(|r| r - 1);
        let routers = belongs.iter().enumerate().filter(move |(_, (g, _))| Some(*g) == group);
        routers.map(move |(r, _)| Event { router: Some(r + 1), ..event })
    };
    events.iter().flat_map(of).collect()
}

/// Integrates with the routers as they are.
fn follow(model: &Model, routers: &Routers, plan: &Plan) -> Result<Path, FluidError> {
    let mut motion = Motion::start(model, routers, plan)?;
    let mut snapshots: Vec<Snapshot> = Vec::with_capacity(plan.times.len());
    for &time in &plan.times {
        motion.advance(time)?;
        snapshots.push(motion.snapshot());
    }
    Ok(motion.finish(snapshots))
}

/// The same system with all its routers in one.
fn one_router(model: &Model) -> Model {
    Model { policy: Policy { routers: None, ..model.policy.clone() }, ..model.clone() }
}
