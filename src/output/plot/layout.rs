//! Where everything stands on the page, before anything is drawn.

use super::figure::{Arrangement, Figure, Panel};
use super::font::Fonts;
use super::guides::{self, EventLabel};
use super::legend::{self, Legend};
use super::markup::Rich;
use super::scale::{Span, emptiness, not_positive, spans};
use super::style::{LABEL, NOTE, PANEL_TITLE, SUBTITLE, TICK, TITLE};
use super::surface::{At, Rect};
use super::ticks::{Ticks, ticks};

/// Around everything.
pub(super) const MARGIN: f64 = 16.0;
const BETWEEN_PANELS: f64 = 30.0;
/// A tick and the gap to its label.
pub(super) const TICK_LENGTH: f64 = 4.5;
pub(super) const TICK_GAP: f64 = 4.0;
/// From the plot's right edge to the page's, so that half a tick label has room.
const RIGHT_EDGE: f64 = 12.0;
const LEGEND_GAP: f64 = 18.0;
/// No legend entry is wider, so that a plot beside it keeps its shape.
const WIDEST_ENTRY_BESIDE: f64 = 215.0;

/// One plot: its place, its axes and what stands around it.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    pub(super) area: Rect,
    pub(super) x: Span,
    pub(super) y: Span,
    pub(super) x_ticks: Ticks,
    pub(super) y_ticks: Ticks,
    pub(super) events: Vec<EventLabel>,
    pub(super) note: Option<Rich>,
    /// The baseline of the heading; level across panels side by side.
    pub(super) heading: f64,
    /// How far the left edge of the y label stands from the plot.
    pub(super) left: f64,
    pub(super) legend: Option<Placed>,
}

/// A legend with its place.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) legend: Legend,
    pub(super) at: At,
    pub(super) columns: usize,
}

/// The whole page.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) size: (f64, f64),
    pub(super) title: Rich,
    pub(super) subtitle: Vec<Rich>,
    pub(super) plots: Vec<Plot>,
    /// The legend of all panels, where they have the same.
    pub(super) shared: Option<Placed>,
}

impl Plot {
    /// The page's x of a place along the horizontal axis.
    pub(super) fn right(&self, part: f64) -> f64 {
        self.area.left + part * self.area.width()
    }

    /// The page's y of a place along the vertical axis.
    pub(super) fn down(&self, part: f64) -> f64 {
        self.area.bottom - part * self.area.height()
    }

    /// Where a point lies on the page, perhaps outside the plot; `None` if an axis has no place for it.
    pub(super) fn at(&self, x: f64, y: f64) -> Option<At> {
        Some((self.right(self.x.place(x)?), self.down(self.y.place(y)?)))
    }
}

