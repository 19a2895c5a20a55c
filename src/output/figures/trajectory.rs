//! Tails over time: the fluid bold, paths of finite n thin beneath, one panel for each n.

use super::{parameters, spread_out};
use crate::finite::Summary;
use crate::fluid::{Event, EventKind, FixedPoint, Path};
use crate::model::{LevelSet, Model};
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
        let share = model.pools[c.pool].share;
        path.snapshots.iter().any(|s| s.tails[c.pool].get(c.level - 1).is_some_and(|x| *x > VISIBLE * share))
    };
    (1..=levels)
        .flat_map(|level| (0..model.pools.len().min(POOLS)).map(move |pool| TailChoice { pool, level }))
        .filter(|c| c.level == 1 || seen(c))
        .collect()
}

/// Draws the chosen tails of the fluid path; `fixed` adds where they end.
#[must_use]
pub fn trajectory(
    model: &Model,
    path: &Path,
    fixed: Option<&FixedPoint>,
    runs: &[Summary],
    tails: &[TailChoice],
) -> Figure {
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
        return figure.panel(panel(model, path, fixed, None, tails, top));
    }
    for run in chosen {
        figure = figure.panel(panel(model, path, fixed, Some(run), tails, top));
    }
    figure
}

fn panel(
    model: &Model,
    path: &Path,
    fixed: Option<&FixedPoint>,
    run: Option<&Summary>,
    tails: &[TailChoice],
    top: f64,
) -> Panel {
    let fraction = Axis::linear("fraction of all servers").range(0.0, top);
    let mut panel = Panel::new(Axis::linear("time t"), fraction);
    if let Some(run) = run {
        panel = panel.title(format!("n = {}", run.n));
        for (i, c) in tails.iter().enumerate() {
            for one in &run.paths {
                let points = run.transient.iter().zip(&one.tails).map(|(at, tails)| {
                    Point::new(at.time, tails[c.pool].get(c.level - 1).copied().unwrap_or(0.0))
                });
                panel = panel.series(Series::new("", points.collect(), Look::path(i)));
            }
        }
    }
    for (i, c) in tails.iter().enumerate() {
        let points = path
            .snapshots
            .iter()
            .map(|s| Point::new(s.time, s.tails[c.pool].get(c.level - 1).copied().unwrap_or(0.0)));
        panel = panel.series(Series::new(name(model, *c), points.collect(), Look::curve(i)));
        let end = fixed.filter(|f| f.is_proper()).and_then(|f| f.tails[c.pool].get(c.level - 1).copied());
        if let Some(y) = end.filter(|y| *y > 0.0) {
            panel = panel.guide(Guide::Horizontal { y, label: String::new() });
        }
    }
    const EVENTS: usize = 4;
    for event in path.events.iter().take(EVENTS) {
        panel = panel.guide(Guide::Vertical { x: event.time, label: what_happened(model, event) });
    }
    panel
}

fn name(model: &Model, c: TailChoice) -> String {
    if model.pools.len() == 1 {
        format!("x_{{{}}}", c.level)
    } else {
        format!("x_{{{},{}}}", c.level, model.pools[c.pool].name)
    }
}

fn what_happened(model: &Model, event: &Event) -> String {
    if let Some(router) = event.router {
        let what = if event.kind == EventKind::Hit { "empties" } else { "fills" };
        return format!("router {} {what}", router + 1);
    }
    let idle = LevelSet { from: 0, to: 0 };
    let tier = model.policy.tiers.get(event.tier);
    let is_idle = tier.is_some_and(|t| t.levels == idle && t.pools.is_none());
    match event.kind {
        EventKind::Hit if is_idle => "all busy".into(),
        EventKind::Leave if is_idle => "some idle".into(),
        EventKind::Hit => format!("tier {} empties", event.tier + 1),
        EventKind::Leave => format!("tier {} fills", event.tier + 1),
    }
}
