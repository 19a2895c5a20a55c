//! What every format can draw, in layout units with the origin at the top left.

use super::markup::Rich;
use super::style::Rgb;

/// A place on the page.
pub(super) type At = (f64, f64);

/// An upright rectangle; `top < bottom`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rect {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Rect {
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(super) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    pub(super) fn holds(&self, (x, y): At) -> bool {
        self.left <= x && x <= self.right && self.top <= y && y <= self.bottom
    }

    pub(super) fn grown(&self, by: f64) -> Self {
        Self { left: self.left - by, top: self.top - by, right: self.right + by, bottom: self.bottom + by }
    }

    pub(super) fn meets(&self, other: &Rect) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// Which point of a text its place names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text is set. `upward` turns it to read from bottom to top.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TextLook {
    pub(super) size: f64,
    pub(super) bold: bool,
    pub(super) colour: Rgb,
    pub(super) anchor: Anchor,
    pub(super) upward: bool,
}

impl TextLook {
    pub(super) fn new(size: f64, colour: Rgb, anchor: Anchor) -> Self {
        Self { size, bold: false, colour, anchor, upward: false }
    }
}

/// A page of one format. Nothing drawn can fail for a reason the caller could mend, so a page
/// keeps its first error until it is finished.
pub(super) trait Surface {
    /// A line through the points with round joins.
    fn polyline(&mut self, points: &[At], width: f64, colour: Rgb);
    /// A filled convex polygon.
    fn polygon(&mut self, corners: &[At], colour: Rgb);
    /// A filled disc.
    fn disc(&mut self, centre: At, radius: f64, colour: Rgb);
    /// A text whose anchor stands at this point of its baseline.
    fn text(&mut self, text: &Rich, baseline: At, look: TextLook);
}