/// Lays out a figure.
pub(super) fn layout(figure: &Figure, fonts: &Fonts) -> Page {
    let count = figure.panels.len().max(1) as f64;
    let beside = figure.arrangement == Arrangement::SideBySide && count > 1.0;
    let (width, height) = match (beside, figure.panels.len()) {
        (true, 2) => (960.0, 280.0),
        (true, _) => (1320.0, 280.0),
        (false, 0 | 1) => (720.0, 320.0),
        (false, _) => (720.0, 215.0),
    };
    let inner = width - 2.0 * MARGIN;
    let title = fonts.fit(Rich::parse(&figure.title), TITLE, true, inner);
    let subtitle = fonts.wrap(&figure.subtitle, SUBTITLE, inner, 3);
    let mut plots: Vec<Plot> = figure.panels.iter().map(|panel| unplaced(panel, fonts, height)).collect();
    let left = plots.iter().map(|plot| plot.left).fold(0.0, f64::max);
    let legends = Legends::of(&figure.panels, fonts, beside, height, inner - left);

    let cell = if beside { (inner - BETWEEN_PANELS * (count - 1.0)) / count } else { inner };
    for (i, plot) in plots.iter_mut().enumerate() {
        let start = MARGIN + if beside { i as f64 * (cell + BETWEEN_PANELS) } else { 0.0 };
        plot.left = if beside { plot.left } else { left };
        plot.area.left = start + plot.left;
        plot.area.right = start + cell - RIGHT_EDGE - legends.beside_width(fonts);
        place_along_x(plot, &figure.panels[i], fonts, start + cell);
    }

    let mut top = MARGIN + head_height(&title, &subtitle);
    let above = |plot: &Plot, panel: &Panel| top_strip(plot, panel);
    let tallest =
        plots.iter().zip(&figure.panels).map(|(plot, panel)| above(plot, panel)).fold(0.0, f64::max);
    let mut bottom = top;
    for (i, (plot, panel)) in plots.iter_mut().zip(&figure.panels).enumerate() {
        plot.heading = top + PANEL_TITLE;
        plot.area.top = top + if beside { tallest } else { above(plot, panel) };
        plot.area.bottom = plot.area.top + height;
        let mut end = plot.area.bottom + bottom_strip(panel);
        if let Some(legend) = legends.own.get(i).filter(|legend| !legend.is_empty()) {
            let (placed, below) = legends.place(legend, plot, end, fonts);
            plot.legend = Some(placed);
            end = end.max(below);
        }
        bottom = bottom.max(end);
        if !beside {
            top = end + 14.0;
        }
    }
    let shared = legends.shared.as_ref().map(|legend| {
        let room = width - MARGIN - left - MARGIN;
        let columns = legend.columns(fonts, room);
        let at = (MARGIN + left, bottom + 10.0);
        bottom = at.1 + legend.height(columns);
        Placed { legend: legend.clone(), at, columns }
    });
    Page { size: (width, (bottom + MARGIN).ceil()), title, subtitle, plots, shared }
}

/// The legends of a figure and where they go.
struct Legends {
    /// One for each panel, where they are not shared below all.
    own: Vec<Legend>,
    shared: Option<Legend>,
    /// To the right of the plots instead of below.
    at_right: bool,
}

impl Legends {
    fn of(panels: &[Panel], fonts: &Fonts, beside: bool, height: f64, room: f64) -> Self {
        let widest = if beside { 300.0 } else { room };
        let mut own: Vec<Legend> = panels.iter().map(|panel| Legend::of(panel, fonts, widest)).collect();
        let alike = own.windows(2).all(|pair| pair[0] == pair[1]);
        let fits = |legend: &Legend| {
            legend.width(fonts) <= WIDEST_ENTRY_BESIDE && legend.len() as f64 * legend::ROW <= height
        };
        let at_right = !beside && own.iter().all(fits) && own.iter().any(|legend| !legend.is_empty());
        let mut shared = None;
        if alike && own.len() > 1 {
            if at_right {
                // Once is enough: beside the first panel.
                own.truncate(1);
            } else {
                shared = own.drain(..).next().filter(|legend| !legend.is_empty());
            }
        }
        Self { own, shared, at_right }
    }

    /// The width all plots leave free on their right.
    fn beside_width(&self, fonts: &Fonts) -> f64 {
        if !self.at_right {
            return 0.0;
        }
        let filled = self.own.iter().filter(|legend| !legend.is_empty());
        LEGEND_GAP + filled.map(|legend| legend.width(fonts)).fold(0.0, f64::max)
    }

    /// Places the legend of one plot; also tells where it ends.
    fn place(&self, legend: &Legend, plot: &Plot, end: f64, fonts: &Fonts) -> (Placed, f64) {
        let (at, columns) = if self.at_right {
            ((plot.area.right + LEGEND_GAP, plot.area.top), 1)
        } else {
            ((plot.area.left, end + 8.0), legend.columns(fonts, plot.area.width() + RIGHT_EDGE))
        };
        let below = at.1 + legend.height(columns);
        (Placed { legend: legend.clone(), at, columns }, below)
    }
}

