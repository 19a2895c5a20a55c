//! What the two integrators share: how far a leg went and why it stopped, and how errors are weighed.

/// Why a leg of integration stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The end time was reached.
    End,
    /// The watcher asked for it after an accepted step.
    Watched,
    /// The explicit method found the problem stiff.
    Stiff,
    /// The step size underflowed or the step budget was spent.
    Stuck,
}

/// What one leg of integration goes over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch<'q> {
    pub t: f64,
    pub q: &'q [f64],
    pub end: f64,
    /// First step to try; 0 leaves it to the method.
    pub first_step: f64,
    pub tolerance: Tolerance,
}

/// One leg of integration: where it ended, and the last accepted state before that.
#[derive(Debug, Clone)]
pub(super) struct Leg {
    pub t: f64,
    pub q: Vec<f64>,
    pub before_t: f64,
    pub before_q: Vec<f64>,
    /// Step size to go on with.
    pub step: f64,
    pub stop: Stop,
}

/// Counts that explain a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct StepCounts {
    /// Accepted steps of the explicit method (Dopri5).
    pub explicit_steps: u64,
    /// Accepted steps of the implicit method (RODAS4).
    pub implicit_steps: u64,
    /// Steps that were tried and rejected.
    pub rejected: u64,
    /// Evaluations of the drift.
    pub evaluations: u64,
    /// Factorisations of the Jacobian.
    pub factorisations: u64,
}

/// Error weights: a step is accepted when the root mean square of error / (absolute + relative |q|)
/// is below 1.
///
/// The norm is a mean over coordinates, so empty levels dilute it; dividing by the square root of
/// their number makes the bound one on the sum. The absolute part is well below the relative one
/// because small tails matter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tolerance {
    pub relative: f64,
    pub absolute: f64,
}

impl Tolerance {
    pub fn new(tolerance: f64, coordinates: usize) -> Self {
        #[allow(clippy::cast_precision_loss)]
        let spread = (coordinates.max(1) as f64).sqrt();
        // Below a few units of rounding the explicit method only wastes steps.
        let relative = (0.1 * tolerance / spread).max(1e-15);
        Self { relative, absolute: 0.01 * relative }
    }

    pub fn norm(&self, q: &[f64], new: &[f64], error: &[f64]) -> f64 {
        let sum: f64 = q
            .iter()
            .zip(new)
            .zip(error)
            .map(|((a, b), e)| {
                let w = e / (self.absolute + self.relative * a.abs().max(b.abs()));
                w * w
            })
            .sum();
        #[allow(clippy::cast_precision_loss)]
        let n = q.len().max(1) as f64;
        (sum / n).sqrt()
    }
}

/// The most negative entry; 0 if there is none.
pub(super) fn lowest_entry(q: &[f64]) -> f64 {
    q.iter().fold(0.0, |a: f64, x| a.min(*x))
}
