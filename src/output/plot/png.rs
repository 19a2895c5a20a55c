//! PNG pages: three pixels to a unit, shapes and glyphs laid on with exact coverage.

use std::path::Path;

use ab_glyph::{Font, PxScale, point};
use ab_glyph_rasterizer::{Rasterizer, point as corner};
use plotters::backend::{BitMapBackend, DrawingBackend};
use plotters::style::{Color, RGBColor};

use super::error::PlotError;
use super::font::Fonts;
use super::markup::Rich;
use super::style::{Rgb, WHITE};
use super::surface::{Anchor, At, Surface, TextLook};

/// Pixels to a layout unit: 288 to the inch where a unit is a CSS pixel.
const PIXELS: f64 = 3.0;

/// A PNG page that is being drawn. plotters' own raster of thick lines and of text is too coarse for print
/// (even-odd fills, glyphs without their side bearings), so shapes reach its canvas as
/// covered pixels.
pub(super) struct PngPage<'a> {
    backend: BitMapBackend<'a>,
    fonts: &'a Fonts,
    failure: Option<String>,
}

/// Draws a page into a file whose name ends in `.png`.
pub(super) fn page(
    (width, height): (f64, f64),
    fonts: &Fonts,
    path: &Path,
    draw: impl FnOnce(&mut dyn Surface),
) -> Result<(), PlotError> {
    let size = ((width * PIXELS).round() as u32, (height * PIXELS).round() as u32);
    let mut page = PngPage { backend: BitMapBackend::new(path, size), fonts, failure: None };
    let (right, bottom) = (size.0 as i32, size.1 as i32);
    let cleared = page.backend.draw_rect((0, 0), (right, bottom), &rgb(WHITE).filled(), true);
    page.note(cleared);
    draw(&mut page);
    let shown = page.backend.present();
    page.note(shown);
    page.failure.map_or(Ok(()), |message| Err(PlotError::Draw { message }))
}

impl PngPage<'_> {
    fn note<E: std::fmt::Display>(&mut self, result: Result<(), E>) {
        if let Err(error) = result {
            self.failure.get_or_insert_with(|| error.to_string());
        }
    }

    fn pixel(&mut self, place: (i32, i32), colour: Rgb, coverage: f32) {
        // Rounding in the raster's running sums leaves traces far too faint to see.
        if coverage > 1.0 / 512.0 {
            let ink = rgb(colour).mix(f64::from(coverage.min(1.0))).to_backend_color();
            let drawn = self.backend.draw_pixel(place, ink);
            self.note(drawn);
        }
    }

    /// Fills the union of convex polygons, given in pixels.
    fn fill(&mut self, polygons: &[Vec<At>], colour: Rgb) {
        let corners = || polygons.iter().flatten();
        let least = |pick: fn(&At) -> f64| corners().map(pick).fold(f64::INFINITY, f64::min).floor() - 1.0;
        let most = |pick: fn(&At) -> f64| corners().map(pick).fold(f64::NEG_INFINITY, f64::max).ceil() + 1.0;
        let (left, top) = (least(|p| p.0), least(|p| p.1));
        let (right, bottom) = (most(|p| p.0), most(|p| p.1));
        if !(right > left && bottom > top) {
            return;
        }
        let mut raster = Rasterizer::new((right - left) as usize, (bottom - top) as usize);
        for polygon in polygons {
            // Turned the same way round, overlapping polygons add up instead of cancelling.
            let forward = twice_area(polygon) >= 0.0;
            let next = polygon.iter().cycle().skip(1);
            for (a, b) in polygon.iter().zip(next) {
                let (a, b) = if forward { (a, b) } else { (b, a) };
                let at = |p: &At| corner((p.0 - left) as f32, (p.1 - top) as f32);
                raster.draw_line(at(a), at(b));
            }
        }
        raster.for_each_pixel_2d(|x, y, coverage| {
            self.pixel((left as i32 + x as i32, top as i32 + y as i32), colour, coverage);
        });
    }
}

