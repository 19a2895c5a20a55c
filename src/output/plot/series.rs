//! Drawing data: lines, intervals and markers.

use std::collections::HashSet;

use super::figure::{Panel, Point, Series};
use super::layout::Plot;
use super::path;
use super::style::{Colour, Fill, Line, Look, Marker, Rgb, Shape, WHITE};
use super::surface::{At, Rect, Surface};

/// The radius of a circle marker; the other shapes are drawn to look as large.
const MARKER: f64 = 3.7;
/// The width of outlines of open markers.
const OUTLINE: f64 = 1.4;
const BAR: f64 = 1.1;
const CAP: f64 = 3.4;
/// Narrower than what a reader can tell apart, wider than a thousandth of the plot.
const COLUMN: f64 = 0.4;

/// Draws all series of a panel: lines from thin to bold, then intervals and markers.
pub(super) fn draw(page: &mut dyn Surface, panel: &Panel, plot: &Plot) {
    let mut ordered: Vec<&Series> = panel.series.iter().collect();
    ordered.sort_by_key(|series| series.look.width);
    for series in &ordered {
        if series.look.line != Line::None {
            for part in lines(series, plot) {
                stroke(page, &part, &series.look);
            }
            draw_lone_points(page, series, plot);
        }
    }
    for series in ordered {
        let places = marked_points(series, plot);
        for (point, at) in &places {
            if let Some(half) = point.half_width.filter(|half| *half > 0.0) {
                draw_interval(page, plot, point, half, at.0, series.look.colour);
            }
        }
        if let Some(marker) = series.look.marker {
            for (_, at) in places {
                draw_marker(page, marker, at, series.look.colour);
            }
        }
    }
}

/// The lines of a series on the page: broken at points without a place, clipped and thinned.
pub(super) fn lines(series: &Series, plot: &Plot) -> Vec<Vec<At>> {
    let mut out = vec![];
    for run in runs(series, plot) {
        let run = if series.look.steps { path::steps(&run) } else { run };
        for part in path::clip(&run, &plot.area) {
            out.push(path::thin(&part, COLUMN));
        }
    }
    out
}

/// Points next to each other that all have a place.
fn runs(series: &Series, plot: &Plot) -> Vec<Vec<At>> {
    let mut runs = vec![vec![]];
    for point in &series.points {
        match (plot.at(point.x, point.y), runs.last_mut()) {
            (Some(at), Some(run)) => run.push(at),
            _ => runs.push(vec![]),
        }
    }
    runs.retain(|run: &Vec<At>| !run.is_empty());
    runs
}

/// A point with no neighbour makes no line; it is drawn as a dot, so that it is not lost.
fn draw_lone_points(page: &mut dyn Surface, series: &Series, plot: &Plot) {
    let look = &series.look;
    if look.marker.is_some() {
        return;
    }
    let near = plot.area.grown(0.1);
    for run in runs(series, plot) {
        let still = run.iter().all(|at| *at == run[0]);
        if still && near.holds(run[0]) {
            page.disc(run[0], look.width.units().max(1.5), look.colour.rgb());
        }
    }
}

fn stroke(page: &mut dyn Surface, line: &[At], look: &Look) {
    let width = look.width.units();
    match look.line.pattern(width) {
        None => page.polyline(line, width, look.colour.rgb()),
        Some(pattern) => {
            for dash in path::dashes(line, pattern) {
                page.polyline(&dash, width, look.colour.rgb());
            }
        }
    }
}

/// The points whose interval and marker are drawn. Points that cannot be told apart are drawn once; along a
/// line, markers keep a distance.
fn marked_points<'a>(series: &'a Series, plot: &Plot) -> Vec<(&'a Point, At)> {
    let near = plot.area.grown(0.1);
    // Intervals are measurements, to be seen unless they overlap; other markers only have to name their line.
    let measured = series.points.iter().any(|point| point.half_width.is_some());
    let distance = if measured { 2.0 * MARKER } else { 5.0 * MARKER };
    let mut seen = HashSet::new();
    let mut last: Option<At> = None;
    let mut kept = vec![];
    for point in &series.points {
        let Some(at) = plot.at(point.x, point.y).filter(|at| near.holds(*at)) else {
            continue;
        };
        let crowded = series.look.line != Line::None
            && last.is_some_and(|before| (at.0 - before.0).hypot(at.1 - before.1) < distance);
        let cell = ((4.0 * at.0).round() as i64, (4.0 * at.1).round() as i64);
        if !crowded && seen.insert(cell) {
            last = Some(at);
            kept.push((point, at));
        }
    }
    kept
}

