//! Fixed points where messages that are out of date are kept: no equation is known, so the path from
//! idle is followed until it all but rests, and Newton's method finishes in the modes it rests in.

use super::field::{Field, Mode};
use super::motion::Motion;
use super::rest;
use crate::fluid::drift::{Drift, Scratch};
use crate::fluid::fixed_point::{FixedPoint, Method};
use crate::fluid::path::Plan;
use crate::fluid::FluidError;
use crate::model::{Initial, Model, Routers, Top};
use nalgebra::DVector;

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
        let drift = residual(&motion.field, &motion.q);
        best = best.min(drift);
        if drift > NEAR * model.arrival_rate {
            continue;
        }
        if let Some((q, steps)) = newton(&motion.field, &motion.q) {
            let held = (0..routers.len()).map(|r| motion.field.held(r, &q)).collect();
            let growth = vec![None; model.pools.len()];
            let modes: Vec<Mode> = motion.field.modes.clone();
            let method = Method::Newton;
            let mut x = rest::describe(model, model, routers, growth, modes, &motion.space, q, method);
            x.iterations = steps;
            return Ok((x, held));
        }
    }
    Err(FluidError::KeptMessages { residual: best })
}

/// The largest component of the drift.
fn residual(field: &Field, q: &[f64]) -> f64 {
    let mut dq = vec![0.0; q.len()];
    let inside = field.eval(q, &mut dq, &mut Scratch::default());
    if inside { dq.iter().fold(0.0, |a: f64, x| a.max(x.abs())) } else { f64::INFINITY }
}

/// Newton's method; one equation of each pool gives way to its mass, and what empty routers would hold
/// stays zero. `None` if it does not settle inside the domain.
fn newton(field: &Field, start: &[f64]) -> Option<(Vec<f64>, u32)> {
    const MOST_STEPS: u32 = 20;
    let mut q = start.to_vec();
    let mut last = f64::INFINITY;
    for step in 0..MOST_STEPS {
        let mut dq = vec![0.0; q.len()];
        if !field.eval(&q, &mut dq, &mut Scratch::default()) {
            return None;
        }
        let size = dq.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
        if size < 1e-13 * field.rate_scale() && size > 0.5 * last || size == 0.0 {
            return (q.iter().all(|x| *x > -1e-14)).then_some((q, step));
        }
        last = size;
        let mut jacobian = field.jacobian(&q)?;
        for (s, cell) in field.cells.iter().enumerate() {
            if cell.holder.is_some_and(|r| field.modes[r] == Mode::Empty) {
                jacobian.row_mut(s).fill(0.0);
                jacobian[(s, s)] = 1.0;
                dq[s] = 0.0;
            }
        }
        for j in 0..=field.cells.last()?.pool {
            let of_pool = || (0..q.len()).filter(|&s| field.cells[s].pool == j);
            let ground = of_pool().max_by(|&a, &b| q[a].total_cmp(&q[b]))?;
            jacobian.row_mut(ground).fill(0.0);
            of_pool().for_each(|s| jacobian[(ground, s)] = 1.0);
            dq[ground] = 0.0;
        }
        let change = jacobian.lu().solve(&DVector::from_vec(dq))?;
        q.iter_mut().zip(change.iter()).for_each(|(q, c)| *q -= c);
    }
    None
}
