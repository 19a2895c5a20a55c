//! Figures of journal quality, as SVG or PNG, from plain data.
//!
//! A [`Figure`] is one to three [`Panel`]s; a panel is two axes, some [`Series`] and some
//! [`Guide`]s. Nothing here knows where the numbers come from. [`write()`] draws the figure; the
//! suffix of the path decides the format.
//!
//! ```
//! use fluidlimit::output::plot::{Axis, Figure, Look, Panel, Point, Series, write};
//!
//! let decay: Vec<Point> = (0..100).map(|i| f64::from(i) / 10.0).map(|t| Point::new(t, (-t).exp())).collect();
//! let figure = Figure::new("Decay to the fixed point").panel(
//!     Panel::new(Axis::linear("time t"), Axis::log("distance |x(t) - x^{*}|"))
//!         .series(Series::new("fluid limit", decay, Look::curve(0))),
//! );
//! let folder = tempfile::tempdir()?;
//! write(&figure, &folder.path().join("decay.svg"))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Markup in labels
//!
//! Every text may hold `_{...}` and `^{...}`: `x_{1,fast}` and `n^{-1/2}` are drawn with a real
//! subscript and superscript. A hyphen is drawn as a minus sign where it opens a number or a
//! script or stands between spaces. There is no escape: braces that do not follow `_` or `^` are
//! drawn as they are.
//!
//! # What is drawn of awkward data
//!
//! Points that are not finite, and points that are not positive on a logarithmic axis, are left out and break
//! the line; the latter are counted in a note on the panel. An interval that reaches zero on
//! a logarithmic axis, or is infinite, runs to the edge of the plot and has no cap there. Texts too long
//! for their place end in an ellipsis.

mod draw;
mod error;
mod figure;
mod font;
mod guides;
mod layout;
mod legend;
mod markup;
mod path;
mod png;
mod scale;
mod series;
mod style;
mod surface;
mod svg;
mod ticks;
mod write;

pub use error::PlotError;
pub use figure::{Arrangement, Axis, Figure, Guide, Panel, Point, Scale, Series};
pub use style::{Colour, Fill, Line, Look, Marker, Shape, Width};
pub use write::{check_path, write};
