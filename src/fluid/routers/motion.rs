//! From an initial occupancy through time with several routers: stretches of smooth motion, and the
//! events between them. The plan is that of [`crate::fluid::integrate`]; here every router has its own
//! boundary (no message left), and all of them share the randomly routed stream.

use super::field::{Field, Mode};
use super::space::Space;
use super::{flows, modes};
use crate::fluid::path::{Event, Path, Plan, Snapshot, State};
use crate::fluid::step::{Leg, StepCounts, Stop, Stretch, Tolerance, lowest_entry};
use crate::fluid::{FluidError, explicit, rosenbrock};
use crate::model::{Model, Routers, Top};

/// Mass at the largest level represented that makes the level count grow.
const GROW_AT: f64 = 1e-18;
/// An accepted step with an entry below this is projected back before the path goes on.
pub(super) const NEGATIVE: f64 = -1e-14;
/// More states than this are refused.
const MOST_STATES: usize = 5_000_000;
/// Routers times states above which the implicit method costs more than it saves.
const MOST_WORK: usize = 10_000_000;

/// Messages that are used so many times as fast as anything else happens are left to the implicit method.
const FAST: f64 = 50.0;

/// The moving point.
pub(super) struct Motion<'m> {
    pub model: &'m Model,
    pub routers: &'m Routers,
    pub tolerance: f64,
    pub time: f64,
    pub q: Vec<f64>,
    pub space: Space,
    pub field: Field,
    /// Until when routers that have just begun to have messages use them as they come.
    pub opening_until: Option<f64>,
    pub stiff: bool,
    /// The implicit method got stuck: a router is about to run out of messages. The explicit one needs a
    /// few steps per halving of what is left.
    pub sinking: bool,
    /// An infinite buffer that needs more levels than this is an error.
    pub most_levels: u32,
    /// Explicit steps in this mode that fell below zero.
    pub setbacks: u32,
    pub step: f64,
    pub events: Vec<Event>,
    counts: StepCounts,
    sliding: f64,
    clipped: f64,
    lowest: f64,
    mass_defect: f64,
}

impl<'m> Motion<'m> {
    pub fn start(model: &'m Model, routers: &'m Routers, plan: &Plan) -> Result<Self, FluidError> {
        const SPARE: u32 = 4;
        let levels: Vec<u32> =
            (0..model.pools.len()).map(|j| plan.initial.top_level(model, j).saturating_add(SPARE)).collect();
        let space = Space::new(model, routers, &levels, plan.cut);
        check_size(&space)?;
        let by_level = plan.initial.occupancy(model, &space.states);
        let mut q = vec![0.0; space.len()];
        for (j, pool) in space.states.pools.iter().enumerate() {
            let held = plan.initial.held_messages(model, routers, j);
            q[space.level(j, 0)].copy_from_slice(&held);
            for k in 1..=pool.levels {
                q[space.busy(j, k, None)] = by_level[pool.level(k).start];
            }
        }
        let modes = vec![Mode::Empty; routers.len()];
        let field = Field::new(&space, routers, model.arrival_rate, modes);
        let mut motion = Self {
            model,
            routers,
            tolerance: plan.tolerance,
            time: 0.0,
            q,
            space,
            field,
            opening_until: None,
            stiff: false,
            sinking: false,
            most_levels: u32::MAX,
            setbacks: 0,
            step: 0.0,
            events: Vec::new(),
            counts: StepCounts::default(),
            sliding: 0.0,
            clipped: 0.0,
            lowest: 0.0,
            mass_defect: 0.0,
        };
        motion.find_modes();
        Ok(motion)
    }

    pub fn advance(&mut self, end: f64) -> Result<(), FluidError> {
        while self.time < end {
            self.advance_leg(end)?;
        }
        Ok(())
    }

