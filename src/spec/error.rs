//! What a user is told when the model file cannot be used: one message, in the style of rustc.

use std::fmt;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::place::Place;

/// Above this length a source line is not printed, only its position.
const LONGEST_LINE: usize = 400;

/// What kind of thing is wrong, for a caller that acts on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The file could not be read: missing, a directory, no permission, too large, not UTF-8.
    Read,
    /// It is not TOML.
    Syntax,
    /// A key that does not exist, or one that is missing.
    Key,
    /// A value of the wrong type: text where a number belongs.
    Type,
    /// A value that is not allowed, or two that are at odds.
    Value,
    /// A part of the format that this version does not read yet.
    Unsupported,
    /// A data file whose contents are not what they should be.
    Data,
    /// An override that does not read `KEY=VALUE`, or whose key leads nowhere.
    Override,
}

/// Why a model file cannot be used.
///
/// [`fmt::Display`] gives one line; [`SpecError::render`] the full message with the source line.
#[derive(Debug, Clone, thiserror::Error)]
pub struct SpecError(Box<Details>);

#[derive(Debug, Clone)]
struct Details {
    problem: Problem,
    title: String,
    file: String,
    place: Option<Place>,
    allowed: String,
    also: Option<(Place, String)>,
    help: Vec<String>,
    suggestion: Option<String>,
}

impl SpecError {
    /// An error about the whole of `file`; say where with [`Self::at`].
    pub(super) fn new(problem: Problem, file: &str, title: impl Into<String>) -> Self {
        Self(Box::new(Details {
            problem,
            title: title.into(),
            file: file.to_owned(),
            place: None,
            allowed: String::new(),
            also: None,
            help: Vec::new(),
            suggestion: None,
        }))
    }

    /// Points at a place.
    pub(super) fn at(mut self, place: Option<Place>) -> Self {
        self.0.place = place;
        self
    }

    /// What is allowed there; printed beside the caret.
    pub(super) fn allowed(mut self, text: impl Into<String>) -> Self {
        self.0.allowed = text.into();
        self
    }

    /// A second place that the fault depends on.
    pub(super) fn also(mut self, place: Option<Place>, text: impl Into<String>) -> Self {
        self.0.also = place.map(|p| (p, text.into()));
        self
    }

    /// What to do next.
    pub(super) fn help(mut self, text: impl Into<String>) -> Self {
        self.0.help.push(text.into());
        self
    }

    /// What was probably meant.
    pub(super) fn suggest(mut self, word: Option<&str>) -> Self {
        self.0.suggestion = word.map(str::to_owned);
        self
    }

    /// What kind of thing is wrong.
    #[must_use]
    pub fn problem(&self) -> Problem {
        self.0.problem
    }

    /// The fault, in one sentence.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.0.title
    }

    /// What is allowed at the place; may be empty.
    #[must_use]
    pub fn allowed_text(&self) -> &str {
        &self.0.allowed
    }

    /// Where it is; `None` if it concerns the file as a whole.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// The word that was probably meant.
    #[must_use]
    pub fn suggestion(&self) -> Option<&str> {
        self.0.suggestion.as_deref()
    }

    /// The message: the fault, the place, the source line with a caret, what is allowed, and what to
    /// do next. With `color`, styled by ANSI escapes.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let d = &*self.0;
        let mut group =
            Level::ERROR.primary_title(d.title.as_str()).elements(std::iter::empty::<Origin<'_>>());
        group = match &d.place {
            Some(place) => show(group, place, &d.allowed),
            None => group.element(Origin::path(d.file.as_str())),
        };
        if let Some(word) = &d.suggestion {
            group = group.element(Level::HELP.message(format!("did you mean {}?", quote(word))));
        }
        for help in &d.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let mut report = vec![group];
        if let Some((place, text)) = &d.also {
            let note = Level::NOTE.secondary_title(text.as_str()).elements(std::iter::empty::<Origin<'_>>());
            report.push(show(note, place, ""));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let mut text = renderer.decor_style(DecorStyle::Ascii).render(&report);
        text.push('\n');
        text
    }
}

/// Adds the source line of a place to a message.
fn show<'a>(group: Group<'a>, place: &'a Place, label: &'a str) -> Group<'a> {
    let (line, span) = place.excerpt();
    if line.len() > LONGEST_LINE {
        let origin = Origin::path(place.source()).line(place.line()).char_column(place.column());
        let group = group.element(origin);
        return if label.is_empty() { group } else { group.element(Level::NOTE.message(label)) };
    }
    let mark = AnnotationKind::Primary.span(span);
    let mark = if label.is_empty() { mark } else { mark.label(label) };
    let snippet = Snippet::source(line).annotation(mark);
    group.element(if place.is_override() {
        snippet.line_numbering(false)
    } else {
        snippet.path(place.source()).line_start(place.line())
    })
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let d = &*self.0;
        match &d.place {
            Some(place) => write!(f, "{place}: {}", d.title)?,
            None => write!(f, "{}: {}", d.file, d.title)?,
        }
        if d.allowed.is_empty() { Ok(()) } else { write!(f, "; {}", d.allowed) }
    }
}

/// A user's text on one line, control characters escaped.
pub(super) fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        match c {
            '\'' | '"' => shown.push(c),
            _ => shown.extend(c.escape_debug()),
        }
        shown
    })
}

/// A user's word between backticks, safe to print and not too long.
pub(super) fn quote(word: &str) -> String {
    let mut shown = printable(word);
    if shown.chars().count() > 60 {
        shown = shown.chars().take(57).chain("...".chars()).collect();
    }
    format!("`{shown}`")
}

/// Words between backticks, with commas.
pub(super) fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quote).collect::<Vec<_>>().join(", ")
}

/// The word among `known` that is closest to `word`, if one is close enough to have been meant.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let limit = (word.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(&lower, &k.to_lowercase()), k))
        .filter(|(distance, k)| *distance <= limit && *distance < k.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_close_or_none() {
        let known = ["lambda", "name", "share", "buffer"];
        assert_eq!(nearest("lamda", known), Some("lambda"));
        assert_eq!(nearest("Buffer", known), Some("buffer"));
        assert_eq!(nearest("shaer", known), Some("share"));
        assert_eq!(nearest("horizon", known), None);
        assert_eq!(nearest("", known), None);
    }

    #[test]
    fn words_of_the_user_cannot_break_the_message() {
        assert_eq!(quote("a\nb"), "`a\\nb`");
        assert_eq!(quote("it's"), "`it's`");
        assert_eq!(quote(&"x".repeat(100)).chars().count(), 62);
    }
}
