//! Where in the user's words a value was written.
//!
//! The model file and every `--set` override are parts of one long virtual text: each part has its
//! own range of offsets. A span taken from any of them therefore says by itself which part it lies
//! in, and values from an override can live in the same tree as values from the file.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::error::printable;

/// A range of offsets in the virtual text.
pub(super) type Span = Range<usize>;

/// The model file and the overrides, one after the other.
#[derive(Debug, Clone)]
pub(super) struct Sources {
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
struct Part {
    origin: Origin,
    text: Arc<str>,
    base: usize,
}

/// What a text is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    /// A model file, with the name to show.
    File(String),
    /// A `--set` override; its text is shown with the flag in front.
    Override,
}

/// A position in the model file or in an override, with the text around it.
#[derive(Debug, Clone)]
pub struct Place {
    origin: Origin,
    text: Arc<str>,
    span: Span,
}

impl Sources {
    /// The model file alone.
    pub(super) fn new(file: &str, text: Arc<str>) -> Self {
        Self { parts: vec![Part { origin: Origin::File(file.to_owned()), text, base: 0 }] }
    }

    /// Adds an override as it is typed, flag included; returns the offset at which it starts.
    pub(super) fn add_override(&mut self, text: String) -> usize {
        // One more than the end: an empty span at the end of a part still belongs to that part.
        let base = self.parts.last().map_or(0, |p| p.base + p.text.len() + 1);
        self.parts.push(Part { origin: Origin::Override, text: text.into(), base });
        base
    }

    /// The place of a span.
    pub(super) fn place(&self, span: &Span) -> Option<Place> {
        let part = self.part(span)?;
        let clip = |offset: usize| floor_char(&part.text, offset.saturating_sub(part.base));
        Some(Place {
            origin: part.origin.clone(),
            text: Arc::clone(&part.text),
            span: clip(span.start)..clip(span.end),
        })
    }

    /// Was this written in an override?
    pub(super) fn is_override(&self, span: &Span) -> bool {
        self.part(span).is_some_and(|p| p.origin == Origin::Override)
    }

    /// Of several spans that are at odds, the one to point at: one in an override if there is one,
    /// since that is what the user changed last, else the last.
    pub(super) fn telling(&self, spans: &[Span]) -> Span {
        let last = spans.last().cloned().unwrap_or_default();
        spans.iter().rfind(|s| self.is_override(s)).cloned().unwrap_or(last)
    }

    /// The text of the model file.
    pub(super) fn text(&self) -> Arc<str> {
        self.parts.first().map_or_else(|| "".into(), |p| Arc::clone(&p.text))
    }

    /// The name of the model file.
    pub(super) fn file(&self) -> &str {
        match self.parts.first().map(|p| &p.origin) {
            Some(Origin::File(name)) => name,
            _ => "",
        }
    }

    fn part(&self, span: &Span) -> Option<&Part> {
        self.parts.iter().rfind(|p| p.base <= span.start)
    }
}

/// The largest character boundary of `text` that is not above `offset`.
fn floor_char(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

impl Place {
    /// The model file's name, or `--set` for an override.
    #[must_use]
    pub fn source(&self) -> &str {
        match &self.origin {
            Origin::File(name) => name,
            Origin::Override => "--set",
        }
    }

    /// Is this an override and not a file?
    #[must_use]
    pub fn is_override(&self) -> bool {
        self.origin == Origin::Override
    }

    /// Line, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.before().matches('\n').count() + 1
    }

    /// Column in characters, counted from 1; a byte order mark does not count.
    #[must_use]
    pub fn column(&self) -> usize {
        let line = self.before().rsplit('\n').next().unwrap_or_default();
        line.trim_start_matches('\u{feff}').chars().count() + 1
    }

    /// The text pointed at.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.get(self.span.clone()).unwrap_or_default()
    }

    /// The line that the place starts in, and the place within it; a place of several lines ends
    /// with its first line.
    pub(super) fn excerpt(&self) -> (Cow<'_, str>, Span) {
        let start = self.before().rfind('\n').map_or(0, |i| i + 1);
        let start =
            if start == 0 && self.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { start };
        let rest = self.text.get(start..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default().trim_end_matches('\r');
        let within = |offset: usize| offset.saturating_sub(start).min(line.len());
        let span = within(self.span.start)..within(self.span.end);
        // The renderer replaces the old control characters but not these, which some terminals obey.
        // The replacement is as long as they are, so that the span holds.
        let obeyed = |c| ('\u{80}'..='\u{9f}').contains(&c);
        if line.contains(obeyed) {
            (line.replace(obeyed, "\u{bf}").into(), span)
        } else {
            (line.into(), span)
        }
    }

    fn before(&self) -> &str {
        self.text.get(..self.span.start).unwrap_or_default()
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_override() {
            return write!(f, "{}", printable(&self.text));
        }
        write!(f, "{}:{}:{}", self.source(), self.line(), self.column())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_knows_its_part_line_and_column() {
        let mut sources = Sources::new("m.toml", "a = 1\nsché = 2\r\n".into());
        let base = sources.add_override("--set b=3".to_owned());
        let file = sources.place(&(14..15)).unwrap();
        assert_eq!((file.line(), file.column(), file.text()), (2, 8, "2"));
        assert_eq!(file.excerpt(), ("sché = 2".into(), 8..9));
        assert_eq!(file.to_string(), "m.toml:2:8");
        let place = sources.place(&(base + 8..base + 9)).unwrap();
        assert_eq!((place.source(), place.text()), ("--set", "3"));
        assert!(!sources.is_override(&(16..16)), "the end of the file belongs to the file");
        assert_eq!(sources.telling(&[base..base + 1, 3..4]), base..base + 1);
        assert_eq!(sources.telling(&[1..2, 3..4]), 3..4);
    }

    #[test]
    fn a_byte_order_mark_is_not_a_column() {
        let sources = Sources::new("m.toml", "\u{feff}a = 1".into());
        let place = sources.place(&(7..8)).unwrap();
        assert_eq!((place.line(), place.column(), place.text()), (1, 5, "1"));
        assert_eq!(place.excerpt(), ("a = 1".into(), 4..5));
    }
}
