//! Fixed points with several routers.
//!
//! Where each router gets messages in proportion to its jobs, the pools settle as under one router, and
//! below capacity *any* split of the idle servers over the routers is at rest: the differences of what
//! routers hold are conserved, so the split is a memory of the past. Otherwise the balance of messages is
//! one equation for the rate D at which they are sent. With the notation of [`super::field`], a router
//! has none if lambda_r > w_r D, and holds z_r = (w_r D - lambda_r) / rho if not;
//!
//! ```text
//! rho = sum over r of (lambda_r - w_r D)^+,   Z = sum of z_r
//! y_1j = beta_j / (mu_j Z / D + G_j),         G_j = sum of (rho / mu_j)^i over i < B_j
//! D = sum over j of mu_j y_1j
//! ```
//!
//! and y_0j = mu_j y_1j Z / D, y_kj = y_1j (rho / mu_j)^(k - 1). Derived, for messages that are
//! withdrawn. An infinite pool not faster than rho fills up for ever and sends none.

use super::field::{Field, Mode};
use super::space::Space;
use super::{alike, check, flows, kept, one_router};
use crate::fluid::drift::Drift;
use crate::fluid::fixed_point::{FixedPoint, Found, Method, assemble, top_tail, without};
use crate::fluid::newton::Rest;
use crate::fluid::root::bisect;
use crate::fluid::{FluidError, stability};
use crate::model::{Initial, Message, Model, Pool, Routers, Top, Value};
use nalgebra::DMatrix;
use serde::Serialize;

/// What each router holds at the fixed point.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// Any split of the idle servers over the routers is at rest: which one is reached depends on the
    /// start, and at finite n it wanders over all of them on a time scale of order n.
    Neutral {
        /// Messages at all routers together, as a fraction of all servers.
        total: f64,
    },
    /// One split only.
    Unique {
        /// Messages at each router, as fractions of all servers.
        messages: Vec<f64>,
    },
}

/// The limit of the path from idle.
///
/// # Errors
/// As [`crate::fluid::fixed_point`], for several slots, and for service that is not exponential at speed 1
/// where routers do not act as one.
pub(in crate::fluid) fn fixed_point(model: &Model, routers: &Routers) -> Result<FixedPoint, FluidError> {
    let merged = alike::merge(model, routers, &Initial::Idle);
    let act_as_one = merged.is_one() || routers.is_balanced() || model.arrival_rate == 0.0;
    check(model, act_as_one)?;
    if act_as_one {
        let mut x = crate::fluid::fixed_point(&one_router(model))?;
        let total: f64 = x.idle.iter().sum();
        let none = Split::Unique { messages: vec![0.0; routers.len()] };
        x.split = Some(if total > 0.0 { Split::Neutral { total } } else { none });
        return Ok(x);
    }
    if merged.routers.message == Message::Keep {
        let (mut x, held) = kept::fixed_point(model, &merged.routers)?;
        x.split = Some(Split::Unique { messages: merged.spread(&held) });
        return Ok(x);
    }
    let balance = Balance { model, routers: &merged.routers };
    let point = balance.at(balance.root());
    let (space, q) = balance.occupancy(&point)?;
    let modes = point.held.iter().map(|z| if *z > 0.0 { Mode::Open } else { Mode::Empty }).collect();
    let field = Field::new(&space, &merged.routers, model.arrival_rate, modes);
    let mut x = describe(model, point.growth(model), &field, &space, q, Method::Balance);
    x.split = Some(Split::Unique { messages: merged.spread(&point.held) });
    Ok(x)
}

/// The equation for the rate at which messages are sent.
struct Balance<'m> {
    model: &'m Model,
    routers: &'m Routers,
}

/// What follows from a rate of messages.
struct Point {
    /// The rate of messages.
    sent: f64,
    /// Rate of randomly routed jobs at every server.
    random: f64,
    /// What each router holds, and all together.
    held: Vec<f64>,
    total: f64,
}