/// The ends of an interval on the page, and whether the axis shows them.
pub(super) fn interval(plot: &Plot, point: &Point, half: f64) -> [(f64, bool); 2] {
    let area = &plot.area;
    [(point.y + half, area.top), (point.y - half, area.bottom)].map(|(value, edge)| {
        match plot.y.place(value).map(|part| plot.down(part)) {
            Some(y) if (area.top - 0.1..=area.bottom + 0.1).contains(&y) => (y, true),
            Some(y) if y < area.top => (area.top, false),
            Some(_) => (area.bottom, false),
            // Not positive on a logarithmic axis, or infinite: the bar runs out of the plot.
            None => (edge, false),
        }
    })
}

fn draw_interval(page: &mut dyn Surface, plot: &Plot, point: &Point, half: f64, x: f64, colour: Colour) {
    let ends = interval(plot, point, half);
    page.polyline(&[(x, ends[0].0), (x, ends[1].0)], BAR, colour.rgb());
    for (y, inside) in ends {
        if inside {
            page.polyline(&[(x - CAP, y), (x + CAP, y)], BAR, colour.rgb());
        }
    }
}

fn draw_marker(page: &mut dyn Surface, marker: Marker, at: At, colour: Colour) {
    fill_shape(page, marker.shape, at, 0.0, colour.rgb());
    if marker.fill == Fill::Open {
        fill_shape(page, marker.shape, at, OUTLINE, WHITE);
    }
}

/// `inset` is how far the edges move inwards.
fn fill_shape(page: &mut dyn Surface, shape: Shape, at: At, inset: f64, colour: Rgb) {
    let (x, y) = at;
    match shape {
        Shape::Circle => page.disc(at, MARKER - inset, colour),
        Shape::Square => {
            let r = 0.89 * MARKER - inset;
            page.polygon(&[(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)], colour);
        }
        Shape::Diamond => {
            let r = 1.25 * MARKER - std::f64::consts::SQRT_2 * inset;
            page.polygon(&[(x, y - r), (x + r, y), (x, y + r), (x - r, y)], colour);
        }
        Shape::Triangle => {
            // The distance from the centre to a corner is twice that to an edge.
            let r = 1.35 * MARKER - 2.0 * inset;
            let half = r * 0.75f64.sqrt();
            page.polygon(&[(x, y - r), (x + half, y + r / 2.0), (x - half, y + r / 2.0)], colour);
        }
    }
}

/// Draws what a series looks like into a legend, `width` units from `left` on.
pub(super) fn sample(page: &mut dyn Surface, look: &Look, interval: bool, (left, middle): At, width: f64) {
    if look.line != Line::None {
        stroke(page, &[(left, middle), (left + width, middle)], look);
    }
    let centre = (left + width / 2.0, middle);
    if interval {
        let (high, low) = (middle - 7.0, middle + 7.0);
        page.polyline(&[(centre.0, high), (centre.0, low)], BAR, look.colour.rgb());
        for y in [high, low] {
            page.polyline(&[(centre.0 - CAP, y), (centre.0 + CAP, y)], BAR, look.colour.rgb());
        }
    }
    if let Some(marker) = look.marker {
        draw_marker(page, marker, centre, look.colour);
    }
}

/// Places covered by data, close enough together that no text fits between two of one line.
pub(super) fn covered(panel: &Panel, plot: &Plot) -> Vec<At> {
    const STRIDE: f64 = 4.0;
    let mut out = vec![];
    for series in &panel.series {
        if series.look.line != Line::None {
            for line in lines(series, plot) {
                out.extend(line.windows(2).flat_map(|pair| along(pair[0], pair[1], STRIDE)));
            }
        }
        for (point, at) in marked_points(series, plot) {
            out.push(at);
            if let Some(half) = point.half_width.filter(|half| *half > 0.0) {
                let [(high, _), (low, _)] = interval(plot, point, half);
                out.extend(along((at.0, high), (at.0, low), STRIDE));
            }
        }
    }
    // One point to a cell tells as much as a thousand.
    let cell = |at: &At| ((at.0 / STRIDE) as i64, (at.1 / STRIDE) as i64);
    let mut seen = HashSet::new();
    out.retain(|at| seen.insert(cell(at)));
    out
}

/// Points from `a` to `b`, at most `stride` apart.
pub(super) fn along(a: At, b: At, stride: f64) -> impl Iterator<Item = At> {
    let count = ((b.0 - a.0).hypot(b.1 - a.1) / stride).ceil().max(1.0) as usize;
    (0..=count).map(move |i| {
        let part = i as f64 / count as f64;
        (a.0 + part * (b.0 - a.0), a.1 + part * (b.1 - a.1))
    })
}

/// How many of the places lie in a rectangle.
pub(super) fn count_in(places: &[At], area: &Rect) -> usize {
    places.iter().filter(|at| area.holds(**at)).count()
}
