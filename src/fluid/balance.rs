//! Fixed points of policies with one arrival rate: a scalar equation.
//!
//! In a mode where all servers that receive jobs do so at one rate phi (an open tier, or uniform
//! random routing below closed tiers), each pool at rest is a Markov chain of its own once phi is
//! known. What is left is the balance of the stream: what the closed tiers absorb, plus phi times the
//! mass that receives, is lambda. The left side does not decrease in phi, so the root is bracketed and
//! bisected; it stays exact near criticality, for hundreds of pools and for buffers of a million.
//!
//! For an open idle tier this is the paper's equation for x* (Stolyar 2015); for the sliding mode it was
//! derived, and agrees with the lower invariant measure: infinite pools slower than phi fill up for ever.

use super::dispatch::Target;
use super::drift::Field;
use super::linear::factor_pools;
use crate::model::{Model, Move, Pool, StateSpace, Tiers, Top};
use nalgebra::{DMatrix, DVector};

/// Where the balance holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Balance {
    /// The mode: index of the first open tier.
    pub open: usize,
    /// Rate at which one receiving server gets jobs.
    pub rate: f64,
    /// Pools that fill up for ever, with their growth of jobs per server.
    pub escaped: Vec<Option<f64>>,
}

/// Mass left out at the far end of a geometric tail.
const TAIL: f64 = 1e-18;
/// Levels beyond which a tail is cut whatever its mass.
const MOST_LEVELS: f64 = 3e6;

/// The balance of `model`; `None` if its fixed point needs the rates of several levels (a fallback that
/// samples two servers or more).
pub(super) fn find(model: &Model) -> Option<Balance> {
    let lambda = model.arrival_rate;
    if lambda == 0.0 {
        return Some(Balance { open: 0, rate: 0.0, escaped: vec![None; model.pools.len()] })
            .filter(|_| model.policy.tiers.count() != Some(0) || model.policy.fallback.d == 1);
    }
    // A load within rounding of critical is critical.
    #[allow(clippy::cast_precision_loss)]
    let rounding = f64::EPSILON * (4 + model.pools.len()) as f64;
    let overloads = |most: f64| lambda > most * (1.0 + rounding);
    let tiers = match &model.policy.tiers {
        Tiers::List(tiers) => tiers.len(),
        Tiers::EveryLevel if !overloads(model.capacity()) => 1,
        Tiers::EveryLevel => match model.pools.iter().map(|p| p.buffer).collect::<Option<Vec<u32>>>() {
            Some(buffers) => buffers.into_iter().max().unwrap_or(0) as usize,
            None => return Some(every_level_overflows(model)),
        },
    };
    // Join the shortest queue with finite buffers in overload: all servers are full.
    let full = matches!(model.policy.tiers, Tiers::EveryLevel) && overloads(model.capacity());
    let proper = |open, rate| Some(Balance { open, rate, escaped: vec![None; model.pools.len()] });
    for open in if full { tiers } else { 0 }..tiers {
        let most = Chains::new(model, open + 1).balance(0.0);
        if lambda < most * (1.0 - rounding) {
            return proper(open, Chains::new(model, open).root(lambda));
        }
        if !overloads(most) {
            // Critical: the tier runs empty in the limit, and nothing passes it.
            return proper(open + 1, 0.0);
        }
    }
    if full {
        return proper(tiers, 0.0);
    }
    if model.policy.fallback.d > 1 {
        return None;
    }
    let rate = Chains::new(model, tiers).root(lambda);
    let slow = |p: &Pool| p.buffer.is_none() && p.service_rate() <= rate * (1.0 + rounding);
    let growth = |p: &Pool| {
        let surplus = rate - p.service_rate();
        slow(p).then_some(if surplus > rate * rounding { surplus } else { 0.0 })
    };
    Some(Balance { open: tiers, rate, escaped: model.pools.iter().map(growth).collect() })
}

/// Join the shortest queue above capacity with an infinite pool: finite pools are full, and all
/// servers of the infinite ones rise together.
fn every_level_overflows(model: &Model) -> Balance {
    let infinite: f64 = model.pools.iter().filter(|p| p.buffer.is_none()).map(|p| p.share).sum();
    let growth = (model.arrival_rate - model.capacity()) / infinite;
    let escaped = model.pools.iter().map(|p| p.buffer.is_none().then_some(growth)).collect();
    let highest = model.pools.iter().filter_map(|p| p.buffer).max().unwrap_or(1);
    Balance { open: highest as usize, rate: 0.0, escaped }
}

/// The pools' chains in one mode, as functions of the rate.
struct Chains<'m> {
    model: &'m Model,
    states: StateSpace,
    field: Field,
    /// For moves from the largest level of an infinite pool, the pool.
    top: Vec<Option<usize>>,
}

