//! From values to places along an axis: the ends of an axis and where a value falls between them.

use super::figure::{Axis, Panel, Point, Scale};

/// Values beyond this size are left out, and values closer to zero than its inverse are taken as zero, so
/// that differences and ratios of what remains neither overflow nor vanish.
const HUGE: f64 = 1e306;

/// How far a place may lie outside an axis; clipping needs finite places.
const FAR: f64 = 1e4;

/// The ends of one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) scale: Scale,
    pub(super) whole: bool,
}

/// Why a panel shows no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Emptiness {
    NoData,
    NoPositiveData,
}

/// A value that can be drawn on an axis of this scale.
pub(super) fn drawable(value: f64, scale: Scale) -> Option<f64> {
    if !value.is_finite() || value.abs() > HUGE {
        return None;
    }
    let value = if value.abs() < 1.0 / HUGE { 0.0 } else { value };
    (scale == Scale::Linear || value > 0.0).then_some(value)
}

/// The points of a panel that have a place on both axes.
pub(super) fn shown(panel: &Panel) -> impl Iterator<Item = (f64, f64, &Point)> {
    panel.series.iter().flat_map(|series| &series.points).filter_map(|point| {
        let x = drawable(point.x, panel.x.scale)?;
        let y = drawable(point.y, panel.y.scale)?;
        Some((x, y, point))
    })
}

/// How many points are left out because a logarithmic axis has no place for them.
pub(super) fn not_positive(panel: &Panel) -> usize {
    let finite = |v| drawable(v, Scale::Linear).is_some();
    let points = panel.series.iter().flat_map(|series| &series.points);
    points.filter(|point| finite(point.x) && finite(point.y)).count() - shown(panel).count()
}

/// Whether a panel has data to show, and if not, why.
pub(super) fn emptiness(panel: &Panel) -> Option<Emptiness> {
    if shown(panel).next().is_some() {
        None
    } else if not_positive(panel) > 0 {
        Some(Emptiness::NoPositiveData)
    } else {
        Some(Emptiness::NoData)
    }
}

/// Both axes of a panel.
pub(super) fn spans(panel: &Panel) -> (Span, Span) {
    let mut x = Extent::default();
    let mut y = Extent::default();
    for (px, py, point) in shown(panel) {
        x.include(px);
        y.include(py);
        let half = point.half_width.filter(|half| *half > 0.0);
        if let Some(half) = half {
            y.include_interval_end(drawable(py + half, panel.y.scale));
            y.include_interval_end(drawable(py - half, panel.y.scale));
        }
    }
    // Markers at the ends of the x axis would be cut in half by its ends; lines are meant to reach them.
    let has_markers = panel.series.iter().any(|series| series.look.marker.is_some());
    let sides = Room { share: if has_markers { 0.035 } else { 0.0 }, neat: false };
    (span(&panel.x, x, sides), span(&panel.y, y, Room { share: 0.05, neat: true }))
}

/// What a fitted axis adds to the extent of its data.
#[derive(Clone, Copy)]
struct Room {
    /// The room at each end as a share of the extent.
    share: f64,
    /// Whether an end goes to zero or to a decade that is near.
    neat: bool,
}

#[derive(Clone, Copy, Default)]
struct Extent {
    values: Option<(f64, f64)>,
    interval_ends: Option<(f64, f64)>,
}

impl Extent {
    fn include(&mut self, value: f64) {
        self.values = Some(wider(self.values, value));
    }

    fn include_interval_end(&mut self, end: Option<f64>) {
        if let Some(end) = end {
            self.interval_ends = Some(wider(self.interval_ends, end));
        }
    }

    fn ends(&self, scale: Scale) -> Option<(f64, f64)> {
        let (low, high) = self.values?;
        let Some((below, above)) = self.interval_ends else {
            return Some((low, high));
        };
        // An interval that nearly reaches zero would stretch a logarithmic axis over empty decades.
        let below = if scale == Scale::Log { below.max(low / 10.0) } else { below };
        Some((low.min(below), high.max(above)))
    }
}

fn wider(range: Option<(f64, f64)>, value: f64) -> (f64, f64) {
    range.map_or((value, value), |(low, high)| (low.min(value), high.max(value)))
}

fn span(axis: &Axis, extent: Extent, room: Room) -> Span {
    let Axis { scale, whole, .. } = *axis;
    if let Some((low, high)) = axis.range.and_then(|range| usable(range, scale)) {
        return Span { low, high, scale, whole };
    }
    let (low, high) = match (extent.ends(scale), scale) {
        (Some((low, high)), Scale::Linear) => fitted_linear(low, high, room),
        (Some((low, high)), Scale::Log) => fitted_log(low, high, room),
        (None, Scale::Linear) => (0.0, 1.0),
        (None, Scale::Log) => (0.1, 10.0),
    };
    Span { low, high, scale, whole }
}

fn usable((a, b): (f64, f64), scale: Scale) -> Option<(f64, f64)> {
    let (a, b) = (drawable(a, scale)?, drawable(b, scale)?);
    let (low, high) = (a.min(b), a.max(b));
    (high - low > 1e-9 * low.abs().max(high.abs())).then_some((low, high))
}

