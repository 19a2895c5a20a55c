//! Tails over time: the fluid bold, paths of finite n thin beneath, one panel for each n.

use super::{FigureError, of_one_model, parameters, spread_out, tail, tail_name};
use crate::finite::Summary;
use crate::fluid::{FixedPoint, Path};
use crate::model::Model;
use crate::output::events::what_happened;
use crate::output::plot::{Axis, Figure, Guide, Look, Panel, Point, Series};

/// A tail to draw: x_k of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailChoice {
    /// Index of the pool.
    pub pool: usize,
    /// Level k, from 1.
    pub level: usize,
}

/// x_1 of each pool, at most four, and x_2 and x_3 where they are ever worth seeing.
#[must_use]
pub fn default_tails(model: &Model, path: &Path) -> Vec<TailChoice> {
    const POOLS: usize = 4;
    const VISIBLE: f64 = 0.005;
    let levels = if model.pools.len() == 1 { 3 } else { 2 };
    let seen = |c: &TailChoice| {
        let least = VISIBLE * model.pools[c.pool].share;
        path.snapshots.iter().any(|s| s.tails.get(c.pool).is_some_and(|tails| tail(tails, c.level) > least))
    };
    (1..=levels)
        .flat_map(|level| (0..model.pools.len().min(POOLS)).map(move |pool| TailChoice { pool, level }))
        .filter(|c| c.level == 1 || seen(c))
        .collect()
}

/// Draws the chosen tails of the fluid path; `fixed` adds where those end that do not grow.
///
/// # Errors
/// If the model has no such tail, or the results are of another model.
pub fn trajectory(
    model: &Model,
    path: &Path,
    fixed: Option<&FixedPoint>,
    runs: &[Summary],
    tails: &[TailChoice],
) -> Result<Figure, FigureError> {
    of_one_model(model, path, fixed, runs)?;
    let pools = model.pools.len();
    if let Some(&TailChoice { pool, level }) = tails.iter().find(|c| c.pool >= pools || c.level == 0) {
        return Err(FigureError::NoTail { pool, level, pools });
    }
    let title = if runs.is_empty() {
        format!("{}: the fluid path", model.name)
    } else {
        format!("{}: the fluid path and paths of n servers", model.name)
    };
    let mut figure = Figure::new(title)
        .subtitle(parameters(model))
        .description("Fraction of all servers with at least k jobs, over time.");
    let chosen = spread_out(runs, 3);
    // One scale for all panels, so that they compare at a glance.
    let share = |c: &TailChoice| model.pools[c.pool].share;
    let top = 1.04 * tails.iter().map(share).fold(f64::MIN_POSITIVE, f64::max);
    if chosen.is_empty() {
        return Ok(figure.panel(panel(model, path, fixed, None, tails, top)));
    }
    for run in chosen {
        figure = figure.panel(panel(model, path, fixed, Some(run), tails, top));
    }
    Ok(figure)
}

fn panel(
    model: &Model,
    path: &Path,
    fixed: Option<&FixedPoint>,
    run: Option<&Summary>,
    tails: &[TailChoice],
    top: f64,
) -> Panel {
    let fraction = Axis::linear("fraction with \u{2265} k jobs, x_{k}").range(0.0, top);
    let mut panel = Panel::new(Axis::linear("time t"), fraction);
    if let Some(run) = run {
        panel = panel.title(format!("n = {}", run.n));
        for (i, c) in tails.iter().enumerate() {
            for one in &run.paths {
                let states = run.transient.iter().zip(&one.tails);
                let points = states.map(|(at, pools)| Point::new(at.time, tail(&pools[c.pool], c.level)));
                panel = panel.series(Series::new("", points.collect(), Look::path(i)));
            }
        }
    }
    for (i, c) in tails.iter().enumerate() {
        let points = path.snapshots.iter().map(|s| Point::new(s.time, tail(&s.tails[c.pool], c.level)));
        let name = tail_name(model, &model.pools[c.pool].name, c.level);
        panel = panel.series(Series::new(name, points.collect(), Look::curve(i)));
        let settled = fixed.filter(|f| f.growth[c.pool].is_none());
        // A tail that vanishes ends on the axis, which is line enough.
        if let Some(y) = settled.map(|f| tail(&f.tails[c.pool], c.level)).filter(|y| *y > 0.0) {
            // One label tells what all these lines are.
            let first = !panel.guides.iter().any(|g| matches!(g, Guide::Horizontal { .. }));
            let label = if first { "fixed point" } else { "" };
            panel = panel.guide(Guide::Horizontal { y, label: label.into() });
        }
    }
    const EVENTS: usize = 4;
    for event in path.events.iter().take(EVENTS) {
        panel = panel.guide(Guide::Vertical { x: event.time, label: what_happened(model, event) });
    }
    if let Some(next) = path.events.get(EVENTS) {
        let label = format!("{} more events from here", path.events.len() - EVENTS);
        panel = panel.guide(Guide::Vertical { x: next.time, label });
    }
    panel
}
