//! Reference lines and their labels.

use super::figure::{Guide, Panel, Scale};
use super::font::Fonts;
use super::layout::Plot;
use super::markup::Rich;
use super::path;
use super::series::{along, count_in, covered};
use super::style::{GREY, Line, NOTE};
use super::surface::{Anchor, At, Rect, Surface, TextLook};

const WIDTH: f64 = 1.0;
const MOST_ROWS: usize = 6;
pub(super) const ROW: f64 = 15.0;

/// The label of a vertical line: a flag on it above the plot. Row 0 is the lowest.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EventLabel {
    pub(super) line: f64,
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) row: usize,
    pub(super) label: Rich,
}

/// From a line to its flag's text.
const FLAG_GAP: f64 = 4.0;

/// Spreads the labels of vertical lines over rows so that none meets another or another's line.
pub(super) fn event_labels(
    panel: &Panel,
    fonts: &Fonts,
    place: impl Fn(f64) -> Option<f64>,
    ends: (f64, f64),
) -> Vec<EventLabel> {
    let mut flags: Vec<EventLabel> = vec![];
    for guide in &panel.guides {
        let Guide::Vertical { x, label } = guide else { continue };
        let Some(line) = place(*x) else { continue };
        let label = fonts.fit(Rich::parse(label), NOTE, false, (ends.1 - ends.0) / 2.0);
        if !label.is_blank() {
            let width = fonts.width(&label, NOTE, false);
            // At the right end there is no room to the right.
            let fits = line + width <= ends.1;
            let start = if fits { line + FLAG_GAP } else { line - FLAG_GAP - width };
            flags.push(EventLabel { line, start, end: start + width, row: 0, label });
        }
    }
    // Each flag flies away from those already set, so that its pole passes them by on the way to a higher row.
    flags.sort_by(|a, b| a.line.total_cmp(&b.line));
    let (leftward, rightward): (Vec<_>, Vec<_>) = flags.into_iter().partition(|flag| flag.start < flag.line);
    let mut set: Vec<EventLabel> = vec![];
    for mut flag in leftward.into_iter().chain(rightward.into_iter().rev()) {
        for row in 0..MOST_ROWS {
            flag.row = row;
            if set.iter().all(|other| !collide(&flag, other) && !collide(other, &flag)) {
                set.push(flag);
                break;
            }
        }
    }
    set
}

/// Whether two flags meet, or the pole of `a` runs through flag `b`.
fn collide(a: &EventLabel, b: &EventLabel) -> bool {
    let meet = a.row == b.row && a.start < b.end + 8.0 && b.start < a.end + 8.0;
    let crossed = a.row >= b.row && b.start - 2.0 < a.line && a.line < b.end + 2.0;
    meet || crossed
}

/// Draws the lines, beneath the data.
pub(super) fn draw_lines(page: &mut dyn Surface, panel: &Panel, plot: &Plot) {
    for guide in &panel.guides {
        for part in line_of(guide, plot) {
            for dash in path::dashes(&part, Line::Dashed.pattern(WIDTH).unwrap_or((4.0, 3.0))) {
                page.polyline(&dash, WIDTH, GREY);
            }
        }
    }
}

/// Draws the labels, each where it covers the least.
pub(super) fn draw_labels(page: &mut dyn Surface, panel: &Panel, plot: &Plot, fonts: &Fonts) {
    for event in &plot.events {
        let baseline = plot.area.top - 5.0 - event.row as f64 * ROW;
        page.text(&event.label, (event.start, baseline), TextLook::new(NOTE, GREY, Anchor::Start));
    }
    let look = TextLook::new(NOTE, GREY, Anchor::Middle);
    let lines: Vec<Vec<At>> = panel.guides.iter().map(|guide| line_of(guide, plot).concat()).collect();
    let mut data: Option<Vec<At>> = None;
    let mut taken: Vec<Rect> = vec![];
    for (guide, line) in panel.guides.iter().zip(&lines) {
        let (Guide::Slope { label, .. } | Guide::Horizontal { label, .. }) = guide else {
            continue;
        };
        let label = fonts.fit(Rich::parse(label), NOTE, false, plot.area.width() / 2.0);
        if label.is_blank() || line.len() < 2 {
            continue;
        }
        let data = data.get_or_insert_with(|| covered(panel, plot));
        let size = (fonts.width(&label, NOTE, false), NOTE);
        let Some(place) = best_place(line, size, plot, data, &lines, &taken) else {
            continue;
        };
        page.text(&label, ((place.left + place.right) / 2.0, place.bottom - 0.14 * NOTE), look);
        taken.push(place);
    }
}

