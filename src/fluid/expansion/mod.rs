//! Beyond the fluid: the 1/n term of stationary means and the fluctuations around the fixed point.
//!
//! With A the Jacobian of the drift at the fixed point x*, Q the rate at which jumps spread the occupancy,
//! and C what the drift itself changes at order 1/n (d *distinct* servers sampled),
//!
//! ```text
//! n Cov X -> W,          A W + W A^T + Q = 0
//! n (E X - x*) -> V,     A V + 1/2 (D^2 f : W) + C = 0
//! ```
//!
//! (N. Gast and B. Van Houdt, "A Refined Mean Field Approximation", 2018; the first line is van Kampen's
//! linear noise approximation.) Everything is done in the space where each pool keeps its servers: one state
//! of every pool follows from the others. States far beyond those that hold mass are left out.

mod curvature;
mod error;
mod lyapunov;

pub use error::ExpansionError;

use super::dispatch::levels;
use super::drift::Field;
use super::fixed_point::FixedPoint;
use super::flows::{self, Flows};
use crate::model::{Measures, Model, StateSpace};
use nalgebra::{DMatrix, DVector};

/// Mass of a state below which it is left out.
const NEGLIGIBLE: f64 = 1e-18;

/// States that the dense equations are solved for: about 20 s, and 300 MB.
const MOST_STATES: usize = 1500;

/// The stationary law around a fixed point, to order 1/n.
#[derive(Debug, Clone)]
pub struct Expansion<'m> {
    model: &'m Model,
    states: StateSpace,
    /// The fixed point, and n times the correction of its states.
    q: Vec<f64>,
    v: Vec<f64>,
    /// The flow of jobs to each state at the fixed point, and n times its correction.
    met: Vec<f64>,
    met_change: Vec<f64>,
    fallback: f64,
    /// The states that matter, and which of them are coordinates.
    coordinates: Coordinates,
    /// n times the covariance of the coordinates.
    w: DMatrix<f64>,
    /// By coordinate, the change of the flows to all states.
    flow_slopes: Vec<Vec<f64>>,
    /// What is left of the equation of W, relative.
    residual: f64,
}

/// Expands the stationary law of `model` around its fixed point.
///
/// # Errors
/// If there is no fixed point to expand around, if the drift has a kink there, if it is not exponentially
/// stable, or if there are too many states.
pub fn expand<'m>(model: &'m Model, fixed: &FixedPoint) -> Result<Expansion<'m>, ExpansionError> {
    if model.policy.routers.is_some() {
        return Err(ExpansionError::Routers);
    }
    if fixed.growth.iter().any(Option::is_some) {
        return Err(ExpansionError::Growth);
    }
    if fixed.open > 0 {
        return Err(ExpansionError::Kink { tier: fixed.open });
    }
    let (longer, fixed) = longer(model, fixed)?;
    let (states, q) = (fixed.states.clone(), fixed.occupancy.clone());
    let field = Field::new(&longer, &states, fixed.open);
    let coordinates = Coordinates::new(&states, &q);
    if coordinates.len() > MOST_STATES {
        return Err(ExpansionError::TooLarge { states: coordinates.len(), limit: MOST_STATES });
    }
    let linear = field.linearise(&q).ok_or(ExpansionError::Kink { tier: fixed.open })?;
    let a = coordinates.matrix(|column| linear.apply(column), q.len());
    let (met, fallback) = flows::meets(&field, &states, &q);
    let spread = spread(&field, &states, &q, &met, &coordinates);
    let slowest = fixed.spectral_abscissa.map_or(0.0, f64::abs);
    let w = lyapunov::solve(&a, &spread, slowest).ok_or(ExpansionError::NotStable)?;

    let d = &field.dispatch;
    let mut tails = Vec::new();
    d.level_tails(&q, 0.0, &mut tails);
    let full = coordinates.covariance(&w);
    let place = |s: usize| coordinates.place[s];
    let covariance = |s: usize, t: usize| match (place(s), place(t)) {
        (Some(i), Some(j)) => full[(i, j)],
        _ => 0.0,
    };
    let bent = curvature::bend(d, &q, &coordinates.members, &tails, covariance);
    let mut met_change = curvature::distinct(d, &q, &tails);
    met_change.iter_mut().zip(&bent).for_each(|(change, bent)| *change += 0.5 * bent);
    let push = coordinates.restrict(&moved(&states, &met_change));
    let v = a.clone().lu().solve(&-push).ok_or(ExpansionError::NotStable)?;
    let v = coordinates.lift(v.as_slice(), q.len());
    let flow_slopes: Vec<Vec<f64>> = (0..coordinates.len())
        .map(|i| {
            let mut unit = vec![0.0; coordinates.len()];
            unit[i] = 1.0;
            linear.met_changes(&coordinates.lift(&unit, q.len()))
        })
        .collect();
    let along_v = linear.met_changes(&v);
    met_change.iter_mut().zip(&along_v).for_each(|(change, slope)| *change += slope);
    let residual = lyapunov::residual(&a, &spread, &w);
    Ok(Expansion { model, states, q, v, met, met_change, fallback, coordinates, w, flow_slopes, residual })
}

