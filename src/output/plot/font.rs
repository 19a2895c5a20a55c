//! The embedded font: measuring text, so that the layout is the same on every machine.

use ab_glyph::{Font, FontRef};

use super::error::PlotError;
use super::markup::{Level, Rich};

/// Both weights of the embedded font. Only its metrics matter for SVG, whose viewers may put another font
/// in its place; PNG draws its outlines.
pub(super) struct Fonts {
    regular: FontRef<'static>,
    bold: FontRef<'static>,
}

impl Fonts {
    pub(super) fn load() -> Result<Self, PlotError> {
        let read = |bytes| FontRef::try_from_slice(bytes).map_err(|source| PlotError::Font { source });
        Ok(Self { regular: read(dejavu::sans::regular())?, bold: read(dejavu::sans::bold())? })
    }

    pub(super) fn face(&self, bold: bool) -> &FontRef<'static> {
        if bold { &self.bold } else { &self.regular }
    }

    /// The width of a text whose base runs have this size (the em, not the line height).
    pub(super) fn width(&self, text: &Rich, size: f64, bold: bool) -> f64 {
        text.runs.iter().map(|(level, run)| size * level.size() * self.ems(run, bold)).sum()
    }

    /// The width of one run in ems.
    fn ems(&self, run: &str, bold: bool) -> f64 {
        let face = self.face(bold);
        let mut units = 0.0;
        let mut before = None;
        for c in run.chars() {
            let glyph = face.glyph_id(c);
            if let Some(before) = before {
                units += f64::from(face.kern_unscaled(before, glyph));
            }
            units += f64::from(face.h_advance_unscaled(glyph));
            before = Some(glyph);
        }
        units / f64::from(face.units_per_em().unwrap_or(2048.0))
    }

    /// The text, cut and ended with an ellipsis if it is wider than `room`.
    pub(super) fn fit(&self, text: Rich, size: f64, bold: bool, room: f64) -> Rich {
        // No character is narrower than a tenth of an em except combining marks, so nothing past this count
        // can be seen; the cut keeps measuring cheap for absurd lengths.
        let most = (10.0 * room / size).max(0.0) as usize + 1;
        if text.len() <= most && self.width(&text, size, bold) <= room {
            return text;
        }
        let cut = |count: usize| {
            let mut cut = text.take(count);
            let last = cut.runs.last().map_or(Level::Base, |(level, _)| *level);
            cut.push(last, "\u{2026}");
            cut
        };
        let (mut fits, mut too_many) = (0, text.len().min(most) + 1);
        while too_many - fits > 1 {
            let middle = fits.midpoint(too_many);
            if self.width(&cut(middle), size, bold) <= room { fits = middle } else { too_many = middle }
        }
        cut(fits)
    }

    /// Breaks a text at spaces into at most `most` lines of this width; what does not fit the last line is
    /// cut.
    pub(super) fn wrap(&self, text: &str, size: f64, room: f64, most: usize) -> Vec<Rich> {
        let mut lines: Vec<String> = vec![];
        for word in text.split_whitespace() {
            match lines.last_mut() {
                Some(line)
                    if lines_full(line, word, |joined| {
                        self.width(&Rich::parse(joined), size, false) > room
                    }) =>
                {
                    lines.push(word.to_owned());
                }
                Some(line) => *line = format!("{line} {word}"),
                None => lines.push(word.to_owned()),
            }
            if lines.len() > most {
                break;
            }
        }
        if lines.len() > most {
            let rest = lines.split_off(most).join(" ");
            if let Some(last) = lines.last_mut() {
                // Too wide on purpose: the cut below then ends the line with an ellipsis.
                *last = format!("{last} {rest}");
            }
        }
        lines.iter().map(|line| self.fit(Rich::parse(line), size, false, room)).collect()
    }
}

/// Whether a word has to start a new line. Scripts with a space inside are kept on one line.
fn lines_full(line: &str, word: &str, too_wide: impl Fn(&str) -> bool) -> bool {
    let open = line.matches('{').count() > line.matches('}').count();
    !open && too_wide(&format!("{line} {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_to_the_room() -> Result<(), PlotError> {
        let fonts = Fonts::load()?;
        let long = Rich::parse(&"x_{1} ".repeat(2000));
        let cut = fonts.fit(long, 12.0, false, 200.0);
        let width = fonts.width(&cut, 12.0, false);
        assert!(width <= 200.0 && width > 180.0, "{width}");
        assert!(cut.bare().ends_with('\u{2026}'));
        Ok(())
    }

    #[test]
    fn wrapping_keeps_every_word_that_has_room() -> Result<(), PlotError> {
        let fonts = Fonts::load()?;
        let lines = fonts.wrap("one two three four five six seven", 12.0, 80.0, 9);
        let words: Vec<String> = lines.iter().map(Rich::bare).collect();
        assert!(lines.len() > 2);
        assert_eq!(words.join(" "), "one two three four five six seven");
        assert_eq!(fonts.wrap(&"word ".repeat(1000), 12.0, 80.0, 3).len(), 3);
        assert!(fonts.wrap(" ", 12.0, 80.0, 3).is_empty());
        Ok(())
    }
}