fn fitted_linear(low: f64, high: f64, room: Room) -> (f64, f64) {
    let size = low.abs().max(high.abs());
    if size <= 0.0 {
        return (-1.0, 1.0);
    }
    // Below this relative length tick labels would need more digits than a reader can compare.
    if high - low <= 1e-9 * size {
        let half = 0.1 * size;
        return clamp(low - half, high + half);
    }
    let pad = room.share * (high - low);
    let near_zero = |near: f64, far: f64| room.neat && near >= 0.0 && near <= 0.25 * far;
    let bottom = if near_zero(low, high) { 0.0 } else { low - pad };
    let top = if near_zero(-high, -low) { 0.0 } else { high + pad };
    clamp(bottom, top)
}

fn fitted_log(low: f64, high: f64, room: Room) -> (f64, f64) {
    let (a, b) = (low.log10(), high.log10());
    let (bottom, top) = if b - a < 1e-6 {
        (a - 0.5, b + 0.5)
    } else {
        let pad = room.share * (b - a);
        // An end just short of a decade moves out to it, so that the decade is labelled.
        let neat = |end: f64, decade: f64| {
            if room.neat && (decade - end).abs() < pad + 0.15 { decade } else { end }
        };
        ((a - pad).min(neat(a, a.floor())), (b + pad).max(neat(b, b.ceil())))
    };
    (10f64.powf(bottom.max(-306.5)), 10f64.powf(top.min(306.5)))
}

fn clamp(low: f64, high: f64) -> (f64, f64) {
    (low.max(-HUGE), high.min(HUGE))
}

impl Span {
    /// Where a value lies: 0 at the low end, 1 at the high end, and beyond for values outside.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let value = drawable(value, self.scale)?;
        let part = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.log10() - self.low.log10()) / self.decades(),
        };
        Some(part.clamp(-FAR, FAR))
    }

    /// Where a value lies, if the axis shows it.
    pub(super) fn place_inside(&self, value: f64) -> Option<f64> {
        // A tick at the very end may be off by rounding, far less than can be seen.
        let inside = -1e-6..=1.0 + 1e-6;
        self.place(value).filter(|part| inside.contains(part))
    }

    /// How many decades a logarithmic axis covers.
    pub(super) fn decades(&self) -> f64 {
        self.high.log10() - self.low.log10()
    }
}

#[cfg(test)]
mod tests {
    use super::super::figure::Series;
    use super::super::style::Look;
    use super::*;

    fn panel(x: Axis, y: Axis, points: &[(f64, f64)]) -> Panel {
        let points = points.iter().map(|(x, y)| Point::new(*x, *y)).collect();
        Panel::new(x, y).series(Series::new("", points, Look::curve(0)))
    }

    #[test]
    fn axes_hold_all_that_is_drawn() {
        let values = [0.0, 1.0, -1.0, 1e300, -1e300, 1e-300, 3.0, 3.000_000_000_1, 1e306, f64::MAX, f64::NAN];
        for scale in [Scale::Linear, Scale::Log] {
            for a in values {
                for b in values {
                    let axis = || Axis { scale, ..Axis::default() };
                    let panel = panel(axis(), axis(), &[(a, b), (b, a)]);
                    let (x, y) = spans(&panel);
                    assert!(x.low < x.high && y.low < y.high, "{a} {b} {x:?} {y:?}");
                    for (px, py, _) in shown(&panel) {
                        assert!(x.place_inside(px).is_some(), "{px} {x:?}");
                        assert!(y.place_inside(py).is_some(), "{py} {y:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_range_is_taken_if_it_can_be_shown() {
        let with = |axis: Axis| spans(&panel(axis, Axis::linear(""), &[(1.0, 1.0), (2.0, 1.0)])).0;
        assert_eq!(
            with(Axis::linear("").range(-1.0, 5.0)),
            Span { low: -1.0, high: 5.0, scale: Scale::Linear, whole: false }
        );
        assert_eq!(with(Axis::linear("").range(5.0, -1.0)).low, -1.0);
        assert_eq!(with(Axis::log("").range(0.0, 5.0)), with(Axis::log("")));
        assert_eq!(with(Axis::linear("").range(f64::NAN, 5.0)), with(Axis::linear("")));
        assert_eq!(with(Axis::linear("").range(3.0, 3.0)), with(Axis::linear("")));
    }

    #[test]
    fn emptiness_names_its_reason() {
        let y = |values: &[(f64, f64)]| emptiness(&panel(Axis::linear(""), Axis::log(""), values));
        assert_eq!(y(&[]), Some(Emptiness::NoData));
        assert_eq!(y(&[(f64::NAN, 1.0)]), Some(Emptiness::NoData));
        assert_eq!(y(&[(1.0, 0.0)]), Some(Emptiness::NoPositiveData));
        assert_eq!(y(&[(1.0, 0.0), (1.0, 1.0)]), None);
    }
}