/// The model with infinite buffers cut some levels above where the fluid was: of a tail that is 1e-15 of
/// the fluid a 1/n term can be 1e-9, as at the end of queues whose lengths fall doubly exponentially.
fn longer(model: &Model, fixed: &FixedPoint) -> Result<(Model, FixedPoint), ExpansionError> {
    const MORE: u32 = 3;
    if model.pools.iter().all(|p| p.buffer.is_some()) {
        return Ok((model.clone(), fixed.clone()));
    }
    let mut longer = model.clone();
    for (pool, levels) in longer.pools.iter_mut().zip(&fixed.levels) {
        pool.buffer = pool.buffer.or(Some(levels.saturating_add(MORE).max(pool.speed_levels())));
    }
    let fixed = super::fixed_point(&longer).map_err(|_| ExpansionError::NotStable)?;
    Ok((longer, fixed))
}

impl Expansion<'_> {
    /// By pool, n times the difference of the mean tails from the fluid's.
    #[must_use]
    pub fn correction(&self) -> Vec<Vec<f64>> {
        (0..self.states.pools.len()).map(|j| self.states.tails(j, &self.v)).collect()
    }

    /// The same by the phase of the job in service: by pool, level and phase.
    #[must_use]
    pub fn phase_correction(&self) -> Vec<Vec<Vec<f64>>> {
        (0..self.states.pools.len()).map(|j| self.states.by_phase(j, &self.v)).collect()
    }

    /// By pool, the mean tails with n servers as fractions of all servers.
    #[must_use]
    pub fn tails(&self, n: u64) -> Vec<Vec<f64>> {
        let q = self.occupancy(n);
        (0..self.states.pools.len()).map(|j| self.states.tails(j, &q)).collect()
    }

    /// By pool, n times the variance of each tail.
    #[must_use]
    pub fn variances(&self) -> Vec<Vec<f64>> {
        let pool = |j: usize| {
            let levels = 1..=self.states.pools[j].levels;
            levels.map(|k| self.variance_of(|s| f64::from(u8::from(self.is_above(s, j, k))))).collect()
        };
        (0..self.states.pools.len()).map(pool).collect()
    }

    /// n times the variance of a sum over states of `weight` times their mass.
    #[must_use]
    pub fn variance_of(&self, weight: impl Fn(usize) -> f64) -> f64 {
        let gradient = self.coordinates.gradient(weight);
        gradient.dot(&(&self.w * &gradient))
    }

    /// The measures of n servers, to order 1/n.
    #[must_use]
    pub fn measures(&self, n: u64) -> Measures {
        let met = self.met.iter().zip(&self.met_change);
        let met: Vec<f64> = met.map(|(flow, change)| flow + change / to_f64(n)).collect();
        self.measures_at(&self.occupancy(n), &met)
    }

    /// The standard deviation over time, with n servers, of what each measure is of the state at one moment;
    /// by the delta method, in the order of `names`. `None` for measures that there are not.
    #[must_use]
    pub fn deviations(&self, n: u64, names: &[&str]) -> Vec<Option<f64>> {
        // Measures are smooth in the occupancy and the flows: central differences leave 1e-10.
        const STEP: f64 = 1e-5;
        let slope = |i: usize| {
            let mut unit = vec![0.0; self.coordinates.len()];
            unit[i] = 1.0;
            let direction = self.coordinates.lift(&unit, self.q.len());
            let at = |step: f64| {
                let along = |x: &[f64], by: &[f64]| -> Vec<f64> {
                    x.iter().zip(by).map(|(x, by)| x + step * by).collect()
                };
                self.measures_at(&along(&self.q, &direction), &along(&self.met, &self.flow_slopes[i]))
            };
            let (above, below) = (at(STEP), at(-STEP));
            let slope = |name: &&str| Some((above.get(name)?.value - below.get(name)?.value) / (2.0 * STEP));
            names.iter().map(slope).collect::<Vec<Option<f64>>>()
        };
        let slopes: Vec<Vec<Option<f64>>> = (0..self.coordinates.len()).map(slope).collect();
        let deviation = |i: usize| {
            let gradient = slopes.iter().map(|by_name| by_name[i]).collect::<Option<Vec<f64>>>()?;
            let gradient = DVector::from_vec(gradient);
            let variance = gradient.dot(&(&self.w * &gradient)) / to_f64(n);
            self.measures_at(&self.q, &self.met).get(names[i])?;
            Some(variance.max(0.0).sqrt())
        };
        (0..names.len()).map(deviation).collect()
    }

    /// What is left of the equation of W, relative to its constant term.
    #[must_use]
    pub fn residual(&self) -> f64 {
        self.residual
    }

    /// States that fluctuate.
    #[must_use]
    pub fn dimension(&self) -> usize {
        self.coordinates.len()
    }

    fn occupancy(&self, n: u64) -> Vec<f64> {
        self.q.iter().zip(&self.v).map(|(q, v)| q + v / to_f64(n)).collect()
    }

    fn measures_at(&self, q: &[f64], met: &[f64]) -> Measures {
        let pools = flows::by_pool(&self.states, q, met);
        flows::from_flows(self.model, &Flows { pools, fallback: self.fallback })
    }

    fn is_above(&self, s: usize, j: usize, k: u32) -> bool {
        let pool = &self.states.pools[j];
        pool.range().contains(&s) && s >= pool.level(k).start
    }
}

