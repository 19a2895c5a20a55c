//! `--set KEY=VALUE`: changing single values of the parsed model before it is checked.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Problem, SpecError, list, nearest, quote};
use super::place::Sources;
use super::tree::{Node, entry, kind, shift};

/// What precedes an override where it is shown.
const FLAG: &str = "--set ";

/// A step of a dotted key.
type Word = Spanned<String>;

/// Sets one value in the tree.
///
/// Pools are found by name, else by index. Where the format asks for one of several keys (a policy, a
/// service, an initial state), naming another one replaces what was there; so do `rate` and `mean`.
///
/// # Errors
/// If the text does not read `KEY=VALUE` or the key leads into something that is not a table or list.
pub(super) fn apply<'t>(tree: &mut Node<'t>, sources: &mut Sources, text: &'t str) -> Result<(), SpecError> {
    let base = sources.add_override(format!("{FLAG}{text}")) + FLAG.len();
    let (words, value) = Parser { sources, base, text }.parse()?;
    let Some((last, inner)) = words.split_last() else { return Ok(()) };
    let mut node = tree.get_mut();
    let mut path: Vec<&str> = Vec::new();
    for word in inner {
        node = step(node, &path, word, sources)?;
        path.push(word.get_ref());
    }
    put(node, &path, last, value, sources)
}

/// Reads the text of an override.
struct Parser<'a, 't> {
    sources: &'a Sources,
    base: usize,
    text: &'t str,
}

impl<'t> Parser<'_, 't> {
    fn parse(&self) -> Result<(Vec<Word>, Node<'t>), SpecError> {
        let (key, value) = self.text.split_once('=').ok_or_else(|| {
            self.fail(0..self.text.len(), "an override has no `=`")
                .allowed("must read KEY=VALUE")
                .help("for example `--set arrivals.rate=0.5` or `--set pools.fast.share=0.4`")
        })?;
        Ok((self.key(key)?, self.value(value, key.len() + 1)?))
    }

    /// The dotted key; TOML itself reads it, quoted parts included.
    fn key(&self, key: &str) -> Result<Vec<Word>, SpecError> {
        let bad = || {
            self.fail(0..key.len(), format!("{} is not a dotted key", quote(key)))
                .allowed("must be names or indices joined by dots, such as pools.0.share")
        };
        let line = format!("{key}=0");
        if key.contains(['\n', '\r']) {
            return Err(bad());
        }
        let parsed = DeTable::parse(&line).map_err(|_| bad())?;
        let mut words = Vec::new();
        let mut table = parsed.get_ref();
        while let Some((k, v)) = table.iter().next() {
            let span = k.span().start + self.base..k.span().end + self.base;
            words.push(Spanned::new(span, k.get_ref().to_string()));
            match v.get_ref() {
                DeValue::Table(inner) => table = inner,
                _ => break,
            }
        }
        if words.is_empty() { Err(bad()) } else { Ok(words) }
    }

    /// The value: TOML, or a bare word, which is text.
    fn value(&self, raw: &'t str, offset: usize) -> Result<Node<'t>, SpecError> {
        let text = raw.trim();
        let start = offset + raw.len() - raw.trim_start().len();
        let fail = |title: String| self.fail(start..start + text.len(), title);
        if text.is_empty() {
            let title = "an override has no value".to_owned();
            return Err(fail(title).allowed("must read KEY=VALUE; empty text is written \"\""));
        }
        match DeValue::parse(text) {
            Ok(value) => Ok(shift(value, self.base + start)),
            Err(_) if is_bare_word(text) => {
                let span = self.base + start..self.base + start + text.len();
                Ok(Spanned::new(span, DeValue::String(text.into())))
            }
            Err(_) => Err(fail(format!("{} is not a TOML value", quote(text))).allowed(
                "must be a number, true or false, a word, \"quoted text\", [a list] or { a = table }",
            )),
        }
    }

    fn fail(&self, range: std::ops::Range<usize>, title: impl Into<String>) -> SpecError {
        let span = self.base + range.start..self.base + range.end;
        SpecError::new(Problem::Override, self.sources.file(), title).at(self.sources.place(&span))
    }
}

