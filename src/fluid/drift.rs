//! The drift of the occupancy: dq/dt as a function of q, and its linearisation.
//!
//! Service moves a server on its own; dispatch moves servers by arrivals:
//!
//! ```text
//! dq/dt = L^T q  +  sum over states s of  phi_s(q) q_s (e_after(s) - e_s)
//! ```
//!
//! L is the sparse, constant service generator; phi_s is the rate at which one server in state s
//! receives jobs (see [`super::dispatch`]); after(s) is its state after an arrival. Each move is
//! computed once and added and subtracted, so the mass of each pool is kept to rounding.

use super::dispatch::{self, Dispatch, Target, choice_rate_partials};
use crate::model::{Model, Move, StateSpace, Top};

/// A right-hand side dq/dt = f(q), as the integrators see it.
pub trait Drift {
    /// Number of coordinates.
    fn len(&self) -> usize;

    /// Has it no coordinate?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes f(q) into `dq`; `false` (and `dq` all NaN) if q is outside the domain.
    fn eval(&self, q: &[f64], dq: &mut [f64], scratch: &mut Scratch) -> bool;

    /// The largest component of f(q); infinite outside the domain.
    fn residual(&self, q: &[f64]) -> f64 {
        let mut dq = vec![0.0; q.len()];
        let inside = self.eval(q, &mut dq, &mut Scratch::default());
        if inside { dq.iter().fold(0.0, |a: f64, x| a.max(x.abs())) } else { f64::INFINITY }
    }
}

/// Working memory of a drift, so that evaluating it allocates nothing.
#[derive(Debug, Default, Clone)]
pub struct Scratch {
    pub(super) tails: Vec<f64>,
    pub(super) rates: Vec<f64>,
}

/// How an open tier without (or almost without) mass splits its stream over its states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Composition {
    /// In proportion to the mass of the states.
    Mass,
    /// In proportion to the rates at which services move servers into the states: the quasi-steady
    /// composition of a tier that has just opened, where mass is too small to divide by.
    Inflow,
}

/// The drift in one mode of one model over one state space.
#[derive(Debug, Clone)]
pub(super) struct Field {
    /// Index of the first open tier; the number of tiers if all are closed.
    pub open: usize,
    pub moves: Vec<Move>,
    pub dispatch: Dispatch,
    pub composition: Composition,
    /// Closed states have no mass and no drift.
    pub closed: Vec<Option<usize>>,
    /// Service moves that add to the mass of the open tier: (state before, state in the tier, rate times
    /// the weight gained).
    pub inflow: Vec<(usize, usize, f64)>,
}

/// What closes a state space that was cut, seen from its largest level: the factor on the service
/// rate there, per pool. 1 is a reflecting top, 0 an absorbing one, 1 - r a geometric tail of ratio r.
pub(super) fn top_service(states: &StateSpace) -> Vec<f64> {
    states.pools.iter().map(|p| if p.top == Top::Absorbing { 0.0 } else { 1.0 }).collect()
}

impl Field {
    /// The drift of `model` over `states` when the tiers before `open` are closed.
    pub fn new(model: &Model, states: &StateSpace, open: usize) -> Self {
        Self::beside(model, states, open, 0.0)
    }

    /// The same beside a mass `escaped` of servers outside that hold infinitely many jobs.
    pub fn beside(model: &Model, states: &StateSpace, open: usize, escaped: f64) -> Self {
        Self::with_tops(model, states, open, &top_service(states), escaped)
    }

    /// The same with the service rate at each pool's largest level multiplied by `top[j]`.
    pub fn with_tops(model: &Model, states: &StateSpace, open: usize, top: &[f64], escaped: f64) -> Self {
        let mut service = states.service_moves();
        let mut factor = vec![1.0; states.len()];
        for (pool, &f) in states.pools.iter().zip(top).filter(|(p, _)| p.is_cut()) {
            factor[pool.level(pool.levels)].fill(f);
        }
        service.iter_mut().for_each(|m| m.rate *= factor[m.from]);
        let closed = dispatch::closed_tiers(model, states, open);
        let (moves, inflow_closed) = dispatch::refill(states, &closed, open, &service);
        let dispatch = Dispatch::new(model, states, open, &closed, inflow_closed, escaped);
        let mut inflow = Vec::new();
        if let Target::Tier { states: tier, weights } = &dispatch.target {
            let mut weight = vec![0.0; states.len()];
            tier.iter().zip(weights).for_each(|(&s, &w)| weight[s] = w);
            let gain = |m: &Move| weight[m.to] - weight[m.from];
            let gaining = moves.iter().filter(|m| gain(m) > 0.0);
            inflow.extend(gaining.map(|m| (m.from, m.to, m.rate * gain(m))));
        }
        Self { open, moves, dispatch, composition: Composition::Mass, closed, inflow }
    }

