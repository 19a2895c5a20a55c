//! Fixed points where messages that are out of date are kept: no equation is known, so the path from
//! idle is followed until it all but rests, and long implicit steps finish in the modes it rests in.
//! (Messages at router r change at rate w_r D - lambda_r while it has any: only routers with the least
//! lambda_r / w_r can have some at rest.)

use super::field::Field;
use super::linear::Factor;
use super::motion::Motion;
use super::rest;
use crate::fluid::FluidError;
use crate::fluid::drift::{Drift, Scratch};
use crate::fluid::fixed_point::{FixedPoint, Method};
use crate::fluid::path::Plan;
use crate::fluid::rosenbrock::Implicit;
use crate::model::{Initial, Model, Routers, Top};

/// The fixed point, and what each router holds there.
pub(super) fn fixed_point(model: &Model, routers: &Routers) -> Result<(FixedPoint, Vec<f64>), FluidError> {
    const NEAR: f64 = 1e-7;
    const SPANS: u32 = 12;
    /// A queue that gets this long is taken to grow for ever.
    const MOST_LEVELS: u32 = 300;
    let plan = Plan { initial: Initial::Idle, times: Vec::new(), tolerance: 1e-9, cut: Top::Reflecting };
    let mut motion = Motion::start(model, routers, &plan)?;
    motion.most_levels = MOST_LEVELS;
    let mut span = 10.0 / motion.field.rate_scale();
    let mut best = f64::INFINITY;
    for _ in 0..SPANS {
        let end = motion.time + span;
        match motion.advance(end) {
            Err(FluidError::TooManyLevels { .. }) => break,
            other => other?,
        }
        span *= 2.0;
        let drift = motion.field.residual(&motion.q);
        best = best.min(drift);
        if drift > NEAR * model.arrival_rate {
            continue;
        }
        if let Some((q, steps)) = settle(&motion.field, &motion.q) {
            let held = (0..routers.len()).map(|r| motion.field.held(r, &q)).collect();
            let growth = vec![None; model.pools.len()];
            let mut x = rest::describe(model, growth, &motion.field, &motion.space, q, Method::Newton);
            x.iterations = steps;
            return Ok((x, held));
        }
    }
    Err(FluidError::KeptMessages { residual: best })
}

/// Implicit steps so long that they are all but Newton's; the mass of pools is kept. `None` if they do
/// not settle inside the domain.
fn settle(field: &Field, start: &[f64]) -> Option<(Vec<f64>, u32)> {
    const MOST_STEPS: u32 = 100;
    const NEGATIVE: f64 = -1e-14;
    let gamma = 1e-3 * field.rate_scale();
    let mut q = start.to_vec();
    let mut last = f64::INFINITY;
    for step in 0..MOST_STEPS {
        let mut dq = vec![0.0; q.len()];
        if !field.eval(&q, &mut dq, &mut Scratch::default()) {
            return None;
        }
        let size = dq.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
        if size < 1e-13 * field.rate_scale() && size > 0.5 * last || size == 0.0 {
            return (q.iter().all(|x| *x > NEGATIVE)).then_some((q, step));
        }
        last = size;
        Factor::new(field, &q, gamma)?.solve(&mut dq);
        q.iter_mut().zip(&dq).for_each(|(q, change)| *q += change);
        field.restore_mass(&mut q);
    }
    None
}
