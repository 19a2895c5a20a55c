//! Which routers have messages, when that changes, and how the path goes on from there.

use super::field::{Field, Mode};
use super::motion::{Motion, NEGATIVE, needs_levels};
use crate::fluid::FluidError;
use crate::fluid::drift::{Drift, Scratch};
use crate::fluid::path::{Event, EventKind};
use crate::fluid::root::crossing;
use crate::fluid::step::{Leg, lowest_entry};

/// Differences of rates this small, relatively, are rounding.
const TIE: f64 = 1e-13;
/// So many explicit steps that fall below zero in one mode mean that it is at its limit of stability.
const MOST_SETBACKS: u32 = 20;

impl Motion<'_> {
    /// Finds the modes at the present occupancy: a router without messages begins to have some if more
    /// come than it can use, or are about to.
    pub(super) fn find_modes(&mut self) {
        const NO_MASS: f64 = 1e-15;
        let mut modes = Vec::with_capacity(self.routers.len());
        for r in 0..self.routers.len() {
            let held = self.field.held(r, &self.q);
            if held > NO_MASS {
                modes.push(Mode::Open);
                continue;
            }
            self.field.use_up(r, &mut self.q);
            modes.push(Mode::Empty);
        }
        self.enter(modes);
        self.open_where_due();
    }

    /// Mass below which a router whose messages are of several kinds counts as out of them. Far enough above
    /// what the integrators look at: what is smaller they do not damp, and it never gets to zero.
    pub(super) fn empty(&self) -> f64 {
        (0.01 * self.tolerance).max(1e-13)
    }

    /// Lets those empty routers begin to have messages that get more than they can use, or are about to.
    fn open_where_due(&mut self) -> Vec<usize> {
        let rising = self.rise_of_messages();
        let due = |r: usize| {
            if self.field.modes[r] != Mode::Empty {
                return false;
            }
            let (surplus, stream) = (self.field.surplus(r, &self.q), self.field.streams[r]);
            let rise = self.field.messages[r] * rising;
            let tie = TIE * (stream + self.field.messages[r] * self.model.arrival_rate);
            if surplus.abs() > tie { surplus > 0.0 } else { rise > TIE * self.field.rate_scale() * stream }
        };
        let due: Vec<usize> = (0..self.routers.len()).filter(|&r| due(r)).collect();
        if due.is_empty() {
            return due;
        }
        let mut modes = self.field.modes.clone();
        due.iter().for_each(|&r| modes[r] = if self.field.single(r) { Mode::Open } else { Mode::Opening });
        let opening = modes.contains(&Mode::Opening).then(|| self.time + self.opening_time(&due, rising));
        self.enter(modes);
        self.opening_until = opening;
        due
    }

    /// d/dt of the rate at which messages are sent, in the present modes.
    fn rise_of_messages(&self) -> f64 {
        let mut dq = vec![0.0; self.q.len()];
        let inside = self.field.eval(&self.q, &mut dq, &mut Scratch::default());
        if inside { self.field.sent(&dq) } else { 0.0 }
    }

    fn enter(&mut self, modes: Vec<Mode>) {
        self.field = self.field_in(modes);
        self.stiff = false;
        self.sinking = false;
        self.setbacks = 0;
        self.step = 0.0;
        self.opening_until = None;
    }

    /// How long messages may be taken to be used as they come. The error of that is of the order of
    /// their mass times the time, so the time is chosen to make it a hundredth of the tolerance.
    fn opening_time(&self, due: &[usize], rising: f64) -> f64 {
        let budget = 0.01 * self.tolerance;
        let scale = self.field.rate_scale();
        let surplus = due.iter().map(|&r| self.field.surplus(r, &self.q)).fold(0.0, f64::max);
        let rising = due.iter().map(|&r| self.field.messages[r] * rising).fold(0.0, f64::max);
        // Mass is surplus * s + rising * s^2 / 2; where messages come from changes at rate `scale`.
        let by_jump = (budget / (surplus * scale)).sqrt() / scale.max(1.0);
        let by_slope = (2.0 * budget / (rising * scale)).cbrt() / scale.max(1.0);
        by_jump.min(by_slope).min(1e-3 / scale)
    }

    /// Past the time of opening, a router's messages say themselves which of them is used.
    pub(super) fn end_opening(&mut self, time: f64) {
        if self.time < time {
            return;
        }
        let open = |mode: &Mode| if *mode == Mode::Opening { Mode::Open } else { *mode };
        let modes: Vec<Mode> = self.field.modes.iter().map(open).collect();
        let touched = (0..modes.len())
            .any(|r| self.field.modes[r] == Mode::Opening && self.field.held(r, &self.q) <= 0.0);
        self.enter(modes);
        if touched {
            // It did not open after all: a touch of the boundary.
            self.find_modes();
        }
    }

    /// An accepted step crossed an event, or filled the largest level.
    pub(super) fn at_watched(&mut self, leg: &Leg, implicit: bool) -> Result<(), FluidError> {
        if needs_levels(&self.space, &leg.q) {
            // A single step can carry mass beyond the largest level: it is taken again with more levels.
            self.accept(leg.before_t, leg.before_q.clone(), leg.t - leg.before_t);
            return self.grow(&leg.q);
        }
        if !implicit && lowest_entry(&leg.q) < NEGATIVE {
            self.setbacks += 1;
            self.stiff |= self.setbacks > MOST_SETBACKS;
        }
        let out = running_out(&self.field, &leg.q, self.empty()).map(|r| {
            if self.field.single(r) {
                self.locate(leg, implicit, &|field, q| -field.held(r, q))
            } else {
                (leg.t, leg.q.clone())
            }
        });
        let back = coming_back(&self.field, &leg.q)
            .filter(|_| self.opening_until.is_none())
            .map(|r| self.locate(leg, implicit, &|field, q| field.surplus(r, q)));
        match (out, back) {
            (Some((t, q)), back) if back.as_ref().is_none_or(|(t_back, _)| t <= *t_back) => {
                self.accept(t, q, 0.0);
                self.run_out();
            }
            (_, Some((t, q))) => {
                self.accept(t, q, 0.0);
                let opened = self.open_where_due();
                if opened.is_empty() {
                    // A touch that rounding made a crossing.
                    self.accept(leg.t, leg.q.clone(), leg.step);
                }
                let event =
                    |router| Event { time: t, kind: EventKind::Leave, tier: 1, router: Some(router + 1) };
                self.events.extend(opened.into_iter().map(event));
            }
            _ => self.accept(leg.t, leg.q.clone(), leg.step),
        }
        if needs_levels(&self.space, &self.q) {
            let filled = self.q.clone();
            self.grow(&filled)?;
        }
        Ok(())
    }

    /// Routers have run out of messages: what little they hold is used, and the mode changes.
    fn run_out(&mut self) {
        let (mut modes, empty) = (self.field.modes.clone(), self.empty());
        for (r, mode) in modes.iter_mut().enumerate() {
            if is_running_out(&self.field, r, &self.q, empty) {
                let held = self.field.held(r, &self.q).max(0.0);
                let time = self.time + held / -self.field.surplus(r, &self.q);
                self.events.push(Event { time, kind: EventKind::Hit, tier: 1, router: Some(r + 1) });
                self.field.use_up(r, &mut self.q);
                *mode = Mode::Empty;
            }
        }
        let opening_until = self.opening_until;
        self.enter(modes);
        self.opening_until = opening_until;
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

/// Does router r hold no more than `least`, and less and less?
fn is_running_out(field: &Field, r: usize, q: &[f64], least: f64) -> bool {
    field.modes[r] == Mode::Open && field.held(r, q) <= least && field.surplus(r, q) < 0.0
}

/// A router that runs out of messages at q; `empty` is what counts as none where messages are of several
/// kinds.
pub(super) fn running_out(field: &Field, q: &[f64], empty: f64) -> Option<usize> {
    let least = |r: usize| if field.single(r) { 0.0 } else { empty };
    (0..field.modes.len()).find(|&r| is_running_out(field, r, q, least(r)))
}

/// The empty router that gets most messages beyond those it can use.
pub(super) fn coming_back(field: &Field, q: &[f64]) -> Option<usize> {
    let sent = field.sent(q);
    let empty = (0..field.modes.len()).filter(|&r| field.modes[r] == Mode::Empty);
    let surplus = |r: usize| field.messages[r] * sent / field.streams[r].max(f64::MIN_POSITIVE);
    let first = empty.max_by(|&a, &b| surplus(a).total_cmp(&surplus(b)))?;
    (field.surplus(first, q) > TIE * field.streams[first]).then_some(first)
}