    /// The fastest rate that is not that of a composition: arrivals and services.
    pub fn rate_scale(&self) -> f64 {
        self.moves.iter().map(|m| m.rate).fold(0.0, f64::max) + self.dispatch.arrival_rate
    }

    /// The rate at which services add to the mass of the open tier; 0 if no tier is open.
    pub fn tier_inflow(&self, q: &[f64]) -> f64 {
        self.inflow.iter().map(|&(from, _, rate)| rate * q[from]).sum()
    }

    /// The quasi-steady split: the stream that reaches the open tier goes to its states in proportion
    /// to the rates at which services move servers into them.
    fn dispatch_by_inflow(&self, q: &[f64], reach: f64, dq: &mut [f64]) {
        let total = self.tier_inflow(q);
        if total <= 0.0 {
            return;
        }
        for &(from, to, rate) in &self.inflow {
            let flow = reach * rate * q[from] / total;
            for arc in self.dispatch.arcs.iter().filter(|arc| arc.from == to) {
                dq[to] -= flow * arc.share;
                dq[arc.to] += flow * arc.share;
            }
        }
    }

    /// The linearisation at q; `None` outside the domain.
    pub fn linearise<'f>(&'f self, q: &'f [f64]) -> Option<Linearisation<'f>> {
        let d = &self.dispatch;
        let mut scratch = Scratch::default();
        let reach = d.reach(q);
        if !d.rates(q, reach, &mut scratch.tails, &mut scratch.rates) {
            return None;
        }
        let partials = match d.target {
            Target::Fallback(f) if f.d > 1 => {
                scratch.tails.windows(2).map(|x| choice_rate_partials(x[0], x[1], f.d)).collect()
            }
            _ => Vec::new(),
        };
        let mass = d.open_mass(q).unwrap_or(1.0);
        Some(Linearisation { field: self, q, reach, mass, rates: scratch.rates, partials })
    }
}

impl Drift for Field {
    fn len(&self) -> usize {
        self.closed.len()
    }

    fn eval(&self, q: &[f64], dq: &mut [f64], scratch: &mut Scratch) -> bool {
        dq.fill(0.0);
        for m in &self.moves {
            let flow = m.rate * q[m.from];
            dq[m.from] -= flow;
            dq[m.to] += flow;
        }
        let reach = self.dispatch.reach(q);
        if self.composition == Composition::Inflow {
            self.dispatch_by_inflow(q, reach, dq);
            return true;
        }
        if !self.dispatch.rates(q, reach, &mut scratch.tails, &mut scratch.rates) {
            dq.fill(f64::NAN);
            return false;
        }
        if self.dispatch.single() {
            for arc in &self.dispatch.arcs {
                dq[arc.from] -= reach * arc.share;
                dq[arc.to] += reach * arc.share;
            }
        } else {
            for arc in &self.dispatch.arcs {
                let flow = scratch.rates[arc.group] * q[arc.from] * arc.share;
                dq[arc.from] -= flow;
                dq[arc.to] += flow;
            }
        }
        true
    }
}

/// The Jacobian of a [`Field`] at a point, as a sparse frozen part plus one rank per group:
///
/// ```text
/// J delta = A delta + sum over groups g of  direction_g * d(rate_g)(delta)
/// ```
///
/// A holds the service moves and the arrivals at frozen rates: a generator on each pool, tridiagonal
/// in the level. `direction_g` is where the servers of group g go when their rate rises, and
/// `d(rate_g)` a linear functional: tails by level, the reach and the tier's mass.
#[derive(Debug)]
pub(super) struct Linearisation<'f> {
    pub field: &'f Field,
    q: &'f [f64],
    reach: f64,
    mass: f64,
    rates: Vec<f64>,
    partials: Vec<(f64, f64, f64)>,
}

