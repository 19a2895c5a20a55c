//! The mini markup of labels: `_{...}` lowers, `^{...}` raises.

/// Where a run of text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Base,
    Sub,
    Sup,
}

/// The size of sub- and superscripts and how far their baseline moves down, in parts of the base size.
pub(super) const SCRIPT_SIZE: f64 = 0.7;
pub(super) const SUB_SHIFT: f64 = 0.21;
pub(super) const SUP_SHIFT: f64 = -0.35;

impl Level {
    /// Size relative to the base text.
    pub(super) fn size(self) -> f64 {
        if self == Level::Base { 1.0 } else { SCRIPT_SIZE }
    }

    /// How far the baseline lies below that of the base text, in parts of the base size.
    pub(super) fn shift(self) -> f64 {
        match self {
            Level::Base => 0.0,
            Level::Sub => SUB_SHIFT,
            Level::Sup => SUP_SHIFT,
        }
    }
}

/// Text as runs of one level each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rich {
    pub(super) runs: Vec<(Level, String)>,
}

impl Rich {
    /// Reads a label.
    pub(super) fn parse(text: &str) -> Self {
        let clean = presentable(text);
        let mut rich = Self::default();
        let mut rest = clean.as_str();
        while let Some((before, level, script, after)) = next_script(rest) {
            rich.push(Level::Base, before);
            rich.push(level, &raised_minus(script));
            rest = after;
        }
        rich.push(Level::Base, rest);
        rich
    }

    /// Text that is taken as it is.
    pub(super) fn plain(text: impl Into<String>) -> Self {
        let mut rich = Self::default();
        rich.push(Level::Base, &text.into());
        rich
    }

    /// Adds a run; runs of one level that meet are joined.
    pub(super) fn push(&mut self, level: Level, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.runs.last_mut() {
            Some((last, run)) if *last == level => run.push_str(text),
            _ => self.runs.push((level, text.to_owned())),
        }
    }

    /// Whether there is nothing to draw.
    pub(super) fn is_blank(&self) -> bool {
        self.runs.iter().all(|(_, run)| run.trim().is_empty())
    }

    /// The text without its levels.
    pub(super) fn bare(&self) -> String {
        self.runs.iter().map(|(_, run)| run.as_str()).collect()
    }

    /// The first `count` characters.
    pub(super) fn take(&self, count: usize) -> Self {
        let mut left = count;
        let mut rich = Self::default();
        for (level, run) in &self.runs {
            let part: String = run.chars().take(left).collect();
            left -= part.chars().count();
            rich.push(*level, &part);
        }
        rich
    }

    /// How many characters there are.
    pub(super) fn len(&self) -> usize {
        self.runs.iter().map(|(_, run)| run.chars().count()).sum()
    }
}

/// Splits at the first script: text before it, its level, its content, text after it.
fn next_script(text: &str) -> Option<(&str, Level, &str, &str)> {
    let (at, level) = text.char_indices().find_map(|(at, c)| {
        let level = match c {
            '_' => Level::Sub,
            '^' => Level::Sup,
            _ => return None,
        };
        let inner = text[at + 1..].strip_prefix('{')?;
        inner.contains('}').then_some((at, level))
    })?;
    let inner = &text[at + 2..];
    let end = inner.find('}')?;
    Some((&text[..at], level, &inner[..end], &inner[end + 1..]))
}

/// Replaces what no label can hold (control characters, which XML forbids, and the private
/// characters the SVG writer uses as marks) and hyphens that stand for a minus sign.
fn presentable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let shown = match c {
            c if c.is_control() => ' ',
            '\u{E000}'..='\u{F8FF}' | '\u{FFFE}' | '\u{FFFF}' => '\u{FFFD}',
            '-' if stands_for_minus(before, chars.peek().copied()) => '\u{2212}',
            c => c,
        };
        out.push(shown);
        before = Some(c);
    }
    out
}

/// In a script a leading hyphen is a minus sign whatever follows, as in `e^{-t}`.
fn raised_minus(script: &str) -> String {
    script.strip_prefix('-').map_or_else(|| script.to_owned(), |rest| format!("\u{2212}{rest}"))
}

fn stands_for_minus(before: Option<char>, after: Option<char>) -> bool {
    let opens = before.is_none_or(|c| c.is_whitespace() || "([{=,<>|".contains(c));
    opens && after.is_some_and(|c| c.is_ascii_digit() || c == '.' || (before == Some(' ') && c == ' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(text: &str) -> Vec<(Level, String)> {
        Rich::parse(text).runs
    }

    #[test]
    fn scripts_are_split_off() {
        assert_eq!(
            runs("x_{1,fast} ~ n^{-1/2}"),
            [
                (Level::Base, "x".into()),
                (Level::Sub, "1,fast".into()),
                (Level::Base, " ~ n".into()),
                (Level::Sup, "\u{2212}1/2".into()),
            ]
        );
    }

    #[test]
    fn what_is_no_script_stays_as_it_is() {
        for text in ["p_wait", "a^b", "x_{1", "{x}", "_", "^{", "x_}{", "é_é"] {
            assert_eq!(runs(text), [(Level::Base, text.to_owned())], "{text}");
        }
    }

    #[test]
    fn hyphens_become_minus_signs_only_before_numbers() {
        assert_eq!(
            Rich::parse("slope -1/2, 1e-3, mean-field, x - y").bare(),
            "slope \u{2212}1/2, 1e-3, mean-field, x \u{2212} y"
        );
    }

    #[test]
    fn forbidden_characters_are_replaced() {
        assert_eq!(Rich::parse("a\u{0}b\nc\u{E000}\u{FFFF}").bare(), "a b c\u{FFFD}\u{FFFD}");
    }

    #[test]
    fn taking_counts_characters_across_runs() {
        assert_eq!(
            Rich::parse("ab_{cd}ef").take(3).runs,
            [(Level::Base, "ab".into()), (Level::Sub, "c".into())]
        );
        assert_eq!(Rich::parse("ab_{cd}ef").len(), 6);
    }
}
