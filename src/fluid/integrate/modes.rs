//! The modes of the motion: which tier is open, when that changes, and how the path goes on from there.

use super::{CLOCK, EMPTY, Motion, NEGATIVE, needs_levels};
use crate::fluid::drift::{Composition, Drift, Field, Scratch};
use crate::fluid::path::{Event, EventKind};
use crate::fluid::root::crossing;
use crate::fluid::step::{Leg, lowest_entry};
use crate::fluid::{FluidError, dispatch, flows};

/// So many steps of the explicit method that fall below zero in one mode mean that it is at the limit of
/// its stability.
const MOST_SETBACKS: u32 = 20;

impl Motion<'_> {
    /// Finds the mode at the present occupancy: the first tier with mass, unless an emptier one before
    /// it gains servers faster than arrivals can take them.
    pub(super) fn find_mode(&mut self) {
        const NO_MASS: f64 = 1e-15;
        let tiers = dispatch::tier_count(self.model, &self.state.states);
        for open in 0..tiers {
            let field = self.field_in(open);
            let q = &mut self.state.occupancy;
            let mass = field.dispatch.open_mass(q).unwrap_or(0.0);
            if mass > NO_MASS {
                return self.enter(open, false);
            }
            if mass > 0.0 {
                flows::lift(self.model, &self.state.states, open, q);
            }
            let (inflow, reach) = (field.tier_inflow(q), field.dispatch.reach(q));
            let tie = 1e-13 * (inflow + self.model.arrival_rate);
            let opens = if (inflow - reach).abs() > tie { inflow > reach } else { self.inflow_rises(open) };
            if opens {
                return self.enter(open, true);
            }
        }
        self.enter(tiers, false);
    }

    /// With tiers up to `tier` closed: does the surplus of servers that come to `tier` over the stream
    /// that reaches it increase?
    fn inflow_rises(&self, tier: usize) -> bool {
        let closed = self.field_in(tier + 1);
        let mut dq = vec![0.0; closed.len()];
        let inside = closed.eval(&self.state.occupancy, &mut dq, &mut Scratch::default());
        // reach_change counts every closed tier up to this one, negatively: their sum is the surplus.
        inside && -closed.dispatch.reach_change(&dq) > 1e-13 * self.rate_scale() * self.model.arrival_rate
    }

    fn enter(&mut self, open: usize, opening: bool) {
        self.state.open = open;
        self.field = self.field_in(open);
        self.stiff = false;
        self.sinking = false;
        self.setbacks = 0;
        self.step = 0.0;
        self.opening_until = None;
        let several =
            self.field.dispatch.open_mass(&self.state.occupancy).is_some() && !self.field.dispatch.single();
        if opening && several {
            self.field.composition = Composition::Inflow;
            self.opening_until = Some(self.state.time + self.opening_time());
        }
    }

    /// How long the quasi-steady split may stand in for the true one. Its error is of the order of the
    /// tier's mass times the time, so the time is chosen to make that a hundredth of the tolerance.
    fn opening_time(&self) -> f64 {
        let budget = 0.01 * self.tolerance;
        let q = &self.state.occupancy;
        let surplus = (self.field.tier_inflow(q) - self.field.dispatch.reach(q)).max(0.0);
        let mut dq = vec![0.0; q.len()];
        self.field.eval(q, &mut dq, &mut Scratch::default());
        let rising = (self.field.tier_inflow(&dq) - self.field.dispatch.reach_change(&dq)).max(0.0);
        let scale = self.rate_scale();
        // Mass is surplus * s + rising * s^2 / 2; the composition changes at rate `scale`.
        let by_jump = (budget / (surplus * scale)).sqrt() / scale.max(1.0);
        let by_slope = (2.0 * budget / (rising * scale)).cbrt() / scale.max(1.0);
        by_jump.min(by_slope).min(1e-3 / scale)
    }

    /// Past the time of opening, the tier's own mass says how it splits the stream.
    pub(super) fn end_opening(&mut self, time: f64) {
        if self.state.time < time {
            return;
        }
        self.opening_until = None;
        self.field.composition = Composition::Mass;
        self.step = 0.0;
        if self.field.dispatch.open_mass(&self.state.occupancy).is_some_and(|m| m <= 0.0) {
            // It did not open after all: a touch of the boundary.
            self.find_mode();
        }
    }

    /// An accepted step crossed an event, or filled the largest level.
    pub(super) fn at_watched(&mut self, leg: &Leg, implicit: bool) -> Result<(), FluidError> {
        if self.relaxing.is_none() && needs_levels(&self.state.states, &leg.q) {
            // A single step can carry mass beyond the largest level: it is taken again with more levels.
            self.accept(leg.before_t, leg.before_q.clone(), leg.t - leg.before_t);
            return self.grow(&leg.q);
        }
        if !implicit && lowest_entry(&leg.q) < NEGATIVE {
            self.setbacks += 1;
            self.stiff |= self.setbacks > MOST_SETBACKS;
        }
        let empties = self.opening_until.is_none() && runs_empty(&self.field, &leg.q, leg.t, self.tolerance);
        let overflows = if self.opening_until.is_none() { overflowing(&self.field, &leg.q) } else { None };
        let empty_at = empties.then(|| {
            if self.field.dispatch.single() {
                self.locate(leg, implicit, &|field, q| -field.dispatch.open_mass(q).unwrap_or(0.0))
            } else {
                (leg.t, leg.q.clone())
            }
        });
        let overflow_at =
            overflows.map(|tier| (tier, self.locate(leg, implicit, &|field, q| surplus(field, q, tier))));
        match (empty_at, overflow_at) {
            (Some((t, q)), over) if over.as_ref().is_none_or(|(_, (t_over, _))| t <= *t_over) => {
                self.accept(t, q, 0.0);
                self.empty();
            }
            (_, Some((tier, (t, q)))) => {
                self.accept(t, q, 0.0);
                self.events.push(Event { time: t, kind: EventKind::Leave, tier: tier + 1, router: None });
                self.enter(tier, true);
            }
            _ => self.accept(leg.t, leg.q.clone(), leg.step),
        }
        if needs_levels(&self.state.states, &self.state.occupancy) {
            let filled = self.state.occupancy.clone();
            self.grow(&filled)?;
        }
        Ok(())
    }

    /// The open tier has run empty: what little it holds is handed its jobs, and the mode changes.
    fn empty(&mut self) {
        let (open, q) = (self.state.open, &self.state.occupancy);
        let mass = self.field.dispatch.open_mass(q).unwrap_or(0.0).max(0.0);
        let falling = self.field.dispatch.reach(q) - self.field.tier_inflow(q);
        let time = self.state.time + mass / falling;
        self.events.push(Event { time, kind: EventKind::Hit, tier: open + 1, router: None });
        flows::lift(self.model, &self.state.states, open, &mut self.state.occupancy);
        self.find_mode();
    }

    /// Where `g` crosses zero within the leg's last step, by integrating that step again.
    fn locate(&mut self, leg: &Leg, implicit: bool, g: &dyn Fn(&Field, &[f64]) -> f64) -> (f64, Vec<f64>) {
        let before = g(&self.field, &leg.before_q);
        if before >= 0.0 {
            return (leg.before_t, leg.before_q.clone());
        }
        let after = g(&self.field, &leg.q);
        let found = crossing((leg.before_t, before), (leg.t, after), |t| {
            let q = self.run(leg.before_t, &leg.before_q, t, t - leg.before_t, implicit, false).q;
            let value = g(&self.field, &q);
            (q, value)
        });
        found.unwrap_or_else(|| (leg.t, leg.q.clone()))
    }
}

pub(super) fn runs_empty(field: &Field, q: &[f64], time: f64, tolerance: f64) -> bool {
    let d = &field.dispatch;
    let least = match d.single() {
        true => 0.0,
        false => (EMPTY * tolerance).clamp(1e-13, 1e-10).max(CLOCK * time * d.reach(q)),
    };
    d.open_mass(q).is_some_and(|mass| mass <= least) && field.tier_inflow(q) < d.reach(q)
}

/// The servers that come to closed tier `tier`, less the stream that reaches it.
fn surplus(field: &Field, q: &[f64], tier: usize) -> f64 {
    (0..=tier).map(|i| field.dispatch.absorbed(i, q)).sum::<f64>() - field.dispatch.arrival_rate
}

/// The first closed tier that gains servers faster than arrivals can take them.
pub(super) fn overflowing(field: &Field, q: &[f64]) -> Option<usize> {
    let mut sum = 0.0;
    (0..field.dispatch.closed.len()).find(|&i| {
        sum += field.dispatch.absorbed(i, q);
        sum > field.dispatch.arrival_rate
    })
}