/// A plot of this height, not yet placed: what the y axis needs decides how wide it can be.
fn unplaced(panel: &Panel, fonts: &Fonts, height: f64) -> Plot {
    let (x, y) = spans(panel);
    let spread =
        |ticks: &Ticks| ticks.major.windows(2).all(|pair| (pair[1].at - pair[0].at) * height >= 1.7 * TICK);
    let blank = emptiness(panel).is_some();
    // Ticks of an axis that was fitted to nothing would mean nothing.
    let measures = !blank || (panel.x.range.is_some() && panel.y.range.is_some());
    let y_ticks = if measures { ticks(&y, (height / 45.0) as usize, spread) } else { Ticks::default() };
    let widest = y_ticks.major.iter().map(|tick| fonts.width(&tick.label, TICK, false)).fold(0.0, f64::max);
    let label = if panel.y.label.trim().is_empty() { 0.0 } else { 1.45 * LABEL };
    let missing = not_positive(panel);
    let note = (missing > 0 && !blank).then(|| {
        let points = if missing == 1 { "point" } else { "points" };
        Rich::plain(format!("{missing} {points} \u{2264} 0 not shown"))
    });
    Plot {
        area: Rect { left: 0.0, top: 0.0, right: 0.0, bottom: height },
        x,
        y,
        x_ticks: Ticks::default(),
        y_ticks,
        events: vec![],
        note,
        heading: 0.0,
        left: label + widest + TICK_LENGTH + TICK_GAP,
        legend: None,
    }
}

/// What depends on the width of a plot: the x ticks and the labels of events. The latter stand above the plot,
/// so they may reach over a legend beside it, up to `right`.
fn place_along_x(plot: &mut Plot, panel: &Panel, fonts: &Fonts, right: f64) {
    let width = plot.area.width();
    let apart = |ticks: &Ticks| {
        let half = |i: usize| fonts.width(&ticks.major[i].label, TICK, false) / 2.0;
        (1..ticks.major.len()).all(|i| {
            let distance = (ticks.major[i].at - ticks.major[i - 1].at) * width;
            distance >= half(i - 1) + half(i) + 12.0
        })
    };
    if !plot.y_ticks.major.is_empty() {
        plot.x_ticks = ticks(&plot.x, (width / 50.0) as usize, apart);
    }
    let place = |x: f64| plot.x.place_inside(x).map(|part| plot.right(part));
    plot.events = guides::event_labels(panel, fonts, place, (plot.area.left, right));
}

fn head_height(title: &Rich, subtitle: &[Rich]) -> f64 {
    let title = if title.is_blank() { 0.0 } else { 1.45 * TITLE };
    let lines = 1.4 * SUBTITLE * subtitle.len() as f64;
    let gap = if title + lines > 0.0 { 8.0 } else { 0.0 };
    title + lines + gap
}

/// The height of the row above a plot for the y axis' factor and for notes.
fn note_row(plot: &Plot) -> f64 {
    if plot.y_ticks.factor.is_some() || plot.note.is_some() { 1.5 * NOTE } else { 0.0 }
}

/// The height of the rows of event labels above a plot.
pub(super) fn event_rows(plot: &Plot) -> f64 {
    plot.events.iter().map(|event| (event.row + 1) as f64 * guides::ROW).fold(0.0, f64::max)
}

fn top_strip(plot: &Plot, panel: &Panel) -> f64 {
    let title = if panel.title.trim().is_empty() { 0.0 } else { 1.5 * PANEL_TITLE };
    title + note_row(plot) + event_rows(plot) + 6.0
}

/// Tick labels and the label of the x axis.
fn bottom_strip(panel: &Panel) -> f64 {
    let label = if panel.x.label.trim().is_empty() { 0.0 } else { 1.6 * LABEL };
    TICK_LENGTH + TICK_GAP + 1.1 * TICK + label
}
