//! Survival functions of data and of the laws fitted to them.

use crate::model::{DataFit, Sample};
use crate::output::plot::{Axis, Colour, Figure, Line, Look, Panel, Point, Series, Width};

/// Points of each curve.
const POINTS: usize = 400;

/// Draws the share of service times above t, and the same of the chosen law (bold) and of the others.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn survival(name: &str, sample: &Sample, fits: &[DataFit], chosen: &DataFit) -> Figure {
    let times = sample.times();
    let count = times.len();
    let share = |i: usize| (count - 1 - i) as f64 / count as f64;
    let steps = thinned(count).map(|i| Point::new(times[i], share(i)));
    let steps: Vec<Point> =
        std::iter::once(Point::new(0.0, 1.0)).chain(steps).filter(|p| p.y > 0.0).collect();
    let largest = times.last().copied().unwrap_or(1.0);
    let lowest = 0.3 / count as f64;
    let look = Look::path(0).colour(Colour::Black).width(Width::Normal).steps();
    let mut panel = Panel::new(
        Axis::linear("service time t"),
        Axis::log("share of services longer than t").range(lowest, 1.0),
    )
    .series(Series::new("data", steps, look));
    for (i, fit) in fits.iter().enumerate() {
        let bold = fit.family == chosen.family;
        let points = (0..=POINTS).map(|k| 1.1 * largest * k as f64 / POINTS as f64);
        let points: Vec<Point> = points.map(|t| Point::new(t, fit.law.survival(t))).collect();
        let points = points.into_iter().filter(|p| p.y >= lowest).collect();
        let width = if bold { Width::Bold } else { Width::Thin };
        let line = if bold { Line::Solid } else { [Line::Dashed, Line::Dotted][i % 2] };
        let label = if bold { format!("{} (chosen)", fit.family.label()) } else { fit.family.label().into() };
        panel = panel.series(Series::new(label, points, Look::curve(i).line(line).width(width)));
    }
    Figure::new(format!("{name}: service times and fitted laws"))
        .subtitle(format!("{count} service times, mean {:.4}, SCV {:.4}", sample.mean(), sample.scv()))
        .description("Empirical and fitted survival functions on a logarithmic axis.")
        .panel(panel)
}

/// Some of the indices below `count`: evenly spread, and evenly in the logarithm of what is left.
fn thinned(count: usize) -> impl Iterator<Item = usize> {
    let even = (0..POINTS).map(move |k| k * count / POINTS);
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let left = (0..POINTS).map(move |k| (count as f64).powf(k as f64 / POINTS as f64) as usize);
    let last = left.map(move |l| count.saturating_sub(l + 1));
    even.chain(last).collect::<std::collections::BTreeSet<_>>().into_iter().filter(move |i| *i < count)
}
