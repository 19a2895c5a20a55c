//! The distribution of servers over levels, one panel for each pool: in the long run, or at one time for
//! a pool that grows.

use super::{FigureError, of_one_model, parameters, short, spread_out, tail, with_intervals};
use crate::finite::{Summary, interval};
use crate::fluid::{FixedPoint, Path};
use crate::model::{Model, Value};
use crate::output::plot::{Axis, Figure, Fill, Line, Look, Panel, Point, Series, Shape};
use std::collections::BTreeSet;

/// Fractions below this are not drawn.
const LEAST: f64 = 1e-6;
/// More markers than this would run into each other.
const MARKERS: usize = 60;

/// What is drawn of one pool: fractions of its servers with 0, 1, ... jobs, fluid and at each n.
struct Comparison {
    title: String,
    fluid: Vec<f64>,
    finite: Vec<(u64, Vec<Value>)>,
}

/// Draws fluid and finite n. A pool that grows has no distribution in the long run: it is drawn at the
/// last time at which the path and all runs were recorded, fluid and finite n alike.
///
/// # Errors
/// If the results are of another model.
pub fn levels(
    model: &Model,
    path: &Path,
    fixed: &FixedPoint,
    runs: &[Summary],
) -> Result<Figure, FigureError> {
    const POOLS: usize = 3;
    const SIZES: usize = 3;
    of_one_model(model, path, Some(fixed), runs)?;
    let runs = spread_out(runs, SIZES);
    let drawn = model.pools.len().min(POOLS);
    let grows = fixed.growth.iter().take(drawn).any(Option::is_some);
    let when = if grows { "" } else { " in the long run" };
    let mut subtitle = parameters(model);
    if drawn < model.pools.len() {
        subtitle += &format!("; drawn: the first {drawn} of {} pools", model.pools.len());
    }
    let mut figure =
        Figure::new(format!("{}: servers by number of jobs{when}", model.name)).subtitle(subtitle);
    for (j, pool) in model.pools.iter().enumerate().take(drawn) {
        let mut comparison = if fixed.growth[j].is_some() {
            at_one_time(model, path, &runs, j)
        } else {
            let title = if grows { format!("{}: in the long run", pool.name) } else { pool.name.clone() };
            let finite = runs.iter().map(|run| (run.n, run.levels[j].clone()));
            Comparison { title, fluid: fractions(&fixed.tails[j], pool.share), finite: finite.collect() }
        };
        if !grows && model.pools.len() == 1 {
            comparison.title.clear();
        }
        figure = figure.panel(panel(comparison));
    }
    let with = with_intervals(&figure);
    Ok(figure.description(format!(
        "Fraction of each pool's servers that hold k jobs: the fluid limit, and simulations{with}, set apart \
         sideways."
    )))
}

/// Fluid and finite n at the same time: the last that all have, else the end of the path.
fn at_one_time(model: &Model, path: &Path, runs: &[&Summary], pool: usize) -> Comparison {
    let sample = |run: &Summary, time: f64| run.transient.iter().position(|s| s.time == time);
    let shared = |time: f64| runs.iter().all(|run| sample(run, time).is_some());
    let common = path.snapshots.iter().rev().find(|s| shared(s.time));
    let name = &model.pools[pool].name;
    let Some(snapshot) = common.or(path.snapshots.last()) else {
        return Comparison { title: format!("{name}: grows"), fluid: vec![], finite: vec![] };
    };
    let finite: Vec<_> = runs
        .iter()
        .filter_map(|run| Some((run.n, sampled(run, sample(run, snapshot.time)?, pool))))
        .collect();
    let alone = if finite.len() < runs.len() { ", some n not sampled then" } else { "" };
    Comparison {
        title: format!("{name}: grows; at t = {}{alone}", short(snapshot.time)),
        fluid: fractions(&snapshot.tails[pool], model.pools[pool].share),
        finite,
    }
}

/// The fractions at one sample time. Their intervals need every replication by itself, because those of
/// two tails say nothing about the difference.
#[allow(clippy::cast_precision_loss)]
fn sampled(run: &Summary, at: usize, pool: usize) -> Vec<Value> {
    if run.pool_sizes[pool] == 0 {
        return Vec::new();
    }
    let share = run.pool_sizes[pool] as f64 / run.n as f64;
    let means: Vec<f64> = run.transient[at].tails[pool].iter().map(|v| v.value).collect();
    let paths = if run.paths.len() == run.replications as usize { run.paths.as_slice() } else { &[] };
    let single: Vec<Vec<f64>> =
        paths.iter().filter_map(|p| p.tails.get(at)).map(|pools| fractions(&pools[pool], share)).collect();
    let half_width = |k: usize| interval(single.iter().map(|f| f.get(k).copied().unwrap_or(0.0)))?.half_width;
    let fractions = fractions(&means, share).into_iter().enumerate();
    fractions.map(|(k, value)| Value { value, half_width: half_width(k) }).collect()
}

fn panel(comparison: Comparison) -> Panel {
    let Comparison { title, fluid, finite } = comparison;
    let held: BTreeSet<usize> = std::iter::once(levels_held(&fluid))
        .chain(
            finite.iter().map(|(_, values)| levels_held(&values.iter().map(|v| v.value).collect::<Vec<_>>())),
        )
        .flatten()
        .collect();
    // Two levels are compared by eye on a linear axis; a tail needs a logarithmic one.
    let few = held.len() <= 2;
    let (low, high) = (held.first().copied().unwrap_or(0), held.last().copied().unwrap_or(0));
    // A single level would leave the axis without length.
    let (low, high) = if low == high { (low.saturating_sub(1), high.max(1)) } else { (low, high) };
    let shown = |k: usize, y: f64| (low..=high).contains(&k) && (y >= LEAST || few);
    let scale = if few { Axis::linear } else { Axis::log };
    let mut panel =
        Panel::new(Axis::linear("jobs at a server, k").whole(), scale("fraction of the pool's servers"));
    panel = panel.title(title);
    let points = fluid.iter().enumerate().filter(|(k, y)| shown(*k, **y));
    let points = points.map(|(k, &y)| Point::new(level(k), y)).collect();
    let look = Look::curve(0).marker(Shape::Circle, Fill::Open);
    panel = panel.series(Series::new("fluid, n = \u{221E}", points, look));
    // Counted from the top, where full servers may hold most of the mass.
    let step = (high - low) / MARKERS + 1;
    for (i, (n, values)) in finite.into_iter().enumerate() {
        let points = values.iter().enumerate();
        let points = points.filter(|(k, v)| shown(*k, v.value) && (high - k).is_multiple_of(step));
        let points = points.map(|(k, v)| measured(level(k) + 0.08 * level(i + 1), *v)).collect();
        panel = panel.series(Series::new(format!("n = {n}"), points, Look::measured(i + 1).line(Line::None)));
    }
    panel
}

fn levels_held(fractions: &[f64]) -> Vec<usize> {
    (0..fractions.len()).filter(|&k| fractions[k] >= LEAST).collect()
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
    let at = |k: usize| if k == 0 { share } else { tail(tails, k) };
    (0..=tails.len()).map(|k| ((at(k) - at(k + 1)) / share).max(0.0)).collect()
}
