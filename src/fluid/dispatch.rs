//! Tiers and fallback as flows: where arrivals go in the fluid limit, and at what rate.
//!
//! The fluid's *mode* is the index of its first open tier. A tier is open when it holds a positive
//! mass of servers; then it takes all arrivals that reach it, in proportion to mass. The tiers before
//! it are closed: they hold no mass, but servers that services move into them are handed a job at
//! once. So each closed tier absorbs arrivals at the rate at which servers come to it, the servers
//! go straight on to the state after an arrival, and what remains of the stream flows on. This is
//! the sliding motion on the boundary, and the drift within one mode is smooth. When all tiers are
//! closed the rest goes to the fallback, which samples d servers.
//!
//! Sources: architecture of tiers after A. Stolyar, "Pull-based load distribution in large-scale
//! heterogeneous service systems" (QUESTA 2015) for one tier; the sliding motion was derived from the
//! fast birth-death process of messages at the boundary, and equals Filippov's where that is unique.

use crate::model::{Fallback, Model, Move, PoolStates, StateSpace, Tier};

/// Where the arrivals that pass the closed tiers go.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Target {
    /// An open tier: all of them, in proportion to the mass of these states times their weights.
    Tier { states: Vec<usize>, weights: Vec<f64> },
    /// No tier is open: the fallback samples d servers.
    Fallback(Fallback),
}

/// A part of the stream that moves servers from one state to another: a server in state `from` goes to
/// state `to` by an arrival at `share` times the rate of its group. Shares are the weight of the state
/// times the probability of where the arrival takes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Arc {
    pub from: usize,
    pub to: usize,
    pub share: f64,
    /// Index into the rates of [`Dispatch::rates`].
    pub group: usize,
}

/// The dispatch of one mode, lowered to tables.
#[derive(Debug, Clone)]
pub(super) struct Dispatch {
    /// Arrivals per server and unit of time.
    pub arrival_rate: f64,
    /// For each closed tier, the service moves that end in it: (state before, rate).
    pub closed: Vec<Vec<(usize, f64)>>,
    /// Where the rest goes.
    pub target: Target,
    /// How it moves servers; states without room have no arc.
    pub arcs: Vec<Arc>,
    /// Level of each state as the fallback sees it: with `skip_full`, full servers come last.
    pub level: Vec<usize>,
    /// Mass of servers outside the state space that hold infinitely many jobs.
    pub escaped: f64,
    levels: usize,
}

/// The states of `tier` that have room, with their weights.
pub(super) fn tier_states(states: &StateSpace, tier: &Tier) -> Vec<(usize, f64)> {
    let mut found = Vec::new();
    for (j, pool) in states.pools.iter().enumerate() {
        let levels = tier.levels_in(j);
        for k in levels.start..levels.end.min(pool.levels) {
            let weight = f64::from(tier.weight(j, k));
            found.extend(pool.level(k).map(|s| (s, weight)));
        }
    }
    found
}

/// The number of tiers that can hold a server with room.
pub(super) fn tier_count(model: &Model, states: &StateSpace) -> usize {
    model.policy.tiers.count().unwrap_or(states.max_level() as usize)
}

/// For each state, the closed tier it is in when the tiers before `open` are closed.
pub(super) fn closed_tiers(model: &Model, states: &StateSpace, open: usize) -> Vec<Option<usize>> {
    let mut closed = vec![None; states.len()];
    for i in 0..open {
        for (s, _) in model.policy.tiers.get(i).iter().flat_map(|tier| tier_states(states, tier)) {
            closed[s].get_or_insert(i);
        }
    }
    closed
}

/// The service moves in the mode that closes the states of `closed`: a move into a closed tier goes on
/// to where the server is after the job that it is handed at once. Returns the moves that change
/// something and, for each of the `open` closed tiers, the moves that end in it.
pub(super) fn refill(
    states: &StateSpace,
    closed: &[Option<usize>],
    open: usize,
    service: &[Move],
) -> (Vec<Move>, Vec<Vec<(usize, f64)>>) {
    let mut onward = vec![Vec::new(); states.len()];
    for (pool, k, s) in levels(states).filter(|&(_, _, s)| closed[s].is_some()) {
        onward[s] = pool.after(k, s).collect();
    }
    let mut inflow = vec![Vec::new(); open];
    let mut moves = Vec::with_capacity(service.len());
    for m in service.iter().filter(|m| closed[m.from].is_none()) {
        match closed[m.to] {
            Some(tier) => {
                inflow[tier].push((m.from, m.rate));
                let elsewhere = onward[m.to].iter().filter(|(to, _)| *to != m.from);
                moves.extend(elsewhere.map(|&(to, p)| Move { from: m.from, to, rate: m.rate * p }));
            }
            None => moves.push(*m),
        }
    }
    (moves, inflow)
}

