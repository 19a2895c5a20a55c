//! Errors over n on logarithmic axes, with intervals, fitted slopes and slope guides.

use super::{parameters, tail_name, with_intervals};
use crate::model::Model;
use crate::output::plot::{Axis, Figure, Fill, Guide, Line, Look, Panel, Point, Series, Shape};
use crate::run::{Convergence, Curve};

/// Draws the path deviation beside the biases that stand out from their intervals at some n.
#[must_use]
pub fn convergence(convergence: &Convergence, model: &Model) -> Figure {
    const BIASES: usize = 5;
    let mut figure = Figure::new(format!("{}: error of the fluid limit at finite n", model.name))
        .subtitle(parameters(model));
    let panel =
        Panel::new(Axis::log("number of servers n").whole(), Axis::log("largest deviation of a path"));
    let [clear, unclear] = series(model, &convergence.path, 0);
    let panel = panel.title("Paths").series(clear).series(unclear);
    figure = figure.panel(with_guide(panel, std::iter::once(&convergence.path), -0.5, "slope -1/2"));
    let resolved = |c: &&Curve| c.points.iter().any(|(_, error, half)| error.abs() > half.max(NOTHING));
    let mut biases: Vec<&Curve> = convergence.bias.iter().filter(resolved).collect();
    let largest = |c: &Curve| c.points.iter().map(|p| p.1.abs()).fold(0.0, f64::max);
    biases.sort_by(|a, b| largest(b).total_cmp(&largest(a)));
    biases.truncate(BIASES);
    if !biases.is_empty() {
        let mut panel =
            Panel::new(Axis::log("number of servers n").whole(), Axis::log("|bias| of the long-run mean"));
        panel = panel.title("Long-run means");
        for (i, curve) in biases.iter().enumerate() {
            let [clear, unclear] = series(model, curve, i + 1);
            panel = panel.series(clear).series(unclear);
        }
        figure = figure.panel(with_guide(panel, biases.into_iter(), -1.0, "slope -1"));
    }
    let with = with_intervals(&figure);
    figure.description(format!("Largest deviation of a path, and bias of long-run means, over n{with}."))
}

/// Errors below this are of what no run has seen and the fluid has all but none of.
const NOTHING: f64 = 1e-14;

/// The errors that stand out from their intervals, joined; the others as open markers.
#[allow(clippy::cast_precision_loss)]
fn series(model: &Model, curve: &Curve, look: usize) -> [Series; 2] {
    let mut label = in_words(model, &curve.name);
    if let Some(s) = curve.slope {
        label += &format!(": slope {:.2} ± {:.2}", s.value, s.half_width);
    }
    let part = |stands_out: bool| -> Vec<Point> {
        let points = curve.points.iter().filter(|p| p.1.abs() > NOTHING && (p.1.abs() > p.2) == stands_out);
        let point = |&(n, error, half): &(u64, f64, f64)| {
            // Without a second replication there is no interval.
            if half.is_finite() && half > 0.0 {
                Point::measured(n as f64, error.abs(), half)
            } else {
                Point::new(n as f64, error.abs())
            }
        };
        points.map(point).collect()
    };
    let filled = Look::measured(look).line(Line::Solid);
    let shape = filled.marker.map_or(Shape::Circle, |m| m.shape);
    let open = Look::measured(look).marker(shape, Fill::Open);
    [Series::new(label, part(true), filled), Series::new("", part(false), open)]
}

/// What a reader calls a measure or a tail.
fn in_words(model: &Model, name: &str) -> String {
    if let Some((pool, level)) = name.strip_prefix("x.").and_then(|tail| tail.rsplit_once('.'))
        && let Ok(level) = level.parse()
    {
        return tail_name(model, pool, level);
    }
    match name {
        "p_idle" => "P(idle server)".into(),
        "p_wait" => "P(wait)".into(),
        "p_block" => "P(block)".into(),
        "p_busy" => "P(wait or block)".into(),
        "mean_jobs" => "mean jobs per server".into(),
        other => other.replace('_', " "),
    }
}

/// Adds a guide of the expected slope through the largest error at the smallest n.
#[allow(clippy::cast_precision_loss)]
fn with_guide<'c>(panel: Panel, curves: impl Iterator<Item = &'c Curve>, slope: f64, label: &str) -> Panel {
    let points: Vec<(f64, f64)> = curves
        .flat_map(|c| &c.points)
        .filter(|p| p.1.abs() > NOTHING)
        .map(|p| (p.0 as f64, p.1.abs()))
        .collect();
    let (Some(low), Some(high)) =
        (points.iter().map(|p| p.0).reduce(f64::min), points.iter().map(|p| p.0).reduce(f64::max))
    else {
        return panel;
    };
    if low >= high {
        return panel;
    }
    let top = points.iter().filter(|p| p.0 == low).map(|p| p.1).fold(0.0, f64::max);
    panel.guide(Guide::Slope {
        slope,
        through: (low, 1.6 * top),
        span: Some((low, high)),
        label: label.into(),
    })
}