/// Is `open` past the listed tiers? With a tier for every level, random routing never comes.
fn reaches_fallback(model: &Model, open: usize) -> bool {
    open >= model.policy.tiers.count().unwrap_or(usize::MAX)
}

/// Levels enough to hold all that is not a geometric tail.
fn core_levels(model: &Model, open: usize) -> u32 {
    let listed = match &model.policy.tiers {
        Tiers::List(tiers) => tiers.iter().map(|t| t.highest(model.pools.len())).max().unwrap_or(0),
        Tiers::EveryLevel => u32::try_from(open).unwrap_or(u32::MAX - 8),
    };
    // Beyond the levels with speeds of their own too.
    let speeds = model.pools.iter().map(Pool::speed_levels).max().unwrap_or(1);
    listed.max(speeds).saturating_add(3)
}

impl<'m> Chains<'m> {
    fn new(model: &'m Model, open: usize) -> Self {
        let core = core_levels(model, open);
        let fallback = reaches_fallback(model, open);
        // Where no random routing feeds the upper levels, they are empty: the core is enough.
        let levels: Vec<u32> =
            model.pools.iter().map(|p| p.buffer.filter(|_| fallback).map_or(core, |b| b.max(1))).collect();
        let states = StateSpace::new(model, &levels, Top::Reflecting);
        let field = Field::new(model, &states, open);
        let mut top = vec![None; states.len()];
        for (j, pool) in states.pools.iter().enumerate().filter(|(_, p)| p.is_cut()) {
            top[pool.level(pool.levels)].fill(Some(j));
        }
        Self { model, states, field, top }
    }

    /// What the stream must bring for the rate to be `rate`: absorbed by closed tiers, plus received.
    fn balance(&self, rate: f64) -> f64 {
        let phases = |p: &Pool| p.buffer.is_none() && p.law.phases() > 1;
        if matches!(self.field.dispatch.target, Target::Fallback(_)) && self.model.pools.iter().any(phases) {
            return Self::long_enough(self.model, self.field.open, rate).balance_here(rate);
        }
        self.balance_here(rate)
    }

    fn balance_here(&self, rate: f64) -> f64 {
        let q = self.rest(rate);
        let received = match &self.field.dispatch.target {
            Target::Tier { .. } => self.field.dispatch.open_mass(&q).unwrap_or(0.0),
            // Every server receives at this rate, full and escaped ones too.
            Target::Fallback(_) => 1.0,
        };
        rate * received - self.field.dispatch.reach_change(&q)
    }

    /// The pools' chains with levels enough for what infinite pools with phases hold at `rate`: where the
    /// rates of the levels are constant their tails fall by the decay of an M/PH/1 queue.
    fn long_enough(model: &'m Model, open: usize, rate: f64) -> Self {
        let states = StateSpace::new(model, &levels_at(model, open, rate), Top::Reflecting);
        let field = Field::new(model, &states, open);
        let top = vec![None; states.len()];
        Self { model, states, field, top }
    }

    /// Each pool's law at rest when receiving servers get jobs at `rate`; an infinite pool's largest
    /// level holds its whole geometric tail. Pools that would overflow are left empty.
    fn rest(&self, rate: f64) -> Vec<f64> {
        let slow = |j: usize| {
            let pool = &self.model.pools[j];
            matches!(self.field.dispatch.target, Target::Fallback(_))
                && pool.buffer.is_none()
                && pool.service_rate() <= rate
        };
        let factor = |s: usize| match self.top[s] {
            Some(j) if matches!(self.field.dispatch.target, Target::Fallback(_)) => {
                (1.0 - rate / self.model.pools[j].service_rate()).max(f64::MIN_POSITIVE)
            }
            _ => 1.0,
        };
        let services = self.field.moves.iter().map(|m| Move { rate: m.rate * factor(m.from), ..*m });
        let mut q = at_rest(&self.states, &self.field, services, rate);
        for (_, states) in self.states.pools.iter().enumerate().filter(|(j, _)| slow(*j)) {
            q[states.range()].fill(0.0);
        }
        q
    }

