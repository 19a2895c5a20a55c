//! What is looked at before the TOML becomes types: the format's version, parts of the format that
//! this version does not read, and the places where exactly one of several keys is wanted.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Problem, SpecError, quote};
use super::place::{Sources, Span};
use super::tree::{Node, entry, table};

/// More pools than any use of the program has; a slip in a generated file otherwise eats the memory.
const MOST_POOLS: usize = 100_000;

/// Service laws that only periodic models read.
const PERIODIC_LAWS: [&str; 2] = ["deterministic", "uniform"];
/// What may stand in their place.
const ERLANG: &str = "`service.erlang = { stages = 50, mean = 1.0 }`";

/// Checks the shape of the tree. A bare word where a table with one key may stand
/// (`policy = "pull"`) becomes that table, so that both are the same model from here on.
///
/// # Errors
/// If the format's version is unknown, a part is not supported, or there are several keys where one
/// is wanted.
pub(super) fn settle(tree: &mut Node<'_>, sources: &Sources) -> Result<(), SpecError> {
    let shape = Shape { sources };
    shape.version(tree.get_ref())?;
    for (key, what) in [("population", "population models"), ("periodic", "periodic dispatching")] {
        shape.refuse(tree.get_ref(), key, what)?;
    }
    let DeValue::Table(root) = tree.get_mut() else { return Ok(()) };
    if let Some(policy) = root.get_mut("policy") {
        shape.one_of(policy, "policy", "`jsq-d.d = 2`")?;
    }
    if let Some(value) = root.get_mut("pools") {
        shape.not_too_many(value)?;
    }
    if let Some(DeValue::Array(pools)) = root.get_mut("pools").map(Spanned::get_mut) {
        for pool in pools.iter_mut() {
            shape.pool(pool)?;
        }
    }
    if let Some(DeValue::Table(fluid)) = root.get_mut("fluid").map(Spanned::get_mut)
        && let Some(initial) = fluid.get_mut("initial")
    {
        shape.one_of(initial, "initial state", "`level = 3`")?;
    }
    Ok(())
}

struct Shape<'a> {
    sources: &'a Sources,
}

impl Shape<'_> {
    fn version(&self, root: &DeValue<'_>) -> Result<(), SpecError> {
        match entry(root, "format").map(|(_, v)| v) {
            None => Ok(()),
            Some(v) if v.get_ref().as_integer().is_some_and(|i| i.as_str() == "1") => Ok(()),
            Some(v) => Err(self
                .fail(Problem::Unsupported, &v.span(), "this version of the format is not known")
                .allowed("must be 1, or left out")),
        }
    }

    fn not_too_many(&self, pools: &Node<'_>) -> Result<(), SpecError> {
        match pools.get_ref().as_array().map(|a| a.len()) {
            Some(count) if count > MOST_POOLS => Err(self
                .fail(Problem::Value, &pools.span(), format!("there are {count} pools"))
                .allowed(format!("must be at most {MOST_POOLS}"))),
            _ => Ok(()),
        }
    }

    fn pool(&self, pool: &mut Node<'_>) -> Result<(), SpecError> {
        let DeValue::Table(keys) = pool.get_mut() else { return Ok(()) };
        let Some(service) = keys.get_mut("service") else { return Ok(()) };
        self.one_of(service, "service", "`exponential.rate = 1.0`")?;
        for law in PERIODIC_LAWS {
            if let Some((key, _)) = entry(service.get_ref(), law) {
                let title = format!("{} is not a service law of a pool", quote(law));
                return Err(self
                    .fail(Problem::Unsupported, &key.span(), title)
                    .allowed("only periodic models read it: a pool needs exponential phases")
                    .help(format!("an Erlang law of many stages comes close: {ERLANG}")));
            }
        }
        Ok(())
    }

    /// Refuses a key that the format has and this version does not read.
    fn refuse(&self, value: &DeValue<'_>, key: &str, what: &str) -> Result<(), SpecError> {
        match entry(value, key) {
            None => Ok(()),
            Some((k, _)) => {
                let title = format!("{} is not yet supported", quote(key));
                let error = self.fail(Problem::Unsupported, &k.span(), title);
                Err(error.allowed(format!("this version does not read {what}")))
            }
        }
    }

    /// Makes a bare word a table, and refuses more than one key.
    fn one_of(&self, value: &mut Node<'_>, what: &str, example: &str) -> Result<(), SpecError> {
        let span = value.span();
        if let DeValue::String(word) = value.get_mut() {
            let word = std::mem::take(word);
            let empty = Spanned::new(span.clone(), DeValue::Table(DeTable::new()));
            let choice = DeTable::from_iter([(Spanned::new(span, word), empty)]);
            *value.get_mut() = DeValue::Table(choice);
            return Ok(());
        }
        let Some(keys) = table(value.get_ref()) else { return Ok(()) };
        let mut spans: Vec<(Span, &str)> = keys.keys().map(|k| (k.span(), k.get_ref().as_ref())).collect();
        spans.sort_by_key(|(span, _)| span.start);
        match spans.as_slice() {
            [] => Err(self
                .fail(Problem::Key, &value.span(), format!("the {what} is not named"))
                .allowed(format!("must hold one key, such as {example}"))),
            [_] => Ok(()),
            [(first, a), (second, b), ..] => Err(self
                .fail(
                    Problem::Value,
                    second,
                    format!("there are two of a kind: {} and {}", quote(a), quote(b)),
                )
                .allowed(format!("there can be only one {what}"))
                .also(self.sources.place(first), "the other one is here")),
        }
    }

    fn fail(&self, problem: Problem, span: &Span, title: impl Into<String>) -> SpecError {
        SpecError::new(problem, self.sources.file(), title).at(self.sources.place(span))
    }
}
