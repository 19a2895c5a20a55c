//! Values that are formulas of the number of servers: their places in the tree, and their numbers.

use toml::Spanned;
use toml::de::DeValue;

use super::error::{Problem, SpecError};
use super::formula::{self, FormulaError};
use super::place::Sources;
use super::tree::Node;

/// The values that are formulas, where formulas may stand: the arrival rate, a policy's numbers, buffers.
fn formulas<'a, 't>(tree: &'a mut Node<'t>) -> Vec<&'a mut Node<'t>> {
    let mut found = Vec::new();
    let DeValue::Table(root) = tree.get_mut() else { return found };
    for (key, value) in root.iter_mut() {
        match (key.get_ref().as_ref(), value.get_mut()) {
            ("arrivals", DeValue::Table(arrivals)) => found.extend(arrivals.get_mut("rate")),
            ("policy", DeValue::Table(policy)) => {
                for (_, parameters) in policy.iter_mut() {
                    if let DeValue::Table(parameters) = parameters.get_mut() {
                        let named = |key: &str| matches!(key, "d" | "fallback_d" | "level");
                        let numbers = parameters.iter_mut().filter(|(key, _)| named(key.get_ref()));
                        found.extend(numbers.map(|(_, value)| value));
                    }
                }
            }
            ("pools", DeValue::Array(pools)) => {
                for pool in pools.iter_mut() {
                    if let DeValue::Table(pool) = pool.get_mut() {
                        found.extend(pool.get_mut("buffer"));
                    }
                }
            }
            _ => {}
        }
    }
    // A number between quotes is a slip, not a formula.
    found.retain(|node| node.get_ref().as_str().is_some_and(|text| text.trim().parse::<f64>().is_err()));
    found
}

/// The numbers of all formulas at this n, in the order in which [`put`] wants them.
///
/// # Errors
/// The first that is not a formula, or has no finite value.
pub(super) fn numbers(tree: &mut Node<'_>, sources: &Sources, n: u64) -> Result<Vec<String>, SpecError> {
    let number = |node: &mut Node<'_>| {
        let span = node.span();
        let text = node.get_ref().as_str().unwrap_or_default();
        let x = formula::value(text, n).map_err(|FormulaError { at, what }| {
            // The word that is wrong, or one character.
            let first = text[at..].chars().next().map_or(1, char::len_utf8);
            let word = text[at..].chars().take_while(|c| c.is_ascii_alphanumeric()).count().max(first);
            // Past the quotes, if it stands between some.
            let start = span.start + span.len().saturating_sub(text.len()) / 2 + at;
            let place = if at < text.len() { start..start + word } else { span.clone() };
            SpecError::new(Problem::Value, sources.file(), format!("`{text}` is not a formula of n: {what}"))
                .at(sources.place(&place))
                .allowed(format!("may name {}", formula::NAMES))
        })?;
        // Whole values read as whole numbers: a formula may stand for a number of samples.
        Ok(if x.fract() == 0.0 && x.abs() < 1e15 { format!("{x:.0}") } else { format!("{x:e}") })
    };
    formulas(tree).into_iter().map(number).collect()
}

/// Puts the numbers in the places of the formulas.
pub(super) fn put<'t>(tree: &mut Node<'t>, numbers: &'t [String]) {
    for (node, number) in formulas(tree).into_iter().zip(numbers) {
        if let Ok(value) = DeValue::parse(number) {
            *node = Spanned::new(node.span(), value.into_inner());
        }
    }
}

/// Is any value a formula?
pub(super) fn depends_on_n(tree: &mut Node<'_>) -> bool {
    !formulas(tree).is_empty()
}

/// The largest of `finite.sizes` as written, if it can be told.
pub(super) fn largest_size(tree: &Node<'_>) -> Option<u64> {
    let sizes = tree.get_ref().get("finite")?.get_ref().get("sizes")?.get_ref().as_array()?;
    sizes.iter().filter_map(|n| n.get_ref().as_integer()?.as_str().replace('_', "").parse().ok()).max()
}
