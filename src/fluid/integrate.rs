//! From an initial occupancy through time: stretches of smooth motion, and the events between them.
//!
//! Within one mode (see [`super::dispatch`]) the drift is smooth. A stretch ends when the open tier
//! runs empty (the path begins to slide on the boundary, or slides further up), or when services move
//! more servers into a closed tier than arrivals can take (the tier opens again and the path leaves
//! the boundary). Both times are located by integrating the last step again to the root. Behind a tier
//! that has just opened, mass is too small to divide by: for a moment the split over its states is
//! the quasi-steady one, then an L-stable method carries the fast relaxation of the composition.

use super::dispatch;
use super::drift::{Composition, Drift, Field, Scratch};
use super::flows::{self, Flows};
use super::path::{Event, EventKind, Path, Plan, Snapshot, State};
use super::step::{Leg, StepCounts, Stop, Stretch, Tolerance};
use super::{FluidError, explicit, rosenbrock};
use crate::model::{Model, StateSpace, Top};

/// Mass at the largest level represented that makes the level count grow.
const GROW_AT: f64 = 1e-18;
/// Mass below which an open tier with several states counts as empty. The path is moved by less than
/// this; the time by this over the rate at which the mass falls.
const EMPTY: f64 = 1e-13;
/// A pool that settles under sampled queues has a tail that falls doubly exponentially: one that needs
/// more levels than this while relaxing to rest fills up for ever.
const MOST_RELAXED_LEVELS: u32 = 250;
/// More states than this are refused.
const MOST_STATES: usize = 20_000_000;

/// Integrates the fluid limit of `model`.
///
/// # Errors
/// If the step size underflows, or the tail grows past what can be represented.
pub fn integrate(model: &Model, plan: &Plan) -> Result<Path, FluidError> {
    let mut motion = Motion::start(model, plan)?;
    let mut snapshots = Vec::with_capacity(plan.times.len());
    for &time in &plan.times {
        motion.advance(time)?;
        snapshots.push(motion.snapshot());
    }
    Ok(motion.finish(snapshots))
}

/// The moving point.
pub(super) struct Motion<'m> {
    model: &'m Model,
    escaped: f64,
    tolerance: f64,
    pub state: State,
    field: Field,
    /// Until when the split over the open tier's states is the quasi-steady one.
    opening_until: Option<f64>,
    stiff: bool,
    relaxing: bool,
    /// The implicit method got stuck: the open tier is about to run empty, and its composition singular.
    /// The explicit one needs a few steps per halving of the mass.
    sinking: bool,
    step: f64,
    events: Vec<Event>,
    counts: StepCounts,
    sliding: f64,
    clipped: f64,
    mass_defect: f64,
}

impl<'m> Motion<'m> {
    pub fn start(model: &'m Model, plan: &Plan) -> Result<Self, FluidError> {
        Self::start_beside(model, plan, 0.0)
    }

    /// The same beside a mass `escaped` of servers that are not in `model` and hold infinitely many jobs.
    pub fn start_beside(model: &'m Model, plan: &Plan, escaped: f64) -> Result<Self, FluidError> {
        const SPARE: u32 = 4;
        let levels: Vec<u32> =
            (0..model.pools.len()).map(|j| plan.initial.top_level(model, j).saturating_add(SPARE)).collect();
        let states = StateSpace::new(model, &levels, plan.cut);
        check_size(&states)?;
        let occupancy = plan.initial.occupancy(model, &states);
        let field = Field::beside(model, &states, 0, escaped);
        let state = State { time: 0.0, occupancy, states, open: 0 };
        let mut motion = Self {
            model,
            escaped,
            tolerance: plan.tolerance,
            state,
            field,
            opening_until: None,
            stiff: false,
            relaxing: false,
            sinking: false,
            step: 0.0,
            events: Vec::new(),
            counts: StepCounts::default(),
            sliding: 0.0,
            clipped: 0.0,
            mass_defect: 0.0,
        };
        motion.find_mode();
        Ok(motion)
    }

