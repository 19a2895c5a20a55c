//! From an initial occupancy through time: stretches of smooth motion, and the events between them.
//!
//! Within one mode (see [`super::dispatch`]) the drift is smooth. A stretch ends when the open tier
//! runs empty (the path begins to slide on the boundary, or slides further up), or when services move
//! more servers into a closed tier than arrivals can take (the tier opens again and the path leaves
//! the boundary). Both times are located by integrating the last step again to the root. Behind a tier
//! that has just opened, mass is too small to divide by: for a moment the split over its states is
//! the quasi-steady one, then an L-stable method carries the fast relaxation of the composition.

mod modes;

use super::drift::{Composition, Field};
use super::flows::{self, Flows};
use super::path::{Event, Path, Plan, Snapshot, State};
use super::rosenbrock::Structured;
use super::step::{Leg, StepCounts, Stop, Stretch, Tolerance, lowest_entry};
use super::{FluidError, explicit, rosenbrock, routers};
use crate::model::{Model, StateSpace, Top};

/// Mass at the largest level represented that makes the level count grow.
const GROW_AT: f64 = 1e-18;
/// Mass below which an open tier with several states counts as empty, over the tolerance. The path is moved
/// by less than this; the time by this over the rate at which the mass falls.
const EMPTY: f64 = 1e-3;
/// The composition of a tier changes at rate reach / mass: steps of its inverse must be this many times what
/// the clock resolves, so late in a long run a tier counts as empty earlier.
const CLOCK: f64 = 100.0 * f64::EPSILON;
/// An accepted step with an entry below this is projected back before the path goes on.
const NEGATIVE: f64 = -1e-14;
/// More states than this are refused.
const MOST_STATES: usize = 20_000_000;

/// Integrates the fluid limit of `model`.
///
/// # Errors
/// If the step size underflows, or the tail grows past what can be represented.
pub fn integrate(model: &Model, plan: &Plan) -> Result<Path, FluidError> {
    if let Some(several) = &model.policy.routers {
        return routers::integrate(model, several, plan);
    }
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
    /// While relaxing to rest: the levels of an infinite pool beyond which it is taken to fill up for ever.
    relaxing: Option<u32>,
    /// The implicit method got stuck: the open tier is about to run empty, and its composition singular.
    /// The explicit one needs a few steps per halving of the mass.
    sinking: bool,
    /// Explicit steps in this mode that fell below zero: at the limit of stability they oscillate there.
    setbacks: u32,
    step: f64,
    events: Vec<Event>,
    counts: StepCounts,
    sliding: f64,
    clipped: f64,
    lowest: f64,
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
            relaxing: None,
            sinking: false,
            setbacks: 0,
            step: 0.0,
            events: Vec::new(),
            counts: StepCounts::default(),
            sliding: 0.0,
            clipped: 0.0,
            lowest: 0.0,
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

    /// Uses the implicit method from now on, whatever the step: for relaxing, where accuracy is no aim.
    /// An infinite pool that needs more than `levels` is an error.
    pub fn relax(&mut self, levels: u32) {
        self.relaxing = Some(levels);
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

    /// Is the composition of the open tier faster than everything else, and not about to run empty?
    fn wants_implicit(&self) -> bool {
        const FAST: f64 = 50.0;
        if self.sinking || self.relaxing.is_some() {
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
        let accuracy = self.tolerance;
        let Self { field, state, counts, lowest, mass_defect, .. } = self;
        let opening = field.composition == Composition::Inflow;
        let states = &state.states;
        let mut watch = |t: f64, q: &[f64]| {
            if !watched {
                return false;
            }
            let least = lowest_entry(q);
            let stops = least < NEGATIVE
                || needs_levels(states, q)
                || !opening
                    && (modes::runs_empty(field, q, t, accuracy) || modes::overflowing(field, q).is_some());
            if !stops {
                *lowest = lowest.min(least);
                *mass_defect = mass_defect.max(flows::mass_defect(states, q));
            }
            stops
        };
        if implicit {
            rosenbrock::integrate(&Structured { field, states }, stretch, counts, &mut watch)
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
        if self.relaxing.is_some_and(|most| infinite.map(|(s, _)| s.levels).max().unwrap_or(0) > most) {
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
            messages: Vec::new(),
            stale: Vec::new(),
            idle: states.pools.iter().map(|p| q[p.offset]).collect(),
            tails: (0..states.pools.len()).map(|j| trim(states.tails(j, q))).collect(),
            phases: (0..states.pools.len()).map(|j| states.by_phase(j, q)).collect(),
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
            lowest: self.lowest,
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
