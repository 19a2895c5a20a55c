//! From what the TOML parser and serde say to what a user reads.
//!
//! The types tell serde which keys exist, so its message is the one place that lists them; the
//! wording around the list is locked by tests.

use toml::de::{DeValue, Error};

use super::error::{Problem, SpecError, list, nearest, quote};
use super::place::Sources;
use super::tree::{find, kind};

/// What to add when a key is missing: its name, and a line that would do.
const EXAMPLES: [(&str, &str); 21] = [
    ("policy", "policy = \"pull\""),
    ("arrivals", "arrivals.rate = 0.9"),
    ("rate", "rate = 0.9"),
    ("pools", "[[pools]]"),
    ("name", "name = \"servers\""),
    ("share", "share = 1.0"),
    ("service", "service.exponential.rate = 1.0"),
    ("d", "policy.jsq-d.d = 2"),
    ("level", "policy.threshold.level = 2"),
    ("tiers", "policy.tiers.tiers = [[0], [1]]"),
    ("stages", "service.erlang = { stages = 4, mean = 1.0 }"),
    ("probabilities", "service.hyperexponential = { probabilities = [0.9, 0.1], rates = [2.0, 0.2] }"),
    ("rates", "rates = [2.0, 0.5]"),
    ("continue", "service.coxian = { rates = [2.0, 0.5], continue = [0.25] }"),
    ("initial", "initial = [1.0, 0.0]"),
    ("generator", "generator = [[-2.0, 1.0], [0.0, -1.0]]"),
    ("mean", "service.moments = { mean = 1.0, scv = 2.0 }"),
    ("scv", "service.moments = { mean = 1.0, scv = 2.0 }"),
    ("shape", "service.weibull = { shape = 0.5, scale = 1.0 }"),
    ("file", "service.data = { file = \"times.csv\", column = \"seconds\" }"),
    ("source", "source = \"closed form: ...\""),
];

/// A text that is not TOML.
pub(super) fn syntax(error: &Error, sources: &Sources) -> SpecError {
    let message = one_line(error.message());
    let (title, allowed) = match message.split_once(", expected ") {
        Some((fault, expected)) => (fault.to_owned(), format!("expected {expected}")),
        None => (message, String::new()),
    };
    let place = error.span().and_then(|span| sources.place(&span));
    SpecError::new(Problem::Syntax, sources.file(), format!("not valid TOML: {title}"))
        .at(place)
        .allowed(allowed)
}

/// TOML that does not have the shape of a model. `root` is the tree that serde read.
pub(super) fn shape(error: &Error, root: &DeValue<'_>, sources: &Sources) -> SpecError {
    let message = error.message();
    // The root has an empty span: what is wrong with it concerns the file as a whole.
    let span = error.span().filter(|s| !s.is_empty());
    let found = span.as_ref().and_then(|span| find(root, span));
    let place = span.as_ref().and_then(|span| sources.place(span));
    let new = |problem, title: String| SpecError::new(problem, sources.file(), title).at(place.clone());
    let (path, parent, last) =
        found.as_ref().map_or(("", "", ""), |f| (f.path.as_str(), f.parent.as_str(), f.last.as_str()));

    if message.starts_with("unknown field") || message.starts_with("unknown variant") {
        let known = known_words(message);
        let what = if message.starts_with("unknown field") { "key" } else { choice_name(parent) };
        let title = match parent {
            "" => format!("unknown {what} {}", quote(last)),
            _ if what != "key" => format!("unknown {what} {}", quote(last)),
            _ => format!("unknown key {} in {}", quote(last), quote(parent)),
        };
        let error = new(Problem::Key, title).suggest(nearest(last, known.iter().copied()));
        return if known.is_empty() {
            error.allowed("there are no parameters here")
        } else {
            error.allowed("not known here").help(format!("allowed: {}", list(known)))
        };
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        let key = key.trim_matches('`');
        let title = match path {
            "" => format!("{} is missing", quote(key)),
            _ => format!("{} lacks {}", quote(path), quote(key)),
        };
        let error = new(Problem::Key, title).allowed(format!("needs {}", quote(key)));
        return match EXAMPLES.iter().find(|(k, _)| *k == key) {
            Some((_, example)) => error.help(format!("for example {}", quote(example))),
            None => error,
        };
    }
    let here = if path.is_empty() { "the model".to_owned() } else { quote(path) };
    if message.contains("overflowed") {
        let title = format!("{here} is too large for a number");
        return new(Problem::Value, title).allowed("must fit a double");
    }
    let title = match &found {
        Some(found) if found.word => format!("{here} has no value"),
        Some(found) => format!("{here} is {}", kind(found.value)),
        None => format!("{here} is of the wrong type"),
    };
    let error = new(Problem::Type, title).allowed(format!("must be {}", expected(message)));
    if path == "pools" { error.help("each pool opens with `[[pools]]`, in double brackets") } else { error }
}

/// What serde expected, for people.
fn expected(message: &str) -> &str {
    match message.rsplit_once(", expected ").map_or(message, |(_, expected)| expected) {
        "a sequence" => "a list",
        "a string" => "text between quotes",
        "a boolean" => "true or false",
        "a map" => "a table",
        "wanted string or table" => "a word or a table",
        other => other,
    }
}

/// What one of the keys of a choice is called.
fn choice_name(parent: &str) -> &'static str {
    match parent {
        "policy" => "policy",
        "fluid.initial" => "initial state",
        _ => "service law",
    }
}

/// The allowed words at the end of serde's message, each between backticks.
fn known_words(message: &str) -> Vec<&str> {
    let Some((_, tail)) = message.rsplit_once(", expected ") else { return Vec::new() };
    tail.split('`').skip(1).step_by(2).collect()
}

/// A message without line breaks.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