    fn field_in(&self, open: usize) -> Field {
        Field::beside(self.model, &self.state.states, open, self.escaped)
    }

    /// [`Field::rate_scale`], never zero.
    pub fn rate_scale(&self) -> f64 {
        self.field.rate_scale().max(f64::MIN_POSITIVE)
    }

    /// Finds the mode at the present occupancy: the first tier with mass, unless an emptier one before
    /// it gains servers faster than arrivals can take them.
    fn find_mode(&mut self) {
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

    /// Uses the implicit method from now on, whatever the step: for relaxing, where accuracy is no aim.
    pub fn prefer_implicit(&mut self) {
        self.relaxing = true;
    }

    pub fn advance(&mut self, end: f64) -> Result<(), FluidError> {
        while self.state.time < end {
            self.advance_leg(end)?;
        }
        Ok(())
    }

    /// Integrates until `end` or the next event.
    fn advance_leg(&mut self, end: f64) -> Result<(), FluidError> {
        let end_of_opening = self.opening_until.unwrap_or(f64::INFINITY);
        let leg_end = end.min(end_of_opening);
        if leg_end - self.state.time <= 4.0 * f64::EPSILON * leg_end.abs() {
            // Closer than any step: an event fell on a time that was asked for.
            self.state.time = leg_end;
            self.end_opening(end_of_opening);
            return Ok(());
        }
        let implicit = self.opening_until.is_none() && self.wants_implicit();
        let leg =
            self.run(self.state.time, &self.state.occupancy.clone(), leg_end, self.step, implicit, true);
        match leg.stop {
            Stop::Stiff => self.stiff = true,
            Stop::Stuck if implicit && !self.sinking => self.sinking = true,
            Stop::Stuck if !implicit && !self.sinking && self.opening_until.is_none() => self.stiff = true,
            Stop::Stuck => return Err(FluidError::Stuck { time: leg.t }),
            Stop::Watched => return self.at_watched(&leg, implicit),
            Stop::End => {}
        }
        self.accept(leg.t, leg.q, leg.step);
        self.end_opening(end_of_opening);
        Ok(())
    }

    /// Past the time of opening, the tier's own mass says how it splits the stream.
    fn end_opening(&mut self, time: f64) {
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

    /// Is the composition of the open tier faster than everything else, and not about to run empty?
    fn wants_implicit(&self) -> bool {
        const FAST: f64 = 50.0;
        if self.sinking || self.relaxing {
            return !self.sinking;
        }
        let (q, d) = (&self.state.occupancy, &self.field.dispatch);
        let Some(mass) = d.open_mass(q).filter(|_| !d.single()) else { return self.stiff };
        let (reach, inflow) = (d.reach(q), self.field.tier_inflow(q));
        if reach <= FAST * self.rate_scale() * mass {
            // The composition is slow; services may be what made the explicit method give up.
            return self.stiff;
        }
        // Going down fast, the explicit method needs a few steps per halving of the mass only.
        let falling = reach - inflow > 0.01 * reach;
        self.stiff || !falling
    }

    /// One leg; `watched` says whether events end it.
    fn run(&mut self, t: f64, q: &[f64], end: f64, step: f64, implicit: bool, watched: bool) -> Leg {
        let tolerance = Tolerance::new(self.tolerance, q.len());
        let stretch = Stretch { t, q, end, first_step: step, tolerance };
        let Self { field, state, counts, .. } = self;
        let opening = field.composition == Composition::Inflow;
        let states = &state.states;
        let mut watch = |_: f64, q: &[f64]| {
            watched
                && (needs_levels(states, q)
                    || !opening && (runs_empty(field, q) || overflowing(field, q).is_some()))
        };
        if implicit {
            rosenbrock::integrate(field, states, stretch, counts, &mut watch)
        } else {
            explicit::integrate(field, stretch, counts, &mut watch)
        }
    }

    fn accept(&mut self, time: f64, q: Vec<f64>, step: f64) {
        if self.state.open > 0 {
            self.sliding += time - self.state.time;
        }
        self.state.time = time;
        self.state.occupancy = q;
        self.step = step;
        self.clipped = self.clipped.min(flows::clip(&self.state.states, &mut self.state.occupancy));
        self.mass_defect =
            self.mass_defect.max(flows::mass_defect(&self.state.states, &self.state.occupancy));
    }

    /// An accepted step crossed an event, or filled the largest level.
    fn at_watched(&mut self, leg: &Leg, implicit: bool) -> Result<(), FluidError> {
        if !self.relaxing && needs_levels(&self.state.states, &leg.q) {
            // A single step can carry mass beyond the largest level: it is taken again with more levels.
            self.accept(leg.before_t, leg.before_q.clone(), leg.t - leg.before_t);
            return self.grow(&leg.q);
        }
        let empties = self.opening_until.is_none() && runs_empty(&self.field, &leg.q);
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
                self.events.push(Event { time: t, kind: EventKind::Leave, tier });
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
        self.events.push(Event { time, kind: EventKind::Hit, tier: open });
        flows::lift(self.model, &self.state.states, open, &mut self.state.occupancy);
        self.find_mode();
    }

    /// Where `g` crosses zero within the leg's last step, by integrating that step again.
    fn locate(&mut self, leg: &Leg, implicit: bool, g: &dyn Fn(&Field, &[f64]) -> f64) -> (f64, Vec<f64>) {
        let (mut a, mut b) = (leg.before_t, leg.t);
        let (mut ga, mut gb) = (g(&self.field, &leg.before_q), g(&self.field, &leg.q));
        let mut best = (leg.t, leg.q.clone());
        if ga >= 0.0 {
            return (leg.before_t, leg.before_q.clone());
        }
        // Regula falsi with the Illinois rule: the side that stays keeps half its value.
        for _ in 0..80 {
            let t = (b - gb * (b - a) / (gb - ga)).clamp(a, b);
            if t <= a || t >= b {
                break;
            }
            let q = self.run(leg.before_t, &leg.before_q, t, t - leg.before_t, implicit, false).q;
            let gt = g(&self.field, &q);
            if gt > 0.0 {
                (b, gb) = (t, gt);
                ga *= 0.5;
            } else {
                (a, ga) = (t, gt);
                gb *= 0.5;
            }
            best = (t, q);
            if gt.abs() < 1e-17 || b - a <= 2.0 * f64::EPSILON * b {
                break;
            }
        }
        best
    }

    /// More levels for the pools whose largest one has mass in `filled`.
    fn grow(&mut self, filled: &[f64]) -> Result<(), FluidError> {
        let old = &self.state.states;
        let levels: Vec<u32> = old
            .pools
            .iter()
            .map(|p| if top_mass(p, filled) > GROW_AT { p.more_levels() } else { p.levels })
            .collect();
        let cut = old.pools.iter().map(|p| p.top).find(|t| *t != Top::Buffer).unwrap_or(Top::Reflecting);
        let states = StateSpace::new(self.model, &levels, cut);
        check_size(&states)?;
        let infinite = states.pools.iter().zip(&self.model.pools).filter(|(_, p)| p.buffer.is_none());
        if self.relaxing && infinite.map(|(s, _)| s.levels).max().unwrap_or(0) > MOST_RELAXED_LEVELS {
            return Err(FluidError::TooManyLevels { states: states.len(), most: old.len() });
        }
        self.state.occupancy = transfer(old, &states, &self.state.occupancy);
        self.state.states = states;
        let (composition, open) = (self.field.composition, self.state.open);
        // With a tier per level, "no tier is open" is a statement about the levels there were.
        self.field = self.field_in(open);
        self.field.composition = composition;
        Ok(())
    }

    pub fn snapshot(&self) -> Snapshot {
        let State { time, occupancy: q, states, .. } = &self.state;
        let Flows { pools, .. } = flows::flows(&self.field, states, q);
        let lambda = self.model.arrival_rate;
        let share = |f: &dyn Fn(&flows::PoolFlows) -> f64| {
            if lambda > 0.0 { pools.iter().map(f).sum::<f64>() / lambda } else { 0.0 }
        };
        Snapshot {
            time: *time,
            idle: states.pools.iter().map(|p| q[p.offset]).collect(),
            tails: (0..states.pools.len()).map(|j| trim(states.tails(j, q))).collect(),
            jobs: pools.iter().map(|p| p.jobs).collect(),
            to_idle: pools.iter().map(|p| p.to_idle).sum(),
            p_idle: share(&|f| f.idle),
            p_wait: share(&|f| f.wait),
            p_block: share(&|f| f.block),
        }
    }

    pub fn finish(self, snapshots: Vec<Snapshot>) -> Path {
        Path {
            snapshots,
            events: self.events,
            counts: self.counts,
            sliding: self.sliding,
            clipped: self.clipped,
            mass_defect: self.mass_defect,
            end: self.state,
        }
    }

    /// The field of the present mode.
    pub fn field(&self) -> &Field {
        &self.field
    }
}

/// Tails without the zeros at the end.
fn trim(mut tails: Vec<f64>) -> Vec<f64> {
    while tails.len() > 1 && tails.last() == Some(&0.0) {
        tails.pop();
    }
    tails
}

fn top_mass(pool: &crate::model::PoolStates, q: &[f64]) -> f64 {
    // An absorbing top may hold any mass: what counts is the level below it.
    let top = if pool.top == Top::Absorbing { pool.levels - 1 } else { pool.levels };
    if !pool.is_cut() { 0.0 } else { q[pool.level(top)].iter().sum() }
}

fn needs_levels(states: &StateSpace, q: &[f64]) -> bool {
    states.pools.iter().any(|p| top_mass(p, q) > GROW_AT)
}

fn runs_empty(field: &Field, q: &[f64]) -> bool {
    let d = &field.dispatch;
    let least = if d.single() { 0.0 } else { EMPTY };
    d.open_mass(q).is_some_and(|mass| mass <= least) && field.tier_inflow(q) < d.reach(q)
}

/// The servers that come to closed tier `tier`, less the stream that reaches it.
fn surplus(field: &Field, q: &[f64], tier: usize) -> f64 {
    (0..=tier).map(|i| field.dispatch.absorbed(i, q)).sum::<f64>() - field.dispatch.arrival_rate
}

/// The first closed tier that gains servers faster than arrivals can take them.
fn overflowing(field: &Field, q: &[f64]) -> Option<usize> {
    let mut sum = 0.0;
    (0..field.dispatch.closed.len()).find(|&i| {
        sum += field.dispatch.absorbed(i, q);
        sum > field.dispatch.arrival_rate
    })
}

fn check_size(states: &StateSpace) -> Result<(), FluidError> {
    if states.len() > MOST_STATES {
        return Err(FluidError::TooManyLevels { states: states.len(), most: MOST_STATES });
    }
    Ok(())
}

/// The occupancy over a state space with more levels. Servers at an absorbing top stay at the top.
pub(super) fn transfer(old: &StateSpace, new: &StateSpace, q: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; new.len()];
    for (a, b) in old.pools.iter().zip(&new.pools) {
        out[b.offset..b.offset + a.len().min(b.len())].copy_from_slice(&q[a.range()][..a.len().min(b.len())]);
        if a.top == Top::Absorbing && b.levels > a.levels {
            let top = if b.top == Top::Absorbing { b.levels } else { a.levels };
            for (from, to) in a.level(a.levels).zip(b.level(top)) {
                out[b.offset + from - a.offset] = 0.0;
                out[to] = q[from];
            }
        }
    }
    out
}
