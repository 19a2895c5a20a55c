//! Drawing a page that has been laid out.

use super::figure::{Figure, Panel};
use super::font::Fonts;
use super::guides;
use super::layout::{MARGIN, Page, Placed, Plot, TICK_GAP, TICK_LENGTH, event_rows};
use super::markup::Rich;
use super::scale::{Emptiness, emptiness};
use super::series;
use super::style::{BLACK, GREY, GRID, LABEL, NOTE, PANEL_TITLE, SUBTITLE, TICK, TITLE};
use super::surface::{Anchor, Surface, TextLook};

const SPINE: f64 = 1.0;
const GRID_WIDTH: f64 = 0.8;

/// Draws the whole figure.
pub(super) fn draw(page: &mut dyn Surface, figure: &Figure, plan: &Page, fonts: &Fonts) {
    let mut baseline = MARGIN;
    if !plan.title.is_blank() {
        baseline += TITLE;
        let look = TextLook { bold: true, ..TextLook::new(TITLE, BLACK, Anchor::Start) };
        page.text(&plan.title, (MARGIN, baseline), look);
        baseline += 0.45 * TITLE;
    }
    for line in &plan.subtitle {
        baseline += SUBTITLE;
        page.text(line, (MARGIN, baseline), TextLook::new(SUBTITLE, GREY, Anchor::Start));
        baseline += 0.4 * SUBTITLE;
    }
    for (panel, plot) in figure.panels.iter().zip(&plan.plots) {
        draw_panel(page, panel, plot, fonts);
    }
    for Placed { legend, at, columns } in
        plan.plots.iter().filter_map(|plot| plot.legend.as_ref()).chain(&plan.shared)
    {
        legend.draw(page, fonts, *at, *columns);
    }
}

fn draw_panel(page: &mut dyn Surface, panel: &Panel, plot: &Plot, fonts: &Fonts) {
    let nothing = emptiness(panel);
    draw_grid(page, plot);
    guides::draw_lines(page, panel, plot);
    draw_spines(page, plot);
    draw_x_ticks(page, plot);
    draw_y_ticks(page, plot);
    draw_labels(page, panel, plot, fonts);
    series::draw(page, panel, plot);
    guides::draw_labels(page, panel, plot, fonts);
    if let Some(nothing) = nothing {
        let text = match nothing {
            Emptiness::NoData => "no data",
            Emptiness::NoPositiveData => "no positive data",
        };
        let middle = (plot.right(0.5), plot.down(0.5) + 0.36 * LABEL);
        page.text(&Rich::plain(text), middle, TextLook::new(LABEL, GREY, Anchor::Middle));
    }
}

fn draw_grid(page: &mut dyn Surface, plot: &Plot) {
    let area = plot.area;
    for tick in &plot.x_ticks.major {
        let x = plot.right(tick.at);
        page.polyline(&[(x, area.top), (x, area.bottom)], GRID_WIDTH, GRID);
    }
    for tick in &plot.y_ticks.major {
        let y = plot.down(tick.at);
        page.polyline(&[(area.left, y), (area.right, y)], GRID_WIDTH, GRID);
    }
}

fn draw_spines(page: &mut dyn Surface, plot: &Plot) {
    let area = plot.area;
    page.polyline(
        &[(area.left, area.top), (area.left, area.bottom), (area.right, area.bottom)],
        SPINE,
        BLACK,
    );
}

fn draw_x_ticks(page: &mut dyn Surface, plot: &Plot) {
    let bottom = plot.area.bottom;
    for at in &plot.x_ticks.minor {
        let x = plot.right(*at);
        page.polyline(&[(x, bottom), (x, bottom + 0.6 * TICK_LENGTH)], 0.8 * SPINE, BLACK);
    }
    for tick in &plot.x_ticks.major {
        let x = plot.right(tick.at);
        page.polyline(&[(x, bottom), (x, bottom + TICK_LENGTH)], SPINE, BLACK);
        let baseline = bottom + TICK_LENGTH + TICK_GAP + 0.8 * TICK;
        page.text(&tick.label, (x, baseline), TextLook::new(TICK, BLACK, Anchor::Middle));
    }
    if let Some(factor) = &plot.x_ticks.factor {
        let baseline = bottom + TICK_LENGTH + TICK_GAP + 1.1 * TICK + 1.15 * LABEL;
        page.text(factor, (plot.area.right, baseline), TextLook::new(TICK, BLACK, Anchor::End));
    }
}

fn draw_y_ticks(page: &mut dyn Surface, plot: &Plot) {
    let left = plot.area.left;
    for at in &plot.y_ticks.minor {
        let y = plot.down(*at);
        page.polyline(&[(left - 0.6 * TICK_LENGTH, y), (left, y)], 0.8 * SPINE, BLACK);
    }
    for tick in &plot.y_ticks.major {
        let y = plot.down(tick.at);
        page.polyline(&[(left - TICK_LENGTH, y), (left, y)], SPINE, BLACK);
        let place = (left - TICK_LENGTH - TICK_GAP, y + 0.36 * TICK);
        page.text(&tick.label, place, TextLook::new(TICK, BLACK, Anchor::End));
    }
    if let Some(factor) = &plot.y_ticks.factor {
        let baseline = plot.area.top - event_rows(plot) - 6.0;
        page.text(factor, (left, baseline), TextLook::new(TICK, BLACK, Anchor::Middle));
    }
}

/// The panel's heading, its note and the labels of its axes.
fn draw_labels(page: &mut dyn Surface, panel: &Panel, plot: &Plot, fonts: &Fonts) {
    let area = plot.area;
    let above = area.top - 6.0 - event_rows(plot);
    let heading = fonts.fit(Rich::parse(&panel.title), PANEL_TITLE, true, area.width());
    if !heading.is_blank() {
        let look = TextLook { bold: true, ..TextLook::new(PANEL_TITLE, BLACK, Anchor::Start) };
        page.text(&heading, (area.left, plot.heading), look);
    }
    if let Some(note) = &plot.note {
        page.text(note, (area.right, above), TextLook::new(NOTE, GREY, Anchor::End));
    }
    let factor = plot.x_ticks.factor.as_ref().map_or(0.0, |factor| fonts.width(factor, TICK, false) + 10.0);
    let label = fonts.fit(Rich::parse(&panel.x.label), LABEL, false, area.width() - 2.0 * factor);
    if !label.is_blank() {
        let baseline = area.bottom + TICK_LENGTH + TICK_GAP + 1.1 * TICK + 1.15 * LABEL;
        page.text(&label, (plot.right(0.5), baseline), TextLook::new(LABEL, BLACK, Anchor::Middle));
    }
    let label = fonts.fit(Rich::parse(&panel.y.label), LABEL, false, area.height() + 20.0);
    if !label.is_blank() {
        let place = (area.left - plot.left + 0.85 * LABEL, plot.down(0.5));
        page.text(&label, place, TextLook { upward: true, ..TextLook::new(LABEL, BLACK, Anchor::Middle) });
    }
}