/// All states with their pool and level.
pub(super) fn levels(states: &StateSpace) -> impl Iterator<Item = (&PoolStates, u32, usize)> {
    states
        .pools
        .iter()
        .flat_map(|pool| (0..=pool.levels).flat_map(move |k| pool.level(k).map(move |s| (pool, k, s))))
}

impl Dispatch {
    /// The dispatch of `model` in the mode whose first open tier is `open` (the number of tiers if none
    /// is), with the closed states and the service moves into them as [`refill`] gives them.
    pub fn new(
        model: &Model,
        states: &StateSpace,
        open: usize,
        closed: &[Option<usize>],
        inflow: Vec<Vec<(usize, f64)>>,
        escaped: f64,
    ) -> Self {
        let fallback = model.policy.fallback;
        // Full servers that are passed over come last, behind those with infinitely many jobs.
        let levels_seen = states.max_level() as usize + if fallback.skip_full { 3 } else { 2 };
        let mut level = vec![0; states.len()];
        for (pool, k, s) in levels(states) {
            let last = fallback.skip_full && pool.is_full(k);
            level[s] = if last { levels_seen - 1 } else { k as usize };
        }
        let tier = (open < tier_count(model, states)).then(|| model.policy.tiers.get(open)).flatten();
        let mut weight = vec![if tier.is_none() { 1.0 } else { 0.0 }; states.len()];
        let target = match tier {
            Some(tier) => {
                let (states, mut weights): (Vec<usize>, Vec<f64>) =
                    tier_states(states, &tier).into_iter().unzip();
                if let [alone] = &mut weights[..] {
                    *alone = 1.0;
                }
                states.iter().zip(&weights).for_each(|(&s, &w)| weight[s] = w);
                Target::Tier { states, weights }
            }
            None => Target::Fallback(fallback),
        };
        let grouped = matches!(target, Target::Fallback(f) if f.d > 1);
        let mut arcs = Vec::new();
        for (pool, k, s) in levels(states).filter(|&(_, _, s)| weight[s] > 0.0 && closed[s].is_none()) {
            let group = if grouped { k as usize } else { 0 };
            arcs.extend(pool.after(k, s).map(|(to, p)| Arc { from: s, to, share: weight[s] * p, group }));
        }
        let arrival_rate = model.arrival_rate;
        Self { arrival_rate, closed: inflow, target, arcs, level, escaped, levels: levels_seen }
    }

    /// The number of groups of states that share one arrival rate.
    pub fn groups(&self) -> usize {
        match self.target {
            Target::Fallback(f) if f.d > 1 => self.levels,
            _ => 1,
        }
    }

    /// The rate at which services move servers into closed tier `tier`.
    pub fn absorbed(&self, tier: usize, q: &[f64]) -> f64 {
        self.closed[tier].iter().map(|&(s, rate)| rate * q[s]).sum()
    }

    /// The rate at which arrivals pass the closed tiers.
    pub fn reach(&self, q: &[f64]) -> f64 {
        self.arrival_rate + self.reach_change(q)
    }

    /// The linear part of [`Dispatch::reach`]: its change when q changes by `delta`.
    pub fn reach_change(&self, delta: &[f64]) -> f64 {
        -self.closed.iter().flatten().map(|&(s, rate)| rate * delta[s]).sum::<f64>()
    }

    /// Is the open tier a single state? Then it takes the stream whole, and no mass is divided by.
    pub fn single(&self) -> bool {
        matches!(&self.target, Target::Tier { states, .. } if states.len() == 1)
    }

    /// Mass of the open tier, states by their weights; `None` if no tier is open.
    pub fn open_mass(&self, q: &[f64]) -> Option<f64> {
        match &self.target {
            Target::Tier { states, weights } => {
                Some(states.iter().zip(weights).map(|(&s, w)| w * q[s]).sum())
            }
            Target::Fallback(_) => None,
        }
    }

