//! What a figure is made of: plain data, no drawing.

use super::style::Look;

/// One figure: a title and one to three panels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// The title, drawn large at the top left. May be empty.
    pub title: String,
    /// A small grey line under the title, for instance the parameters; wrapped over at most three lines.
    pub subtitle: String,
    /// What the figure shows, in words, for readers who cannot see it; the `<desc>` of an SVG file.
    pub description: String,
    /// How the panels stand.
    pub arrangement: Arrangement,
    /// One to three panels.
    pub panels: Vec<Panel>,
}

/// How the panels of a figure stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrangement {
    /// Next to each other, left to right, legends below.
    #[default]
    SideBySide,
    /// Below each other, legends to the right where they fit.
    Stacked,
}

/// One pair of axes and what is drawn on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// A heading for the panel. May be empty.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The data, in the order of the legend. Thin series are drawn beneath normal ones, and those beneath
    /// bold ones.
    pub series: Vec<Series>,
    /// Reference lines.
    pub guides: Vec<Guide>,
}

/// One axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What the axis measures, with its unit.
    pub label: String,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// The ends of the axis; `None` fits them to the data. A range the scale cannot show (not finite, of no
    /// length, not positive on a logarithmic axis) is fitted too.
    pub range: Option<(f64, f64)>,
    /// Whether it counts things: labelled at whole numbers only.
    pub whole: bool,
}

/// How values are laid along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences take equal lengths.
    #[default]
    Linear,
    /// Equal ratios take equal lengths; only positive values have a place.
    Log,
}

/// One set of points and its look.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The text in the legend; empty for no entry. Series of equal label and look share one entry.
    pub label: String,
    /// The points, in the order in which a line visits them.
    pub points: Vec<Point>,
    /// How the series looks.
    pub look: Look,
}

/// One point, perhaps with an interval around its y value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The horizontal value.
    pub x: f64,
    /// The vertical value.
    pub y: f64,
    /// Half the width of the interval around `y`; drawn as a bar with caps.
    pub half_width: Option<f64>,
}

/// A grey reference line with its label written on it.
#[derive(Clone, Debug, PartialEq)]
pub enum Guide {
    /// A straight line on the panel's scales. With two logarithmic axes it is the power law
    /// `y = c x^slope`; with one, natural logarithms are meant (`y = c exp(slope x)` on a
    /// logarithmic y axis, `y = c + slope ln x` on a logarithmic x axis).
    Slope {
        /// The slope.
        slope: f64,
        /// A point (x, y) the line goes through.
        through: (f64, f64),
        /// The x values between which the line is drawn; `None` for the whole panel.
        span: Option<(f64, f64)>,
        /// The label, for instance `slope -1/2`.
        label: String,
    },
    /// A vertical line, for instance at an event. Its label stands above the plot; a label that finds no
    /// room beside those of its neighbours in six rows is left out.
    Vertical {
        /// Where the line crosses the x axis.
        x: f64,
        /// The label.
        label: String,
    },
    /// A horizontal line.
    Horizontal {
        /// Where the line crosses the y axis.
        y: f64,
        /// The label.
        label: String,
    },
}

impl Figure {
    /// A figure with this title and no panel yet.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Sets the small grey line under the title.
    #[must_use]
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// Sets the description in words.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Puts the panels below each other.
    #[must_use]
    pub fn stacked(mut self) -> Self {
        self.arrangement = Arrangement::Stacked;
        self
    }

    /// Adds a panel.
    #[must_use]
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }
}

impl Panel {
    /// A panel with these axes and no data yet.
    pub fn new(x: Axis, y: Axis) -> Self {
        Self { x, y, ..Self::default() }
    }

    /// Sets the heading.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Adds a series.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a reference line.
    #[must_use]
    pub fn guide(mut self, guide: Guide) -> Self {
        self.guides.push(guide);
        self
    }
}

impl Axis {
    /// A linear axis fitted to the data.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear, ..Self::default() }
    }

    /// A logarithmic axis fitted to the data.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Log, ..Self::default() }
    }

    /// Labels whole numbers only.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// Sets the ends of the axis.
    #[must_use]
    pub fn range(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }
}

impl Series {
    /// A series; an empty label keeps it out of the legend.
    pub fn new(label: impl Into<String>, points: Vec<Point>, look: Look) -> Self {
        Self { label: label.into(), points, look }
    }
}

impl Point {
    /// A point without an interval.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, half_width: None }
    }

    /// A point with the interval `y - half_width` to `y + half_width`.
    pub fn measured(x: f64, y: f64, half_width: f64) -> Self {
        Self { x, y, half_width: Some(half_width) }
    }
}
