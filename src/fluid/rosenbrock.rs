//! The stiff path: the L-stable, stiffly accurate Rosenbrock method RODAS of order 4(3).
//!
//! Coefficients: E. Hairer and G. Wanner, "Solving Ordinary Differential Equations II", section IV.7.
//! Used for leaving a boundary, where the composition of a tier relaxes at rate reach / mass, for stiff
//! stretches, and for relaxing to a fixed point. How its linear systems are solved is the drift's affair
//! ([`Implicit`]).

use super::drift::{Drift, Field, Scratch};
use super::flows;
use super::linear::Factor;
use super::step::{Leg, StepCounts, Stop, Stretch};
use crate::model::StateSpace;

const GAMMA: f64 = 0.25;
/// Row i: the weights of earlier stages in the argument of stage i + 1.
const A: [&[f64]; 5] = [
    &[1.544],
    &[0.946_678_528_081_582_6, 0.255_701_169_898_328_4],
    &[3.314_825_187_068_521, 2.896_124_015_972_201, 0.998_641_913_997_781_7],
    &[1.221_224_509_226_641, 6.019_134_481_288_629, 12.537_083_329_320_87, -0.687_886_036_105_895],
    &[1.221_224_509_226_641, 6.019_134_481_288_629, 12.537_083_329_320_87, -0.687_886_036_105_895, 1.0],
];
/// Row i: the weights of earlier stages, over the step, on the right-hand side of stage i + 1.
const C: [&[f64]; 5] = [
    &[-5.6688],
    &[-2.430_093_356_833_875, -0.206_359_915_709_191_5],
    &[-0.107_352_905_815_137_5, -9.594_562_251_023_355, -20.470_286_148_096_16],
    &[7.496_443_313_967_647, -10.246_804_314_643_52, -33.999_903_528_199_05, 11.708_908_932_061_6],
    &[
        8.083_246_795_921_522,
        -7.981_132_988_064_893,
        -31.521_594_328_743_71,
        16.319_305_431_231_36,
        -6.058_818_238_834_054,
    ],
];

/// A drift that can solve linear systems with its Jacobian.
pub(super) trait Implicit: Drift {
    /// Hands `stages` a solver, in place, of (gamma I - J(q)) x = r; the solver says whether it could.
    /// `None` if q is outside the domain, the matrix is singular, or `stages` gives up.
    fn with_solver<T>(
        &self,
        q: &[f64],
        gamma: f64,
        stages: impl FnOnce(&dyn Fn(&mut [f64]) -> bool) -> Option<T>,
    ) -> Option<T>;

    /// Makes the mass of each pool its share again; a linear solver keeps it to rounding only.
    fn restore_mass(&self, q: &mut [f64]);
}

/// The drift of tiers and fallback, with the solver that uses the structure of its states.
#[derive(Debug, Clone, Copy)]
pub(super) struct Structured<'a> {
    pub field: &'a Field,
    pub states: &'a StateSpace,
}

impl Drift for Structured<'_> {
    fn len(&self) -> usize {
        self.field.len()
    }

    fn eval(&self, q: &[f64], dq: &mut [f64], scratch: &mut Scratch) -> bool {
        self.field.eval(q, dq, scratch)
    }
}

impl Implicit for Structured<'_> {
    fn with_solver<T>(
        &self,
        q: &[f64],
        gamma: f64,
        stages: impl FnOnce(&dyn Fn(&mut [f64]) -> bool) -> Option<T>,
    ) -> Option<T> {
        let linearisation = self.field.linearise(q)?;
        let factor = Factor::new(self.states, &linearisation, gamma)?;
        stages(&|r: &mut [f64]| factor.solve(r))
    }

    fn restore_mass(&self, q: &mut [f64]) {
        flows::restore_mass(self.states, q);
    }
}