impl Linearisation<'_> {
    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.field.dispatch.groups()
    }

    /// Mass of state s.
    pub fn occupancy(&self, s: usize) -> f64 {
        self.q[s]
    }

    /// Where the fallback samples d >= 2 servers: the derivatives of the rate at one level by the stream
    /// that reaches the fallback, by the tail at that level, and by the tail one level up.
    pub fn rate_partials(&self, level: usize) -> (f64, f64, f64) {
        let (h, hx, hy) = self.partials[level];
        (h, self.reach * hx, self.reach * hy)
    }

    /// The moves of the frozen part.
    pub fn frozen(&self) -> impl Iterator<Item = Move> + '_ {
        let arcs: &[dispatch::Arc] =
            if self.field.dispatch.single() { &[] } else { &self.field.dispatch.arcs };
        let arrivals =
            arcs.iter().map(|a| Move { from: a.from, to: a.to, rate: self.rates[a.group] * a.share });
        self.field.moves.iter().copied().chain(arrivals)
    }

    /// Adds `factors[g] * direction_g` over all groups g to `out`.
    pub fn add_directions(&self, factors: &[f64], out: &mut [f64]) {
        let single = self.field.dispatch.single();
        for arc in &self.field.dispatch.arcs {
            let mass = if single { 1.0 } else { self.q[arc.from] };
            let flow = factors[arc.group] * mass * arc.share;
            out[arc.from] -= flow;
            out[arc.to] += flow;
        }
    }

    /// Change of each group's rate, to first order, when q changes by `delta`.
    pub fn rate_changes(&self, delta: &[f64], tails: &mut Vec<f64>, out: &mut Vec<f64>) {
        let d = &self.field.dispatch;
        let reach_change = d.reach_change(delta);
        out.clear();
        match &d.target {
            Target::Tier { states, .. } if states.len() == 1 => out.push(reach_change),
            Target::Tier { .. } => {
                let mass_change = d.open_mass(delta).unwrap_or(0.0);
                out.push((reach_change - self.rates[0] * mass_change) / self.mass);
            }
            Target::Fallback(f) if f.d == 1 => out.push(reach_change),
            Target::Fallback(_) => {
                d.level_tails(delta, 0.0, tails);
                out.extend(
                    self.partials
                        .iter()
                        .zip(tails.windows(2))
                        .map(|(&(h, hx, hy), t)| h * reach_change + self.reach * (hx * t[0] + hy * t[1])),
                );
            }
        }
    }

    /// The change of the rate at which jobs are sent to each state, to first order, when q changes by
    /// `delta`.
    pub fn met_changes(&self, delta: &[f64]) -> Vec<f64> {
        let d = &self.field.dispatch;
        let (mut tails, mut changes) = (Vec::new(), Vec::new());
        self.rate_changes(delta, &mut tails, &mut changes);
        let mut met = vec![0.0; delta.len()];
        match &d.target {
            Target::Tier { states, .. } if states.len() == 1 => met[states[0]] = changes[0],
            Target::Tier { states, weights } => {
                for (&s, w) in states.iter().zip(weights) {
                    met[s] = w * (changes[0] * self.q[s] + self.rates[0] * delta[s]);
                }
            }
            Target::Fallback(f) => {
                let group = |s: usize| if f.d > 1 { d.level[s] } else { 0 };
                for (s, met) in met.iter_mut().enumerate() {
                    *met = changes[group(s)] * self.q[s] + self.rates[group(s)] * delta[s];
                }
            }
        }
        met
    }

    /// J delta.
    pub fn apply(&self, delta: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; delta.len()];
        for m in self.frozen() {
            let flow = m.rate * delta[m.from];
            out[m.from] -= flow;
            out[m.to] += flow;
        }
        let (mut tails, mut changes) = (Vec::new(), Vec::new());
        self.rate_changes(delta, &mut tails, &mut changes);
        self.add_directions(&changes, &mut out);
        out
    }
}