/// Letters, digits, `-`, `_` and `.`, a letter first.
fn is_bare_word(text: &str) -> bool {
    text.starts_with(char::is_alphabetic)
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Does the format want exactly one key in the table at this path?
fn is_choice(path: &[&str]) -> bool {
    matches!(path, ["policy"] | ["pools", _, "service"] | ["fluid", "initial"])
}

/// The other way to say what this key says, where there are two.
fn partner(path: &[&str], key: &str) -> Option<&'static str> {
    match (path, key) {
        (["pools", _, "service", _], "rate") => Some("mean"),
        (["pools", _, "service", _], "mean") => Some("rate"),
        _ => None,
    }
}

/// The value that `word` leads to; a table is made where there is none.
fn step<'a, 't>(
    node: &'a mut DeValue<'t>,
    path: &[&str],
    word: &Word,
    sources: &Sources,
) -> Result<&'a mut DeValue<'t>, SpecError> {
    let key = word.get_ref().as_str();
    if is_choice(path) {
        let kept = match node {
            DeValue::Table(table) => table.remove_entry(key),
            _ => None,
        };
        *node = DeValue::Table(DeTable::from_iter(kept));
    }
    match node {
        DeValue::Table(table) => {
            if !table.contains_key(key) {
                let empty = Spanned::new(word.span(), DeValue::Table(DeTable::new()));
                table.insert(Spanned::new(word.span(), key.to_owned().into()), empty);
            }
            table.get_mut(key).map(Spanned::get_mut).ok_or_else(|| no_inside("a table", path, word, sources))
        }
        DeValue::Array(array) => {
            let i = index(array, path, word, sources)?;
            array.get_mut(i).map(Spanned::get_mut).ok_or_else(|| no_inside("a list", path, word, sources))
        }
        other => Err(no_inside(kind(other), path, word, sources)),
    }
}

/// Sets the last key.
fn put<'t>(
    node: &mut DeValue<'t>,
    path: &[&str],
    word: &Word,
    value: Node<'t>,
    sources: &Sources,
) -> Result<(), SpecError> {
    let key = word.get_ref().as_str();
    if is_choice(path) {
        *node = DeValue::Table(DeTable::new());
    }
    match node {
        DeValue::Table(table) => {
            if let Some(other) = partner(path, key) {
                table.remove(other);
            }
            // Removed first, so that the key's span is the override's too.
            table.remove(key);
            table.insert(Spanned::new(word.span(), key.to_owned().into()), value);
        }
        DeValue::Array(array) => {
            let i = index(array, path, word, sources)?;
            if let Some(entry) = array.get_mut(i) {
                *entry = value;
            }
        }
        other => return Err(no_inside(kind(other), path, word, sources)),
    }
    Ok(())
}

/// The place in a list that a word names: a pool's name, else a number.
fn index(array: &[Node<'_>], path: &[&str], word: &Word, sources: &Sources) -> Result<usize, SpecError> {
    let key = word.get_ref().as_str();
    let names: Vec<&str> = match path {
        ["pools"] => array.iter().map(|pool| pool_name(pool.get_ref()).unwrap_or_default()).collect(),
        _ => Vec::new(),
    };
    if let Some(i) = names.iter().position(|name| *name == key) {
        return Ok(i);
    }
    if let Ok(i) = key.parse::<usize>()
        && i < array.len()
    {
        return Ok(i);
    }
    let (here, last) = (path.join("."), array.len().saturating_sub(1));
    let error = SpecError::new(
        Problem::Override,
        sources.file(),
        match path {
            ["pools"] => format!("there is no pool {}", quote(key)),
            _ => format!("{} has no entry {}", quote(&here), quote(key)),
        },
    )
    .at(sources.place(&word.span()))
    .suggest(nearest(key, names.iter().copied()));
    Err(match names.as_slice() {
        _ if array.is_empty() => error.allowed("the list is empty"),
        [] => error.allowed(format!("must be an index from 0 to {last}")),
        few if few.len() <= 12 => error
            .allowed(format!("must be one of {} or an index from 0 to {last}", list(few.iter().copied()))),
        _ => error.allowed(format!("must be the name of a pool or an index from 0 to {last}")),
    })
}

fn pool_name<'a>(pool: &'a DeValue<'_>) -> Option<&'a str> {
    entry(pool, "name")?.1.get_ref().as_str()
}

fn no_inside(what: &str, path: &[&str], word: &Word, sources: &Sources) -> SpecError {
    let here = quote(&path.join("."));
    let title = format!("{here} is {what}; there is nothing inside it to set");
    SpecError::new(Problem::Override, sources.file(), title)
        .at(sources.place(&word.span()))
        .allowed(format!("set {here} itself, or leave this part out"))
}
