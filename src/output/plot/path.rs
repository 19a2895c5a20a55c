//! Lines on the page: clipping, thinning, steps and dashes.

use super::surface::{At, Rect};

/// A tangle longer than this many dashes is drawn solid: dashes would not show, and would swell the file.
const MOST_DASHES: f64 = 1500.0;

/// The parts of a line that lie in the rectangle.
pub(super) fn clip(line: &[At], area: &Rect) -> Vec<Vec<At>> {
    let mut parts: Vec<Vec<At>> = vec![];
    let mut part: Vec<At> = vec![];
    for pair in line.windows(2) {
        let Some((a, b)) = clip_segment(pair[0], pair[1], area) else {
            parts.push(std::mem::take(&mut part));
            continue;
        };
        if part.last() != Some(&a) {
            parts.push(std::mem::replace(&mut part, vec![a]));
        }
        part.push(b);
    }
    parts.push(part);
    parts.retain(|part| part.len() > 1);
    parts
}

/// Liang and Barsky's method: the part of the segment inside, as parameters along it.
fn clip_segment(a: At, b: At, area: &Rect) -> Option<(At, At)> {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let (mut enter, mut leave) = (0.0f64, 1.0f64);
    let edges =
        [(-dx, a.0 - area.left), (dx, area.right - a.0), (-dy, a.1 - area.top), (dy, area.bottom - a.1)];
    for (towards, room) in edges {
        if towards < 0.0 {
            enter = enter.max(room / towards);
        } else if towards > 0.0 {
            leave = leave.min(room / towards);
        } else if room < 0.0 {
            return None;
        }
    }
    // The ends themselves, where they are inside: parts that continue must meet exactly.
    let start = if enter > 0.0 { (a.0 + enter * dx, a.1 + enter * dy) } else { a };
    let end = if leave < 1.0 { (a.0 + leave * dx, a.1 + leave * dy) } else { b };
    (enter <= leave).then_some((start, end))
}

/// Keeps, of the points that fall in one narrow column, the first, the lowest, the highest and the last: what is
/// drawn does not change, and dense paths stay small.
pub(super) fn thin(line: &[At], column: f64) -> Vec<At> {
    let of = |at: &At| (at.0 / column).floor();
    let mut kept = Vec::with_capacity(line.len().min(4096));
    for run in line.chunk_by(|a, b| of(a).total_cmp(&of(b)).is_eq()) {
        if run.len() <= 4 {
            kept.extend_from_slice(run);
            continue;
        }
        let by_height = |a: &usize, b: &usize| run[*a].1.total_cmp(&run[*b].1);
        let last = run.len() - 1;
        let low = (0..=last).min_by(by_height).unwrap_or(0);
        let high = (0..=last).max_by(by_height).unwrap_or(last);
        let mut picks = [0, low.min(high), low.max(high), last].to_vec();
        picks.dedup();
        kept.extend(picks.into_iter().map(|i| run[i]));
    }
    kept
}

/// The line whose value holds until the next point.
pub(super) fn steps(line: &[At]) -> Vec<At> {
    let mut out = Vec::with_capacity(2 * line.len());
    for at in line {
        if let Some((_, held)) = out.last().copied() {
            out.push((at.0, held));
        }
        out.push(*at);
    }
    out
}

/// Cuts a line into dashes: a mark, then a gap.
pub(super) fn dashes(line: &[At], (mark, gap): (f64, f64)) -> Vec<Vec<At>> {
    let length: f64 = line.windows(2).map(|pair| distance(pair[0], pair[1])).sum();
    if length > MOST_DASHES * (mark + gap) {
        return vec![line.to_vec()];
    }
    let mut out = vec![];
    let mut dash: Vec<At> = line.first().copied().into_iter().collect();
    let (mut drawing, mut left) = (true, mark);
    for pair in line.windows(2) {
        let (mut from, to) = (pair[0], pair[1]);
        loop {
            let ahead = distance(from, to);
            if ahead < left || ahead <= 0.0 {
                left -= ahead;
                break;
            }
            let part = left / ahead;
            from = (from.0 + part * (to.0 - from.0), from.1 + part * (to.1 - from.1));
            if drawing {
                dash.push(from);
                out.push(std::mem::take(&mut dash));
                left = gap;
            } else {
                dash = vec![from];
                left = mark;
            }
            drawing = !drawing;
        }
        if drawing {
            dash.push(to);
        }
    }
    if dash.len() > 1 {
        out.push(dash);
    }
    out
}

fn distance(a: At, b: At) -> f64 {
    (b.0 - a.0).hypot(b.1 - a.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Rect = Rect { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };

    #[test]
    fn clipping_cuts_at_the_edges_and_keeps_parts_whole() {
        assert_eq!(
            clip(&[(1.0, 1.0), (5.0, 5.0), (9.0, 1.0)], &AREA),
            [[(1.0, 1.0), (5.0, 5.0), (9.0, 1.0)]]
        );
        assert_eq!(
            clip(&[(-5.0, 5.0), (5.0, 5.0), (5.0, 50.0), (8.0, 50.0), (8.0, 5.0)], &AREA),
            [vec![(0.0, 5.0), (5.0, 5.0), (5.0, 10.0)], vec![(8.0, 10.0), (8.0, 5.0)]]
        );
        assert!(clip(&[(-5.0, 5.0), (5.0, -50.0)], &AREA).is_empty());
        assert!(clip(&[(5.0, 5.0)], &AREA).is_empty());
    }

    #[test]
    fn thinning_keeps_the_outline() {
        let line: Vec<At> =
            (0..10_000).map(|i| (f64::from(i) / 1000.0, f64::from(i * 7919 % 1000))).collect();
        let thinned = thin(&line, 0.5);
        assert!(thinned.len() <= 4 * 21);
        assert_eq!((thinned.first(), thinned.last()), (line.first(), line.last()));
        assert!(thinned.iter().any(|at| at.1 >= 998.0) && thinned.iter().any(|at| at.1 <= 1.0));
    }

    #[test]
    fn dashes_cover_their_share() {
        let cut = dashes(&[(0.0, 0.0), (3.0, 0.0), (3.0, 7.0)], (2.0, 1.0));
        let drawn: f64 = cut.iter().flat_map(|d| d.windows(2)).map(|p| distance(p[0], p[1])).sum();
        assert_eq!(cut.len(), 4);
        assert!((drawn - 7.0).abs() < 1e-9, "{drawn} {cut:?}");
        assert!(dashes(&[], (2.0, 1.0)).is_empty());
    }
}
