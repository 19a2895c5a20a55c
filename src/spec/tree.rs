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
        DeValue::Boolean(_) => "true or false",
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
}

/// The key, or failing that the value, that has exactly this span. The innermost one if several do.
pub(super) fn find<'a, 't>(root: &'a DeValue<'t>, span: &Span) -> Option<Found<'a, 't>> {
    search(root, "", span)
}

fn search<'a, 't>(value: &'a DeValue<'t>, path: &str, span: &Span) -> Option<Found<'a, 't>> {
    let here = |path: String, last: String, value: &'a DeValue<'t>, parent: &str| Found {
        path,
        parent: parent.to_owned(),
        last,
        value,
    };
    match value {
        DeValue::Table(table) => table.iter().find_map(|(k, v)| {
            let name = k.get_ref();
            let full = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            search(v.get_ref(), &full, span).or_else(|| {
                (k.span() == *span || v.span() == *span)
                    .then(|| here(full, name.to_string(), v.get_ref(), path))
            })
        }),
        DeValue::Array(array) => array.iter().enumerate().find_map(|(i, v)| {
            let full = format!("{path}[{i}]");
            search(v.get_ref(), &full, span)
                .or_else(|| (v.span() == *span).then(|| here(full, format!("[{i}]"), v.get_ref(), path)))
        }),
        _ => None,
    }
}