/// A guide on the page, clipped to the plot.
fn line_of(guide: &Guide, plot: &Plot) -> Vec<Vec<At>> {
    let area = &plot.area;
    let line = match guide {
        Guide::Vertical { x, .. } => plot.x.place_inside(*x).map(|part| {
            let x = plot.right(part);
            // The line is the pole of its flag.
            let flag = plot.events.iter().find(|event| event.line == x);
            let top = flag.map_or(area.top, |event| area.top - event.row as f64 * ROW - ROW);
            vec![(x, top), (x, area.bottom)]
        }),
        Guide::Horizontal { y, .. } => plot.y.place_inside(*y).map(|part| {
            let y = plot.down(part);
            vec![(area.left, y), (area.right, y)]
        }),
        Guide::Slope { slope, through, span, .. } => slope_line(*slope, *through, *span, plot),
    };
    match (guide, line) {
        (_, None) => vec![],
        (Guide::Vertical { .. }, Some(line)) => vec![line],
        (_, Some(line)) => path::clip(&line, area),
    }
}

fn slope_line(slope: f64, through: At, span: Option<(f64, f64)>, plot: &Plot) -> Option<Vec<At>> {
    let straight = |value: f64, scale: Scale| if scale == Scale::Log { value.ln() } else { value };
    // Units of the axis per length of the axis, in the logarithm where there is one.
    let length = |low: f64, high: f64, scale| straight(high, scale) - straight(low, scale);
    let x_length = length(plot.x.low, plot.x.high, plot.x.scale);
    let y_length = length(plot.y.low, plot.y.high, plot.y.scale);
    let steepness = slope * (x_length / y_length);
    let (x, y) = (plot.x.place(through.0)?, plot.y.place(through.1)?);
    let (from, to) = match span {
        Some((a, b)) => (plot.x.place(a)?, plot.x.place(b)?),
        None => (0.0, 1.0),
    };
    let at = |part: f64| (plot.right(part), plot.down((y + steepness * (part - x)).clamp(-1e4, 1e4)));
    let line = vec![at(from.clamp(0.0, 1.0)), at(to.clamp(0.0, 1.0))];
    line.iter().all(|at| at.1.is_finite()).then_some(line)
}

/// The place near the line where a label of this size hides nothing, or the least.
fn best_place(
    line: &[At],
    (width, height): (f64, f64),
    plot: &Plot,
    data: &[At],
    lines: &[Vec<At>],
    taken: &[Rect],
) -> Option<Rect> {
    let points: Vec<At> = line.windows(2).flat_map(|pair| along(pair[0], pair[1], 5.0)).collect();
    let others: Vec<At> =
        lines.iter().flat_map(|line| line.windows(2)).flat_map(|pair| along(pair[0], pair[1], 5.0)).collect();
    let room = plot.area.grown(-4.0);
    let grid: Vec<f64> = plot.y_ticks.major.iter().map(|tick| plot.down(tick.at)).collect();
    let mut best: Option<(f64, Rect)> = None;
    // From the right end on, where a reader looks for the label of a line.
    for (i, at) in points.iter().rev().enumerate() {
        for (side, gap) in [(-1.0, 4.0), (1.0, 4.0), (-1.0, 8.0), (1.0, 8.0), (-1.0, 14.0), (1.0, 14.0)] {
            for shift in [0.0, -0.5, 0.5] {
                let middle = at.0 + shift * (width + 2.0 * gap);
                let centre = at.1 + side * (if shift == 0.0 { height / 2.0 + gap } else { height / 2.0 });
                let place = Rect {
                    left: middle - width / 2.0,
                    right: middle + width / 2.0,
                    top: centre - height / 2.0,
                    bottom: centre + height / 2.0,
                };
                let inside = room.holds((place.left, place.top)) && room.holds((place.right, place.bottom));
                if !inside || taken.iter().any(|other| other.meets(&place)) {
                    continue;
                }
                // A marker reaches this far beyond its point.
                let near = place.grown(6.0);
                let hidden = count_in(data, &near) * 10 + count_in(&others, &place.grown(1.5)) * 6;
                let struck = grid.iter().any(|y| place.top < *y && *y < place.bottom);
                // Among places that hide nothing: off the grid, near the line, near its end.
                let cost = hidden as f64 + f64::from(struck) + 0.05 * gap + 0.02 * i as f64;
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, place));
                }
            }
        }
    }
    best.map(|(_, place)| place)
}

#[cfg(test)]
mod tests {
    use super::super::error::PlotError;
    use super::super::figure::Axis;
    use super::*;

    #[test]
    fn flags_meet_neither_flags_nor_poles() -> Result<(), PlotError> {
        let fonts = Fonts::load()?;
        let mut panel = Panel::new(Axis::linear(""), Axis::linear(""));
        for i in 0..9 {
            panel
                .guides
                .push(Guide::Vertical { x: 50.0 + 55.0 * f64::from(i), label: format!("event {i} of many") });
        }
        // Crowded on purpose, so that some are left out; without room on the right the last ones fly left.
        for (right, least) in [(600.0, 8), (500.0, 6)] {
            let flags = event_labels(&panel, &fonts, Some, (0.0, right));
            assert!(flags.len() >= least, "{flags:?}");
            for (i, a) in flags.iter().enumerate() {
                assert!(a.start >= 0.0 && a.end <= right + FLAG_GAP, "{a:?}");
                for b in &flags[..i] {
                    assert!(!collide(a, b) && !collide(b, a), "{a:?} {b:?}");
                }
            }
        }
        Ok(())
    }
}