/// One step of length `h`: the new state and the estimate of its error, or `None` if a stage left
/// the domain or the linear system is singular.
pub(super) fn step<D: Implicit>(
    drift: &D,
    q: &[f64],
    h: f64,
    scratch: &mut Scratch,
    counts: &mut StepCounts,
) -> Option<(Vec<f64>, Vec<f64>)> {
    counts.factorisations += 1;
    drift.with_solver(q, 1.0 / (h * GAMMA), |solve| stages(drift, q, h, solve, scratch, counts))
}

fn stages<D: Implicit>(
    drift: &D,
    q: &[f64],
    h: f64,
    solve: &dyn Fn(&mut [f64]) -> bool,
    scratch: &mut Scratch,
    counts: &mut StepCounts,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let mut stages: Vec<Vec<f64>> = Vec::with_capacity(6);
    let mut argument = q.to_vec();
    for i in 0..6 {
        if i > 0 {
            argument.copy_from_slice(q);
            add_weighted(&mut argument, A[i - 1], &stages, 1.0);
        }
        let mut rhs = vec![0.0; q.len()];
        counts.evaluations += 1;
        if !drift.eval(&argument, &mut rhs, scratch) {
            return None;
        }
        if i > 0 {
            add_weighted(&mut rhs, C[i - 1], &stages, 1.0 / h);
        }
        if !solve(&mut rhs) {
            return None;
        }
        stages.push(rhs);
    }
    let error = stages.pop()?;
    argument.iter_mut().zip(&error).for_each(|(q, e)| *q += e);
    Some((argument, error))
}

fn add_weighted(out: &mut [f64], weights: &[f64], stages: &[Vec<f64>], factor: f64) {
    for (stage, w) in stages.iter().zip(weights) {
        out.iter_mut().zip(stage).for_each(|(o, s)| *o += factor * w * s);
    }
}

/// Integrates `drift` over a stretch, or until `watch` says stop after an accepted step.
pub(super) fn integrate<D: Implicit>(
    drift: &D,
    stretch: Stretch<'_>,
    counts: &mut StepCounts,
    watch: &mut dyn FnMut(f64, &[f64]) -> bool,
) -> Leg {
    let Stretch { t, q, end, first_step, tolerance } = stretch;
    const MOST_STEPS: u32 = 200_000;
    let mut scratch = Scratch::default();
    let mut leg =
        Leg { t, q: q.to_vec(), before_t: t, before_q: q.to_vec(), step: first_step, stop: Stop::End };
    let mut h = if first_step > 0.0 { first_step } else { 1e-6 * (end - t) };
    let mut rejected_last = false;
    for _ in 0..MOST_STEPS {
        let left = end - leg.t;
        if left <= 4.0 * f64::EPSILON * end.abs() {
            leg.t = end;
            leg.step = h;
            return leg;
        }
        // Stretch the step a little rather than leave a sliver for the next one.
        let (size, is_last) = if h * 1.01 >= left { (left, true) } else { (h, false) };
        if size <= 4.0 * f64::EPSILON * leg.t.abs() {
            break;
        }
        let Some((new, error)) = step(drift, &leg.q, size, &mut scratch, counts) else {
            counts.rejected += 1;
            rejected_last = true;
            h = 0.25 * size;
            continue;
        };
        let norm = tolerance.norm(&leg.q, &new, &error);
        let factor = if norm.is_finite() { (0.9 * norm.powf(-0.25)).clamp(0.2, 6.0) } else { 0.2 };
        if norm.is_nan() || norm > 1.0 {
            counts.rejected += 1;
            rejected_last = true;
            h = size * factor;
            continue;
        }
        counts.implicit_steps += 1;
        leg.before_t = leg.t;
        leg.t = if is_last { end } else { leg.t + size };
        leg.before_q = std::mem::replace(&mut leg.q, new);
        drift.restore_mass(&mut leg.q);
        let next = size * if rejected_last { factor.min(1.0) } else { factor };
        h = if is_last { h.max(next) } else { next };
        rejected_last = false;
        leg.step = h;
        if watch(leg.t, &leg.q) {
            leg.stop = Stop::Watched;
            return leg;
        }
        if is_last {
            return leg;
        }
    }
    leg.stop = Stop::Stuck;
    leg
}