    /// Integrates until `end` or the next event.
    fn advance_leg(&mut self, end: f64) -> Result<(), FluidError> {
        let end_of_opening = self.opening_until.unwrap_or(f64::INFINITY);
        let leg_end = end.min(end_of_opening);
        if leg_end - self.time <= 4.0 * f64::EPSILON * leg_end.abs() {
            // Closer than any step: an event fell on a time that was asked for.
            self.time = leg_end;
            self.end_opening(end_of_opening);
            return Ok(());
        }
        let implicit = self.opening_until.is_none() && self.wants_implicit();
        let leg = self.run(self.time, &self.q.clone(), leg_end, self.step, implicit, true);
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

    /// Are some router's few messages used faster than everything else, and not about to run out?
    fn wants_implicit(&self) -> bool {
        if self.sinking || self.space.len() * self.routers.len() > MOST_WORK {
            return false;
        }
        // Going down fast, the explicit method needs a few steps per halving of the mass only.
        let falls = |r: usize| -self.field.surplus(r, &self.q) > 0.01 * self.field.streams[r];
        self.stiff || fast(&self.field, &self.q, FAST).any(|r| !falls(r))
    }

    /// One leg; `watched` says whether events end it.
    pub fn run(&mut self, t: f64, q: &[f64], end: f64, step: f64, implicit: bool, watched: bool) -> Leg {
        let tolerance = Tolerance::new(self.tolerance, q.len());
        let stretch = Stretch { t, q, end, first_step: step, tolerance };
        let (opening, empty) = (self.opening_until.is_some(), self.empty());
        // A step of the implicit method costs much more than one of the explicit: back as soon as may be.
        let passing = implicit && !self.stiff;
        let Self { field, space, counts, lowest, mass_defect, .. } = self;
        let mut watch = |_: f64, q: &[f64]| {
            if !watched {
                return false;
            }
            let least = lowest_entry(q);
            let stops = least < NEGATIVE
                || needs_levels(space, q)
                || modes::running_out(field, q, empty).is_some()
                || passing && fast(field, q, 0.5 * FAST).next().is_none()
                || !opening && modes::coming_back(field, q).is_some();
            if !stops {
                *lowest = lowest.min(least);
                *mass_defect = mass_defect.max(field.mass_defect(q));
            }
            stops
        };
        if implicit {
            rosenbrock::integrate(field, stretch, counts, &mut watch)
        } else {
            explicit::integrate(field, stretch, counts, &mut watch)
        }
    }

    pub fn accept(&mut self, time: f64, q: Vec<f64>, step: f64) {
        if self.field.modes.contains(&Mode::Empty) {
            self.sliding += time - self.time;
        }
        self.time = time;
        self.q = q;
        self.step = step;
        self.clipped = self.clipped.min(self.field.clip(&mut self.q));
        self.mass_defect = self.mass_defect.max(self.field.mass_defect(&self.q));
    }

    /// The field of the present state space in these modes.
    pub fn field_in(&self, modes: Vec<Mode>) -> Field {
        Field::new(&self.space, self.routers, self.model.arrival_rate, modes)
    }

    /// More levels for the pools whose largest one has mass in `filled`.
    pub fn grow(&mut self, filled: &[f64]) -> Result<(), FluidError> {
        let old = &self.space.states;
        let more = |j: usize| {
            let p = &old.pools[j];
            if self.space.top_mass(j, filled) > GROW_AT { p.more_levels() } else { p.levels }
        };
        let levels: Vec<u32> = (0..old.pools.len()).map(more).collect();
        let cut = old.pools.iter().map(|p| p.top).find(|t| *t != Top::Buffer).unwrap_or(Top::Reflecting);
        let (space, q) = self.space.with_levels(self.model, &levels, cut, &self.q);
        check_size(&space)?;
        let cut = space.states.pools.iter().filter(|p| p.is_cut()).map(|p| p.levels).max();
        if cut.is_some_and(|levels| levels > self.most_levels) {
            return Err(FluidError::TooManyLevels { states: space.len(), most: self.space.len() });
        }
        (self.space, self.q) = (space, q);
        self.field = self.field_in(self.field.modes.clone());
        Ok(())
    }

    pub fn snapshot(&self) -> Snapshot {
        flows::snapshot(self.time, &self.field, &self.space, &self.q)
    }

    pub fn finish(self, snapshots: Vec<Snapshot>) -> Path {
        let open = usize::from(self.field.modes.iter().all(|m| *m == Mode::Empty));
        let occupancy = self.space.without_holders(&self.q);
        Path {
            snapshots,
            events: self.events,
            counts: self.counts,
            sliding: self.sliding,
            clipped: self.clipped,
            lowest: self.lowest,
            mass_defect: self.mass_defect,
            end: State { time: self.time, occupancy, states: self.space.states, open },
        }
    }
}

/// Routers whose few messages are used more than `factor` times as fast as anything else happens.
fn fast<'f>(field: &'f Field, q: &'f [f64], factor: f64) -> impl Iterator<Item = usize> + 'f {
    let least = factor * field.rate_scale();
    (0..field.modes.len()).filter(move |&r| {
        field.modes[r] == Mode::Open && !field.single(r) && field.streams[r] > least * field.held(r, q)
    })
}

pub(super) fn needs_levels(space: &Space, q: &[f64]) -> bool {
    (0..space.states.pools.len()).any(|j| space.top_mass(j, q) > GROW_AT)
}

fn check_size(space: &Space) -> Result<(), FluidError> {
    if space.len() > MOST_STATES {
        return Err(FluidError::TooManyLevels { states: space.len(), most: MOST_STATES });
    }
    Ok(())
}
