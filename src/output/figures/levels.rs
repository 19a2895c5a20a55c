//! The long-run distribution of servers over levels, one panel for each pool.

use super::{parameters, spread_out};
use crate::finite::Summary;
use crate::fluid::{FixedPoint, Path};
use crate::model::{Model, Value};
use crate::output::plot::{Axis, Figure, Fill, Line, Look, Panel, Point, Series, Shape};

/// Fractions below this are not drawn.
const LEAST: f64 = 1e-6;
/// Levels above this are not drawn.
const HIGHEST: usize = 60;

/// Draws fluid and finite n. A pool that grows has no distribution in the limit: its fluid is drawn
/// at the end of the path.
#[must_use]
pub fn levels(model: &Model, path: &Path, fixed: &FixedPoint, runs: &[Summary]) -> Figure {
    const POOLS: usize = 3;
    const SIZES: usize = 3;
    let runs = spread_out(runs, SIZES);
    let mut figure = Figure::new(format!("{}: servers by number of jobs in the long run", model.name))
        .subtitle(parameters(model))
        .description("Fraction of each pool's servers that hold k jobs; simulations with 95 % intervals.");
    for j in 0..model.pools.len().min(POOLS) {
        let at_end = fixed.growth[j].is_some();
        let tails = if at_end {
            path.snapshots.last().map(|s| s.tails[j].clone()).unwrap_or_default()
        } else {
            fixed.tails[j].clone()
        };
        let fluid = fractions(&tails, model.pools[j].share);
        let visible = |y: f64| y >= LEAST;
        let simulated =
            runs.iter().flat_map(|r| r.levels[j].iter().enumerate()).filter(|(_, v)| visible(v.value));
        let seen = fluid.iter().enumerate().filter(|(_, y)| visible(**y)).map(|(k, _)| k);
        let top = seen.chain(simulated.map(|(k, _)| k)).max().unwrap_or(0).clamp(1, HIGHEST);
        let scale = if top <= 1 { Axis::linear } else { Axis::log };
        let mut panel =
            Panel::new(Axis::linear("jobs at a server, k"), scale("fraction of the pool's servers"));
        if model.pools.len() > 1 {
            panel = panel.title(model.pools[j].name.clone());
        }
        let label = if at_end { "fluid, at the horizon" } else { "fluid, n = ∞" };
        let points = fluid.iter().take(top + 1).enumerate().filter(|(_, y)| visible(**y) || top <= 1);
        let points = points.map(|(k, &y)| Point::new(level(k), y)).collect();
        panel = panel.series(Series::new(label, points, Look::curve(0).marker(Shape::Circle, Fill::Open)));
        for (i, run) in runs.iter().enumerate() {
            let points = run.levels[j].iter().take(top + 1).enumerate();
            let points = points.filter(|(_, v)| visible(v.value) || top <= 1);
            let points = points.map(|(k, v)| measured(level(k) + 0.08 * level(i + 1), *v)).collect();
            panel = panel.series(Series::new(
                format!("n = {}", run.n),
                points,
                Look::measured(i + 1).line(Line::None),
            ));
        }
        figure = figure.panel(panel);
    }
    figure
}

#[allow(clippy::cast_precision_loss)]
fn level(k: usize) -> f64 {
    k as f64
}

fn measured(x: f64, v: Value) -> Point {
    v.half_width.map_or_else(|| Point::new(x, v.value), |half| Point::measured(x, v.value, half))
}

/// Fractions of the pool at level 0, 1, ... from its tails.
fn fractions(tails: &[f64], share: f64) -> Vec<f64> {
    let at = |k: usize| if k == 0 { share } else { tails.get(k - 1).copied().unwrap_or(0.0) };
    (0..=tails.len()).map(|k| ((at(k) - at(k + 1)) / share).max(0.0)).collect()
}