impl Point {
    /// Jobs per server that pools gain which cannot serve what is routed to them at random.
    fn growth(&self, model: &Model) -> Vec<Option<f64>> {
        model
            .pools
            .iter()
            .map(|p| overflows(p, self.random).then(|| self.random - p.service_rate()))
            .collect()
    }
}

fn overflows(pool: &Pool, random: f64) -> bool {
    pool.buffer.is_none() && random >= pool.service_rate()
}

/// x^0 + x^1 + ... + x^(b - 1) for x = 1 + e in [0, 1]; without an end for `None`.
fn geometric(e: f64, b: Option<u32>) -> f64 {
    match b {
        None => -1.0 / e,
        Some(1) => 1.0,
        Some(b) if e == 0.0 => f64::from(b),
        Some(b) => (f64::from(b) * e.ln_1p()).exp_m1() / e,
    }
}

impl Balance<'_> {
    fn at(&self, sent: f64) -> Point {
        let lambda = self.model.arrival_rate;
        let balance = |r: usize| self.routers.messages[r] * sent - self.routers.streams[r] * lambda;
        let random: f64 = (0..self.routers.len()).map(|r| (-balance(r)).max(0.0)).sum();
        let held: Vec<f64> = (0..self.routers.len())
            .map(|r| if balance(r) > 0.0 { balance(r) / random } else { 0.0 })
            .collect();
        Point { sent, random, total: held.iter().sum(), held }
    }

    /// Servers of a pool with one job, as a fraction of all, and with the largest number of jobs.
    fn ends(&self, pool: &Pool, point: &Point) -> (f64, f64) {
        let mu = pool.service_rate();
        if overflows(pool, point.random) {
            return (0.0, 0.0);
        }
        let idle = if point.total > 0.0 { mu * point.total / point.sent } else { 0.0 };
        let e = (point.random - mu) / mu;
        match pool.buffer {
            // Growing: counted from the largest level down, where the mass is.
            Some(b) if e > 0.0 => {
                let down = -e / (1.0 + e);
                let first = (f64::from(b - 1) * down.ln_1p()).exp();
                let top = pool.share / (idle * first + geometric(down, Some(b)));
                (top * first, top)
            }
            b => {
                let one = pool.share / (idle + geometric(e, b));
                (one, b.map_or(0.0, |b| one * (f64::from(b - 1) * e.ln_1p()).exp()))
            }
        }
    }

    /// Messages that the pools send at rest, less those that they are taken to send.
    fn excess(&self, sent: f64) -> f64 {
        let point = self.at(sent);
        let pools = self.model.pools.iter();
        pools.map(|p| p.service_rate() * self.ends(p, &point).0).sum::<f64>() - sent
    }

    /// The largest rate of messages that is in balance (no other was ever met); 0 if every pool fills up.
    fn root(&self) -> f64 {
        const POINTS: u32 = 4_000;
        // At this rate no router would be short of messages.
        let enough = self.routers.streams.iter().zip(&self.routers.messages).filter(|(s, _)| **s > 0.0);
        let enough = enough.map(|(s, w)| s * self.model.arrival_rate / w).fold(0.0, f64::max);
        let most = enough.min(self.model.capacity());
        let at = |i: u32| most * f64::from(i) / f64::from(POINTS);
        let i = (1..POINTS).rev().find(|&i| self.excess(at(i)) >= 0.0).unwrap_or(0);
        bisect(at(i), at(i + 1), |rate| self.excess(rate) >= 0.0).0
    }

    /// The states of the pools that settle, and the occupancy.
    fn occupancy(&self, point: &Point) -> Result<(Space, Vec<f64>), FluidError> {
        const TAIL: f64 = 1e-18;
        const CORE: u32 = 3;
        const MOST_LEVELS: u32 = 3_000_000;
        let settled = without(self.model, &point.growth(self.model));
        let levels: Vec<u32> = settled
            .pools
            .iter()
            .map(|p| {
                let ratio = point.random / p.service_rate();
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let tail = (TAIL.ln() / ratio.ln()).ceil().clamp(0.0, f64::from(MOST_LEVELS)) as u32;
                p.buffer.unwrap_or(CORE + tail)
            })
            .collect();
        let too_many = levels.iter().find(|&&k| k > MOST_LEVELS);
        if let Some(&levels) = too_many {
            return Err(FluidError::TooManyLevels { states: levels as usize, most: MOST_LEVELS as usize });
        }
        let space = Space::new(&settled, self.routers, &levels, Top::Reflecting);
        let mut q = vec![0.0; space.len()];
        for (j, pool) in settled.pools.iter().enumerate() {
            let (one, top) = self.ends(pool, point);
            for (r, z) in point.held.iter().enumerate() {
                q[space.idle(j, r)] = pool.service_rate() * one * z / point.sent.max(f64::MIN_POSITIVE);
            }
            let ratio = point.random / pool.service_rate();
            let mut fill = |levels: &mut dyn Iterator<Item = u32>, mut mass: f64, ratio: f64| {
                for k in levels {
                    q[space.busy(j, k, None)] = mass;
                    mass *= ratio;
                }
            };
            let end = space.states.pools[j].levels;
            if ratio <= 1.0 {
                fill(&mut (1..=end), one, ratio)
            } else {
                fill(&mut (1..=end).rev(), top, 1.0 / ratio)
            }
        }
        Ok((space, q))
    }
}