    /// Tails by level, X_0, X_1, ..., of the vector q, plus `base` in each.
    pub fn level_tails(&self, q: &[f64], base: f64, tails: &mut Vec<f64>) {
        tails.clear();
        tails.resize(self.levels + 1, 0.0);
        for (s, &level) in self.level.iter().enumerate() {
            tails[level] += q[s];
        }
        let passes_over = matches!(self.target, Target::Fallback(f) if f.skip_full);
        tails[if passes_over { self.levels - 2 } else { self.levels }] += base;
        for k in (0..self.levels).rev() {
            tails[k] += tails[k + 1];
        }
    }

    /// The rate at which one server of each group, of weight 1, receives jobs; for a single open state the whole
    /// rate that it takes. `false` if q is outside the mode's domain (an open tier without mass).
    pub fn rates(&self, q: &[f64], reach: f64, tails: &mut Vec<f64>, rates: &mut Vec<f64>) -> bool {
        rates.clear();
        match &self.target {
            Target::Tier { states, .. } if states.len() == 1 => rates.push(reach),
            Target::Tier { .. } => {
                let mass = self.open_mass(q).unwrap_or(0.0);
                if mass.is_nan() || mass <= 0.0 {
                    return false;
                }
                rates.push(reach / mass);
            }
            Target::Fallback(f) if f.d == 1 => rates.push(reach),
            Target::Fallback(f) => {
                self.level_tails(q, self.escaped, tails);
                rates.extend(tails.windows(2).map(|x| reach * choice_rate(x[0], x[1], f.d)));
            }
        }
        true
    }
}

/// (x^d - y^d) / (x - y): the chance that the shortest of d samples has a given level, per server of
/// that level, when tails are x there and y one level up. A sum, so nothing cancels.
pub(super) fn choice_rate(x: f64, y: f64, d: u32) -> f64 {
    match d {
        1 => 1.0,
        2 => x + y,
        _ if d > 64 && x > 0.0 && y >= 0.0 && x > y => {
            // x^(d-1) (1 - (1 - u)^d) / u with u = (x - y) / x.
            let u = (x - y) / x;
            let n = f64::from(d);
            x.powf(n - 1.0) * (-f64::exp_m1(n * f64::ln_1p(-u))) / u
        }
        _ => {
            let (mut sum, mut power) = (0.0, 1.0);
            for _ in 0..d {
                sum = sum * y + power;
                power *= x;
            }
            sum
        }
    }
}

/// [`choice_rate`] with its partial derivatives by x and y.
pub(super) fn choice_rate_partials(x: f64, y: f64, d: u32) -> (f64, f64, f64) {
    let (mut h, mut hx, mut hy) = (0.0, 0.0, 0.0);
    let (mut power, mut slope) = (1.0, 0.0);
    for i in 0..d {
        hy = hy * y + h;
        hx = hx * y + slope;
        h = h * y + power;
        slope = f64::from(i + 1) * power;
        power *= x;
    }
    (h, hx, hy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choice_rate_is_the_divided_difference_of_powers() {
        for d in [1, 2, 3, 7, 64, 65, 300] {
            for (x, y) in [(0.9, 0.4), (1.0, 0.0), (0.5, 0.499)] {
                let n = i32::try_from(d).unwrap();
                let expected = (f64::powi(x, n) - f64::powi(y, n)) / (x - y);
                assert!((choice_rate(x, y, d) - expected).abs() < 1e-10 * (1.0 + expected), "{d} {x} {y}");
            }
            assert!(
                (choice_rate(0.7, 0.7, d) - f64::from(d) * 0.7f64.powi(i32::try_from(d - 1).unwrap())).abs()
                    < 1e-12
            );
        }
    }

    #[test]
    fn choice_rate_partials_match_central_differences() {
        for d in [1, 2, 3, 8, 100] {
            let (x, y, e) = (0.8, 0.3, 1e-5);
            let (h, hx, hy) = choice_rate_partials(x, y, d);
            assert!((h - choice_rate(x, y, d)).abs() < 1e-13);
            let dx = (choice_rate(x + e, y, d) - choice_rate(x - e, y, d)) / (2.0 * e);
            let dy = (choice_rate(x, y + e, d) - choice_rate(x, y - e, d)) / (2.0 * e);
            assert!((hx - dx).abs() < 1e-8 * (1.0 + dx) && (hy - dy).abs() < 1e-8 * (1.0 + dy), "{d}");
        }
    }
}
