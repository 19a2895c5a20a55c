//! The parsed TOML before it becomes types: finding things in it, and moving its spans.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::place::Span;

/// A TOML value with its span.
pub(super) type Node<'t> = Spanned<DeValue<'t>>;
/// A key with its span.
pub(super) type Key<'t> = Spanned<DeString<'t>>;

/// Moves all spans of a value by `offset`.
pub(super) fn shift(value: Node<'_>, offset: usize) -> Node<'_> {
    let at = |span: Span| span.start + offset..span.end + offset;
    let span = at(value.span());
    let value = match value.into_inner() {
        DeValue::Table(table) => DeValue::Table(
            table
                .into_iter()
                .map(|(k, v)| (Spanned::new(at(k.span()), k.into_inner()), shift(v, offset)))
                .collect(),
        ),
        DeValue::Array(array) => DeValue::Array(array.into_iter().map(|v| shift(v, offset)).collect()),
        plain => plain,
    };
    Spanned::new(span, value)
}

/// The entry of a table with its key, if the value is a table that has it.
pub(super) fn entry<'a, 't>(value: &'a DeValue<'t>, key: &str) -> Option<(&'a Key<'t>, &'a Node<'t>)> {
    table(value)?.get_key_value(key)
}

/// The table, if the value is one.
pub(super) fn table<'a, 't>(value: &'a DeValue<'t>) -> Option<&'a DeTable<'t>> {
    match value {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

/// What a value is, for people.
pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Where something was found in the tree.
pub(super) struct Found<'a, 't> {
    /// The keys that lead to it, the last one included: `pools[0].share`.
    pub(super) path: String,
    /// The same without the last one; empty at the root.
    pub(super) parent: String,
    /// The last key, or a number in brackets.
    pub(super) last: String,
    /// What stands there.
    pub(super) value: &'a DeValue<'t>,
    /// Is it a word that stands for a table without keys: `policy = "pull"`?
    pub(super) word: bool,
}

/// The key, or failing that the value, that has exactly this span. The innermost one if several do.
pub(super) fn find<'a, 't>(root: &'a DeValue<'t>, span: &Span) -> Option<Found<'a, 't>> {
    search(root, "", span)
}

fn search<'a, 't>(value: &'a DeValue<'t>, path: &str, span: &Span) -> Option<Found<'a, 't>> {
    match value {
        DeValue::Table(table) => table.iter().find_map(|(k, v)| {
            let last = k.get_ref().to_string();
            let full = if path.is_empty() { last.clone() } else { format!("{path}.{last}") };
            search(v.get_ref(), &full, span).or_else(|| {
                let word = k.span() == v.span() && self::table(v.get_ref()).is_some_and(DeTable::is_empty);
                let found = Found { path: full, parent: path.to_owned(), last, value: v.get_ref(), word };
                (k.span() == *span || v.span() == *span).then_some(found)
            })
        }),
        DeValue::Array(array) => array.iter().enumerate().find_map(|(i, v)| {
            let last = format!("[{i}]");
            let full = format!("{path}{last}");
            search(v.get_ref(), &full, span).or_else(|| {
                let value = v.get_ref();
                let found = Found { path: full, parent: path.to_owned(), last, value, word: false };
                (v.span() == *span).then_some(found)
            })
        }),
        _ => None,
    }
}