    /// The rate at which the balance is `lambda`.
    fn root(&self, lambda: f64) -> f64 {
        const LARGEST: f64 = 1e300;
        /// So close to the root the secant's next step is rounding.
        const CLOSE: f64 = 1e-12;
        if matches!(self.field.dispatch.target, Target::Fallback(_)) && self.field.open == 0 {
            // Nothing absorbs: every server gets jobs at the rate of all.
            return lambda;
        }
        let short = |rate: f64| self.balance(rate) - lambda;
        let (mut low, mut high) = (0.0, lambda);
        let (mut f_low, mut f_high) = (short(low), short(high));
        while f_high < 0.0 && high < LARGEST {
            (low, f_low) = (high, f_high);
            high *= 4.0;
            f_high = short(high);
        }
        // Regula falsi with the Illinois rule comes near the root at once; bisection after every other step,
        // since the balance may have kinks (pools that begin to overflow), and to the last bit at the end.
        for step in 0..1200 {
            let middle = 0.5 * (low + high);
            let guess = high - f_high * (high - low) / (f_high - f_low);
            let inside = |x: f64| x > low && x < high;
            if !inside(middle) {
                break;
            }
            let by_secant = step % 2 == 0 && inside(guess) && high - low > 4.0 * CLOSE * high;
            let at = if by_secant { guess } else { middle };
            let f = short(at);
            if f < 0.0 {
                (low, f_low, f_high) = (at, f, if by_secant { 0.5 * f_high } else { f_high });
            } else {
                (high, f_high, f_low) = (at, f, if by_secant { 0.5 * f_low } else { f_low });
            }
            // The root is near the guess: close the bracket around it from both sides.
            for side in [1.0 - CLOSE, 1.0 + CLOSE].map(|s| s * at).into_iter().filter(|_| by_secant) {
                if side > low && side < high && high - low < 1e-3 * high {
                    let f = short(side);
                    if f < 0.0 { (low, f_low) = (side, f) } else { (high, f_high) = (side, f) }
                }
            }
        }
        high
    }
}

/// The occupancy of the pools that do not escape, over enough levels to hold it, in the balance found.
/// `model` is the model without the escaped pools.
pub(super) fn occupancy(model: &Model, balance: &Balance) -> (StateSpace, Vec<f64>) {
    let states = StateSpace::new(model, &levels_at(model, balance.open, balance.rate), Top::Reflecting);
    let field = Field::new(model, &states, balance.open);
    let q = at_rest(&states, &field, field.moves.iter().copied(), balance.rate);
    (states, q)
}

/// Levels that hold all but nothing of each pool's mass at rest when receiving servers get jobs at `rate`.
fn levels_at(model: &Model, open: usize, rate: f64) -> Vec<u32> {
    let fallback = reaches_fallback(model, open);
    let core = core_levels(model, open);
    let levels = |p: &Pool| match p.buffer {
        Some(b) if fallback => b,
        _ if !fallback || rate >= p.service_rate() => core,
        _ => {
            let ratio = decay(p, rate);
            let more = if ratio > 0.0 { (TAIL.ln() / ratio.ln()).ceil() } else { 0.0 };
            #[allow(clippy::cast_precision_loss)]
            let most = MOST_LEVELS / (p.law.phases() as f64).powi(2);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            core.saturating_add(more.clamp(0.0, most) as u32)
        }
    };
    model.pools.iter().map(levels).collect()
}

/// The factor by which the tail of a long queue falls from level to level when jobs come at `rate`: the
/// spectral radius of rate (rate I - rate 1 alpha - T)^-1 (M. F. Neuts, 1981), for exponential service
/// the load.
fn decay(pool: &Pool, rate: f64) -> f64 {
    const STEPS: u32 = 1000;
    let law = &pool.law;
    let n = law.phases();
    if n == 1 {
        return rate / pool.service_rate();
    }
    let speed = pool.service_rate() * law.mean();
    let matrix = DMatrix::from_fn(n, n, |i, j| {
        let inside = if i == j { rate + speed * law.rate(i) } else { -speed * law.moves()[i][j] };
        inside - rate * law.initial()[j]
    });
    let Some(inverse) = matrix.try_inverse() else { return 1.0 };
    let mut x = DVector::from_element(n, 1.0);
    let mut last = 0.0;
    for _ in 0..STEPS {
        x = &inverse * &x * rate;
        let size = x.amax();
        x /= size;
        if (size - last).abs() < 1e-14 {
            return size;
        }
        last = size;
    }
    last
}

/// Each pool's law at rest under these services when receiving servers get jobs at `rate`.
fn at_rest(states: &StateSpace, field: &Field, services: impl Iterator<Item = Move>, rate: f64) -> Vec<f64> {
    let arrivals = field.dispatch.arcs.iter().map(|a| Move { from: a.from, to: a.to, rate: rate * a.share });
    let mut q = vec![0.0; states.len()];
    if let Some(pools) = factor_pools(states, &field.closed, 0.0, services.chain(arrivals)) {
        pools.iter().zip(&states.pools).for_each(|(pool, s)| pool.stationary(s.share, &mut q));
    }
    q
}
