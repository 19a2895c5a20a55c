//! The non-stiff path: Dormand-Prince 5(4) of `ode_solvers`, behind a facade.
//!
//! Three of its habits are used or worked around here. A stage outside the domain writes NaN, which
//! its controller takes for a rejected step and shortens it. Its stiffness test ends the run, which
//! here means "switch method". It keeps every accepted step, so callers integrate in short legs.

use super::drift::{Drift, Scratch};
use super::step::{Leg, StepCounts, Stop, Stretch};
use nalgebra::DVector;
use ode_solvers::dop_shared::{IntegrationError, OutputType, System};
use ode_solvers::dopri5::Dopri5;
use std::cell::RefCell;

struct Watched<'a, D: Drift> {
    drift: &'a D,
    scratch: &'a RefCell<Scratch>,
    watch: &'a mut dyn FnMut(f64, &[f64]) -> bool,
    stopped: &'a mut bool,
}

impl<D: Drift> System<f64, DVector<f64>> for Watched<'_, D> {
    fn system(&self, _t: f64, q: &DVector<f64>, dq: &mut DVector<f64>) {
        self.drift.eval(q.as_slice(), dq.as_mut_slice(), &mut self.scratch.borrow_mut());
    }

    fn solout(&mut self, t: f64, q: &DVector<f64>, _dq: &DVector<f64>) -> bool {
        *self.stopped = (self.watch)(t, q.as_slice());
        *self.stopped
    }
}

/// Integrates `drift` over a stretch, or until `watch` says stop after an accepted step.
pub(super) fn integrate<D: Drift>(
    drift: &D,
    stretch: Stretch<'_>,
    counts: &mut StepCounts,
    watch: &mut dyn FnMut(f64, &[f64]) -> bool,
) -> Leg {
    let Stretch { t, q, end, first_step, tolerance } = stretch;
    const MOST_STEPS: u32 = 2_000_000;
    const STIFF_AFTER: u32 = 100;
    let (safety, beta, least, most) = (0.9, 0.04, 0.2, 10.0);
    let scratch = RefCell::new(Scratch::default());
    let mut stopped = false;
    let system = Watched { drift, scratch: &scratch, watch, stopped: &mut stopped };
    let span = end - t;
    let first = if first_step > 0.0 { first_step.min(span) } else { 0.0 };
    let start = DVector::from_column_slice(q);
    let mut solver = Dopri5::from_param(
        system,
        t,
        end,
        0.0,
        start,
        tolerance.relative,
        tolerance.absolute,
        safety,
        beta,
        least,
        most,
        span,
        first,
        MOST_STEPS,
        STIFF_AFTER,
        OutputType::Sparse,
    );
    let outcome = solver.integrate();
    let (times, states) = solver.results().get();
    let last = times.len() - 1;
    let before = last.saturating_sub(1);
    if let Ok(stats) = &outcome {
        counts.explicit_steps += u64::from(stats.accepted_steps);
        counts.rejected += u64::from(stats.rejected_steps);
        counts.evaluations += u64::from(stats.num_eval);
    } else {
        counts.explicit_steps += last as u64;
        counts.evaluations += 6 * last as u64;
    }
    // The last step may have been cut short by the end of the leg: go on with the longer of the two.
    let steps = times.windows(2).rev().take(2).map(|w| w[1] - w[0]);
    let leg = Leg {
        t: times[last],
        q: states[last].as_slice().to_vec(),
        before_t: times[before],
        before_q: states[before].as_slice().to_vec(),
        step: steps.fold(0.0, f64::max),
        stop: Stop::End,
    };
    let stop = match outcome {
        Ok(_) if stopped => Stop::Watched,
        Ok(_) => Stop::End,
        Err(IntegrationError::StiffnessDetected { .. }) => Stop::Stiff,
        Err(_) => Stop::Stuck,
    };
    Leg { stop, ..leg }
}
