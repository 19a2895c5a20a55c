//! How things look: the palette, lines, markers, and the sizes shared by all figures.

/// A colour as red, green, blue.
pub(super) type Rgb = (u8, u8, u8);

pub(super) const BLACK: Rgb = (0x1A, 0x1A, 0x1A);
pub(super) const WHITE: Rgb = (0xFF, 0xFF, 0xFF);
pub(super) const GREY: Rgb = (0x6B, 0x6B, 0x6B);
pub(super) const GRID: Rgb = (0xE4, 0xE4, 0xE4);

/// Okabe and Ito's colours that stand out on white, told apart by readers with any colour vision;
/// the weakest on white comes last.
const PALETTE: [Rgb; 5] =
    [(0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00), (0x00, 0x9E, 0x73), (0xCC, 0x79, 0xA7), (0xE6, 0x9F, 0x00)];

/// Text sizes in layout units (CSS pixels of the SVG file).
pub(super) const TITLE: f64 = 16.0;
pub(super) const SUBTITLE: f64 = 12.0;
pub(super) const PANEL_TITLE: f64 = 13.5;
pub(super) const LABEL: f64 = 13.0;
pub(super) const TICK: f64 = 12.0;
pub(super) const NOTE: f64 = 11.0;

/// The colour of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Blue, vermilion, green, purple, orange, and round again.
    Palette(usize),
    /// The same colours mixed with white, for noisy paths that lie beneath.
    Pale(usize),
    /// Black.
    Black,
    /// Grey.
    Grey,
}

/// How the points of a series are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// A solid line.
    Solid,
    /// Dashes. A path so tangled that dashes would not show is drawn solid.
    Dashed,
    /// Dots; the same holds.
    Dotted,
    /// Not at all: markers only.
    None,
}

/// How thick a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// For noisy paths and reference curves.
    Thin,
    /// For most lines.
    Normal,
    /// For the curve the figure is about.
    Bold,
}

/// The shape of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A circle.
    Circle,
    /// A square.
    Square,
    /// A triangle.
    Triangle,
    /// A diamond.
    Diamond,
}

/// Whether a marker is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// White inside.
    Open,
    /// Filled with the colour of the series.
    Filled,
}

/// A marker at each point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Its shape.
    pub shape: Shape,
    /// Open or filled.
    pub fill: Fill,
}

/// The look of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The colour.
    pub colour: Colour,
    /// How points are joined.
    pub line: Line,
    /// How thick the line is.
    pub width: Width,
    /// The marker at each point. On a series that also has a line, markers that would overlap are thinned out,
    /// and those without intervals further, so that the line shows.
    pub marker: Option<Marker>,
    /// Whether the value holds until the next point, instead of the points being joined directly.
    pub steps: bool,
}

impl Look {
    /// The `index`-th bold curve; colour and dashes change together, so that curves differ in grey too.
    pub fn curve(index: usize) -> Self {
        let line = [Line::Solid, Line::Dashed, Line::Dotted][index % 3];
        Self { colour: Colour::Palette(index), line, width: Width::Bold, marker: None, steps: false }
    }

    /// A thin pale path that belongs beneath the `index`-th curve.
    pub fn path(index: usize) -> Self {
        let colour = Colour::Pale(index);
        Self { colour, line: Line::Solid, width: Width::Thin, marker: None, steps: false }
    }

    /// The `index`-th set of separate points; colour and marker change together.
    pub fn measured(index: usize) -> Self {
        let shape = [Shape::Circle, Shape::Square, Shape::Triangle, Shape::Diamond][index % 4];
        Self {
            colour: Colour::Palette(index),
            line: Line::None,
            width: Width::Normal,
            marker: Some(Marker { shape, fill: Fill::Filled }),
            steps: false,
        }
    }

    /// The same with another line.
    #[must_use]
    pub fn line(mut self, line: Line) -> Self {
        self.line = line;
        self
    }

    /// The same with another width.
    #[must_use]
    pub fn width(mut self, width: Width) -> Self {
        self.width = width;
        self
    }

    /// The same with this marker.
    #[must_use]
    pub fn marker(mut self, shape: Shape, fill: Fill) -> Self {
        self.marker = Some(Marker { shape, fill });
        self
    }

    /// The same in another colour.
    #[must_use]
    pub fn colour(mut self, colour: Colour) -> Self {
        self.colour = colour;
        self
    }

    /// The same drawn as steps.
    #[must_use]
    pub fn steps(mut self) -> Self {
        self.steps = true;
        self
    }
}

impl Colour {
    pub(super) fn rgb(self) -> Rgb {
        match self {
            Colour::Palette(index) => PALETTE[index % PALETTE.len()],
            Colour::Pale(index) => pale(PALETTE[index % PALETTE.len()]),
            Colour::Black => BLACK,
            Colour::Grey => GREY,
        }
    }
}

impl Width {
    pub(super) fn units(self) -> f64 {
        match self {
            Width::Thin => 0.8,
            Width::Normal => 1.5,
            Width::Bold => 2.6,
        }
    }
}

impl Line {
    /// Lengths of a mark and of the gap after it, for a line of this width.
    pub(super) fn pattern(self, width: f64) -> Option<(f64, f64)> {
        match self {
            Line::Solid | Line::None => None,
            Line::Dashed => Some((3.0 + 2.2 * width, 2.0 + 1.2 * width)),
            Line::Dotted => Some((0.6 + 0.7 * width, 1.2 + 0.9 * width)),
        }
    }
}

/// Opaque, not translucent: where pale paths cross, nothing darker may appear.
fn pale((r, g, b): Rgb) -> Rgb {
    let mix = |channel: u8| 255 - (255 - channel) / 20 * 9;
    (mix(r), mix(g), mix(b))
}