impl Surface for PngPage<'_> {
    fn polyline(&mut self, points: &[At], width: f64, colour: Rgb) {
        let radius = width * PIXELS / 2.0;
        let path: Vec<At> = points.iter().map(pixels).collect();
        let mut shapes = vec![];
        for pair in path.windows(2) {
            shapes.extend(bar(pair[0], pair[1], radius));
        }
        for triple in path.windows(3) {
            if bends(triple[0], triple[1], triple[2]) {
                shapes.push(round(triple[1], radius));
            }
        }
        self.fill(&shapes, colour);
    }

    fn polygon(&mut self, corners: &[At], colour: Rgb) {
        self.fill(&[corners.iter().map(pixels).collect()], colour);
    }

    fn disc(&mut self, centre: At, radius: f64, colour: Rgb) {
        self.fill(&[round(pixels(&centre), radius * PIXELS)], colour);
    }

    fn text(&mut self, text: &Rich, baseline: At, look: TextLook) {
        let fonts = self.fonts;
        let face = fonts.face(look.bold);
        let total = fonts.width(text, look.size, look.bold) * PIXELS;
        let mut pen = match look.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -total / 2.0,
            Anchor::End => -total,
        };
        let origin = pixels(&baseline);
        // The baseline sits on a whole pixel, so that letters of one line are equally sharp. Along the line the
        // fraction is kept.
        let (along, across) = if look.upward { (-origin.1, origin.0) } else { (origin.0, origin.1) };
        let (across, start) = (across.round() as i32, along.floor());
        pen += along - start;
        let line_per_em = f64::from(face.height_unscaled() / face.units_per_em().unwrap_or(2048.0));
        for (level, run) in &text.runs {
            let em = look.size * level.size() * PIXELS;
            let unit = em / f64::from(face.units_per_em().unwrap_or(2048.0));
            let drop = (look.size * level.shift() * PIXELS).round() as f32;
            let mut before = None;
            for c in run.chars() {
                let id = face.glyph_id(c);
                if let Some(before) = before {
                    pen += unit * f64::from(face.kern_unscaled(before, id));
                }
                before = Some(id);
                let scale = PxScale::from((em * line_per_em) as f32);
                let glyph = id.with_scale_and_position(scale, point(pen as f32, drop));
                if let Some(outline) = face.outline_glyph(glyph) {
                    let corner = outline.px_bounds().min;
                    let (left, top) = (corner.x as i32 + start as i32, corner.y as i32 + across);
                    outline.draw(|x, y, coverage| {
                        let (x, y) = (left + x as i32, top + y as i32);
                        let place = if look.upward { (y, -x - 1) } else { (x, y) };
                        self.pixel(place, look.colour, coverage);
                    });
                }
                pen += unit * f64::from(face.h_advance_unscaled(id));
            }
        }
    }
}

fn pixels(at: &At) -> At {
    (at.0 * PIXELS, at.1 * PIXELS)
}

fn rgb((r, g, b): Rgb) -> RGBColor {
    RGBColor(r, g, b)
}

fn twice_area(polygon: &[At]) -> f64 {
    let next = polygon.iter().cycle().skip(1);
    polygon.iter().zip(next).map(|(a, b)| a.0 * b.1 - b.0 * a.1).sum()
}

/// The segment from `a` to `b` as a rectangle; nothing if it has no length.
fn bar(a: At, b: At, radius: f64) -> Option<Vec<At>> {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length = dx.hypot(dy);
    if length <= 0.0 {
        return None;
    }
    let (nx, ny) = (-dy / length * radius, dx / length * radius);
    Some(vec![(a.0 + nx, a.1 + ny), (b.0 + nx, b.1 + ny), (b.0 - nx, b.1 - ny), (a.0 - nx, a.1 - ny)])
}

/// A circle with enough corners to look round.
fn round(centre: At, radius: f64) -> Vec<At> {
    let corners = (8.0 + 4.0 * radius.sqrt()) as usize;
    let angle = |i: usize| std::f64::consts::TAU * i as f64 / corners as f64;
    (0..corners).map(|i| (centre.0 + radius * angle(i).cos(), centre.1 + radius * angle(i).sin())).collect()
}

/// Whether a line turns enough at `b` to leave a visible notch without a round join.
fn bends(a: At, b: At, c: At) -> bool {
    let (u, v) = ((b.0 - a.0, b.1 - a.1), (c.0 - b.0, c.1 - b.1));
    let cross = (u.0 * v.1 - u.1 * v.0).abs();
    let dot = u.0 * v.0 + u.1 * v.1;
    cross > 0.08 * dot || dot < 0.0
}
