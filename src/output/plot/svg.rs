//! SVG pages: plotters' SVG backend on a canvas ten times larger than the page.

use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontDesc, FontFamily, FontStyle, FontTransform, RGBColor, ShapeStyle, TextStyle,
};

use super::error::PlotError;
use super::markup::{Level, Rich, SCRIPT_SIZE};
use super::style::Rgb;
use super::surface::{Anchor, At, Surface, TextLook};

/// The backend takes whole numbers only, so a unit of the page is ten of the canvas: curves stay smooth.
const FINE: f64 = 10.0;

/// The embedded font first, then fonts of like width, then whatever the viewer calls sans-serif.
const FAMILY: &str = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";

/// The backend divides font sizes by this number and lowers a text anchored at its top by so many ems.
const BACKEND_LINE: f64 = 1.24;
const BACKEND_DROP: f64 = 0.76;

/// The backend escapes text, so it cannot be given elements. Private characters, which labels cannot hold,
/// stand for a change of level until the page is finished.
const MARKS: [(Level, Level, char); 6] = [
    (Level::Base, Level::Sub, '\u{E000}'),
    (Level::Base, Level::Sup, '\u{E001}'),
    (Level::Sub, Level::Base, '\u{E002}'),
    (Level::Sup, Level::Base, '\u{E003}'),
    (Level::Sub, Level::Sup, '\u{E004}'),
    (Level::Sup, Level::Sub, '\u{E005}'),
];
const END: char = '\u{E006}';

/// An SVG page that is being drawn.
pub(super) struct SvgPage<'a> {
    backend: SVGBackend<'a>,
    failure: Option<String>,
}

/// Draws a page and returns the file's text.
pub(super) fn page(
    (width, height): (f64, f64),
    title: &str,
    description: &str,
    draw: impl FnOnce(&mut dyn Surface),
) -> Result<String, PlotError> {
    let mut body = String::new();
    let canvas = (fine(width) as u32, fine(height) as u32);
    let mut page = SvgPage { backend: SVGBackend::with_string(&mut body, canvas), failure: None };
    draw(&mut page);
    let shown = page.backend.present();
    page.note(shown);
    let failure = page.failure.take();
    drop(page);
    if let Some(message) = failure {
        return Err(PlotError::Draw { message });
    }
    // The backend's own head gives the page the size of the canvas and has no place for the title.
    let inner = body.split_once('>').map_or("", |(_, inner)| inner);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" role=\"img\" \
         stroke-linejoin=\"round\">\n<title>{}</title>\n<desc>{}</desc>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>",
        f64::from(canvas.0) / FINE,
        f64::from(canvas.1) / FINE,
        canvas.0,
        canvas.1,
        escape(title),
        escape(description),
    );
    text.push_str(&with_levels(inner));
    Ok(text)
}

impl SvgPage<'_> {
    fn note<E: std::fmt::Display>(&mut self, result: Result<(), E>) {
        if let Err(error) = result {
            self.failure.get_or_insert_with(|| error.to_string());
        }
    }
}

impl Surface for SvgPage<'_> {
    fn polyline(&mut self, points: &[At], width: f64, colour: Rgb) {
        let mut path = canvas_points(points);
        path.dedup();
        // A path that rounds to a single point would be drawn as nothing.
        if let [only] = path[..] {
            path.push((only.0 + 1, only.1));
        }
        let style = ShapeStyle {
            color: rgb(colour).to_rgba(),
            filled: false,
            stroke_width: fine(width).max(1) as u32,
        };
        let drawn = self.backend.draw_path(path, &style);
        self.note(drawn);
    }

    fn polygon(&mut self, corners: &[At], colour: Rgb) {
        let drawn = self.backend.fill_polygon(canvas_points(corners), &rgb(colour).filled());
        self.note(drawn);
    }

    fn disc(&mut self, centre: At, radius: f64, colour: Rgb) {
        let centre = (fine(centre.0), fine(centre.1));
        let drawn = self.backend.draw_circle(centre, fine(radius) as u32, &rgb(colour).filled(), true);
        self.note(drawn);
    }

    fn text(&mut self, text: &Rich, (x, y): At, look: TextLook) {
        let drop = BACKEND_DROP * look.size;
        let (place, turn) = if look.upward {
            ((fine(x - drop), fine(y)), FontTransform::Rotate270)
        } else {
            ((fine(x), fine(y - drop)), FontTransform::None)
        };
        let weight = if look.bold { FontStyle::Bold } else { FontStyle::Normal };
        let size = FINE * look.size * BACKEND_LINE;
        let h_pos = match look.anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let style = TextStyle {
            font: FontDesc::new(FontFamily::Name(FAMILY), size, weight).transform(turn),
            color: rgb(look.colour).to_backend_color(),
            pos: Pos::new(h_pos, VPos::Top),
        };
        let drawn = self.backend.draw_text(&marked(text), &style, place);
        self.note(drawn);
    }
}

fn fine(units: f64) -> i32 {
    (units * FINE).round() as i32
}

fn canvas_points(points: &[At]) -> Vec<(i32, i32)> {
    points.iter().map(|(x, y)| (fine(*x), fine(*y))).collect()
}

fn rgb((r, g, b): Rgb) -> RGBColor {
    RGBColor(r, g, b)
}

/// The text with a mark at each change of level.
fn marked(text: &Rich) -> String {
    let mut out = String::new();
    let mut before = Level::Base;
    for (level, run) in &text.runs {
        let mark = MARKS.iter().find(|(from, to, _)| *from == before && *to == *level);
        if let Some((_, _, mark)) = mark {
            if before != Level::Base || out.contains(END) {
                out.push(END);
            }
            out.push(*mark);
        }
        out.push_str(run);
        before = *level;
    }
    if text.runs.iter().any(|(level, _)| *level != Level::Base) {
        out.push(END);
    }
    out
}

/// Puts elements where the marks are.
fn with_levels(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match MARKS.iter().find(|(_, _, mark)| *mark == c) {
            Some((from, to, _)) => out.push_str(&span(*from, *to)),
            None if c == END => out.push_str("</tspan>"),
            None => out.push(c),
        }
    }
    out
}

/// A shift holds for all that follows, so going back to the base line is a shift too.
fn span(from: Level, to: Level) -> String {
    let shift = (to.shift() - from.shift()) / to.size();
    // Some viewers drop the spaces at the ends of an element unless told not to.
    let size = if to == Level::Base { String::new() } else { format!(" font-size=\"{SCRIPT_SIZE}em\"") };
    format!("<tspan dy=\"{shift:.3}em\"{size} xml:space=\"preserve\">")
}

fn escape(text: &str) -> String {
    let clean = Rich::parse(text).bare();
    clean.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