/// The states that matter. One of each pool's, the fullest, follows from the others.
#[derive(Debug, Clone)]
struct Coordinates {
    /// All states with mass, and those that a job leads to from there.
    members: Vec<usize>,
    /// By state, its place among the members.
    place: Vec<Option<usize>>,
    /// The states that are coordinates, each with the one of its pool that is not.
    pairs: Vec<(usize, usize)>,
}

impl Coordinates {
    fn new(states: &StateSpace, q: &[f64]) -> Self {
        // One job more than where there is mass: the 1/n term of a tail can be as large as the mass below.
        let mut is_member: Vec<bool> = q.iter().map(|x| *x > NEGLIGIBLE).collect();
        for (pool, k, s) in levels(states).filter(|&(pool, k, s)| q[s] > NEGLIGIBLE && k < pool.levels) {
            pool.after(k, s).for_each(|(to, _)| is_member[to] = true);
        }
        let members: Vec<usize> = (0..q.len()).filter(|&s| is_member[s]).collect();
        let mut place = vec![None; q.len()];
        members.iter().enumerate().for_each(|(i, &s)| place[s] = Some(i));
        let mut pairs = Vec::new();
        for pool in &states.pools {
            let Some(ground) = pool.range().max_by(|&a, &b| q[a].total_cmp(&q[b])) else { continue };
            pairs.extend(pool.range().filter(|&s| place[s].is_some() && s != ground).map(|s| (s, ground)));
        }
        Self { members, place, pairs }
    }