/// A fixed point from its occupancy over the pools that settle.
pub(super) fn describe(
    model: &Model,
    growth: Vec<Option<f64>>,
    field: &Field,
    space: &Space,
    mut q: Vec<f64>,
    method: Method,
) -> FixedPoint {
    let residual = field.residual(&q);
    let infeasibility = field.clip(&mut q);
    let proper = growth.iter().all(Option::is_none);
    let spectral_abscissa = if proper { abscissa(field, space, &q) } else { None };
    let by_level = space.without_holders(&q);
    let truncation = top_tail(&space.states, &by_level);
    let open = usize::from(field.modes.iter().all(|m| *m == Mode::Empty));
    let flows::RouterFlows { flows, messages } = flows::flows(field, space, &q);
    let rest = Rest { states: space.states.clone(), q: by_level, open, iterations: 0, truncation };
    let mut x =
        assemble(model, growth, rest, flows, Found { method, residual, infeasibility, spectral_abscissa });
    x.measures.messages_per_job =
        (model.arrival_rate > 0.0).then(|| Value::from(messages / model.arrival_rate));
    x
}

/// The largest real part of an eigenvalue of the Jacobian where each pool's mass is kept and empty
/// routers stay empty.
fn abscissa(field: &Field, space: &Space, q: &[f64]) -> Option<f64> {
    const DENSE: usize = 260;
    if q.len() > DENSE {
        return None;
    }
    let jacobian = field.jacobian(q)?;
    let empty = |s: usize| field.cells[s].holder.is_some_and(|r| field.modes[r] == Mode::Empty);
    let mut kept: Vec<(usize, usize)> = Vec::new();
    for j in 0..space.states.pools.len() {
        let ground = space.pool(j).max_by(|&a, &b| q[a].total_cmp(&q[b]))?;
        kept.extend(space.pool(j).filter(|&s| s != ground && !empty(s)).map(|s| (s, ground)));
    }
    let n = kept.len();
    if n == 0 {
        // Nothing is free to move, and the eigenvalue method has no answer for an empty matrix.
        return None;
    }
    let of = |row: usize, column: usize| {
        let (s, ground) = kept[column];
        jacobian[(kept[row].0, s)] - jacobian[(kept[row].0, ground)]
    };
    stability::rightmost(DMatrix::from_fn(n, n, of))
}