    fn len(&self) -> usize {
        self.pairs.len()
    }

    /// The change of all states when the coordinates change.
    fn lift(&self, x: &[f64], states: usize) -> Vec<f64> {
        let mut all = vec![0.0; states];
        for (&(s, ground), x) in self.pairs.iter().zip(x) {
            all[s] += x;
            all[ground] -= x;
        }
        all
    }

    fn restrict(&self, all: &[f64]) -> DVector<f64> {
        DVector::from_iterator(self.len(), self.pairs.iter().map(|&(s, _)| all[s]))
    }

    /// A linear function of the states as one of the coordinates.
    fn gradient(&self, weight: impl Fn(usize) -> f64) -> DVector<f64> {
        DVector::from_iterator(self.len(), self.pairs.iter().map(|&(s, ground)| weight(s) - weight(ground)))
    }

    /// The matrix of a linear map of the states.
    fn matrix(&self, apply: impl Fn(&[f64]) -> Vec<f64>, states: usize) -> DMatrix<f64> {
        let mut matrix = DMatrix::zeros(self.len(), self.len());
        let mut unit = vec![0.0; states];
        for (j, &(s, ground)) in self.pairs.iter().enumerate() {
            (unit[s], unit[ground]) = (1.0, -1.0);
            matrix.set_column(j, &self.restrict(&apply(&unit)));
            (unit[s], unit[ground]) = (0.0, 0.0);
        }
        matrix
    }

    /// The covariance of all members, given that of the coordinates.
    fn covariance(&self, w: &DMatrix<f64>) -> DMatrix<f64> {
        let mut lift = DMatrix::zeros(self.members.len(), self.len());
        for (j, &(s, ground)) in self.pairs.iter().enumerate() {
            for (state, sign) in [(s, 1.0), (ground, -1.0)] {
                if let Some(i) = self.place[state] {
                    lift[(i, j)] = sign;
                }
            }
        }
        &lift * w * lift.transpose()
    }
}

/// What flows of jobs to states do to the occupancy.
fn moved(states: &StateSpace, met: &[f64]) -> Vec<f64> {
    let mut change = vec![0.0; met.len()];
    for (pool, k, s) in levels(states).filter(|(pool, k, _)| !pool.is_full(*k)) {
        for (to, p) in pool.after(k, s) {
            change[s] -= met[s] * p;
            change[to] += met[s] * p;
        }
    }
    change
}

/// Q: over all jumps, their rate times the square of what they change.
fn spread(
    field: &Field,
    states: &StateSpace,
    q: &[f64],
    met: &[f64],
    coordinates: &Coordinates,
) -> DMatrix<f64> {
    let mut all = DMatrix::zeros(coordinates.members.len(), coordinates.members.len());
    let mut add = |from: usize, to: usize, rate: f64| {
        let (from, to) = (coordinates.place[from], coordinates.place[to]);
        for (i, x) in [(from, -1.0), (to, 1.0)] {
            for (j, y) in [(from, -1.0), (to, 1.0)] {
                if let (Some(i), Some(j)) = (i, j) {
                    all[(i, j)] += rate * x * y;
                }
            }
        }
    };
    field.moves.iter().for_each(|m| add(m.from, m.to, m.rate * q[m.from]));
    for (pool, k, s) in levels(states).filter(|(pool, k, _)| !pool.is_full(*k)) {
        pool.after(k, s).for_each(|(to, p)| add(s, to, met[s] * p));
    }
    let places: Vec<usize> = coordinates.pairs.iter().filter_map(|&(s, _)| coordinates.place[s]).collect();
    DMatrix::from_fn(places.len(), places.len(), |i, j| all[(places[i], places[j])])
}

#[allow(clippy::cast_precision_loss)]
fn to_f64(n: u64) -> f64 {
    n as f64
}
