//! Can any text make the reader panic, or leave its user without a message?

use std::io::Write;

use fluidlimit::spec::{Source, SpecError, System, load};
use proptest::prelude::*;
use proptest::sample::{Index, select};

const BASE: &str = include_str!("spec/base.toml");

/// Exactly one message, and nothing in it that a terminal would obey.
fn one_message(result: Result<System, SpecError>) -> Result<(), TestCaseError> {
    let Err(error) = result else { return Ok(()) };
    let plain = error.render(false);
    prop_assert_eq!(plain.lines().filter(|l| l.starts_with("error")).count(), 1, "{}", plain);
    prop_assert!(!plain.chars().any(|c| c.is_control() && c != '\n'), "{:?}", plain);
    prop_assert!(plain.len() < 10_000);
    prop_assert!(!error.to_string().contains('\n'), "{}", error);
    prop_assert!(error.render(true).contains('\u{1b}'), "no colour");
    Ok(())
}

fn text(text: String, overrides: &[String]) -> Result<(), TestCaseError> {
    one_message(load(&Source::Text { name: "m.toml".into(), text }, overrides))
}

/// Words that mean something to the reader.
fn word() -> impl Strategy<Value = String> {
    let words = [
        "policy",
        "pools",
        "0",
        "1",
        "-1",
        "1e300",
        "nan",
        "inf",
        "fast",
        "\"jsq-d\"",
        "pull",
        "tiers",
        "[[0], [1]]",
        "[",
        "]",
        "{",
        "}",
        "=",
        ".",
        "\"",
        "'''",
        "\n",
        "#",
        "[[pools]]",
        "[policy]",
        "service",
        "exponential",
        "mean",
        "erlang",
        "stages",
        "weibull",
        "shape",
        "data",
        "file",
        "phase-type",
        "{ initial = [1], generator = [[-1]] }",
        "\u{feff}",
        "\u{0}",
        "\u{1b}[31m",
        "\r",
        "é",
        "2026-01-01",
        "true",
        "99999999999999999999999999999999",
        "fluid.initial.tails.fast",
        "expect.\"x.fast.1\"",
        "level",
        "routers",
        "{}",
        "[]",
        ",",
        "\t",
    ];
    prop_oneof![4 => select(words.to_vec()).prop_map(str::to_owned), 1 => any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn any_bytes_give_one_message(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        one_message(load(&Source::from(file.path()), &[]))?;
    }

    #[test]
    fn any_change_of_a_good_file_gives_one_message(
        changes in proptest::collection::vec((any::<Index>(), 0_usize..12, word()), 1..4),
    ) {
        let mut changed: Vec<char> = BASE.chars().collect();
        for (at, cut, put) in changes {
            let start = at.index(changed.len() + 1);
            let end = (start + cut).min(changed.len());
            changed.splice(start..end, put.chars());
        }
        text(changed.into_iter().collect(), &[])?;
    }

    #[test]
    fn any_value_in_any_place_gives_one_message(line in any::<Index>(), put in word()) {
        let lines: Vec<&str> = BASE.lines().filter(|l| l.contains('=')).collect();
        let line = lines[line.index(lines.len())];
        let (key, _) = line.split_once('=').unwrap();
        text(BASE.replacen(line, &format!("{key}= {put}"), 1), &[])?;
    }

    #[test]
    fn any_override_gives_one_message(parts in proptest::collection::vec(word(), 0..6), set in any::<String>()) {
        text(BASE.to_owned(), &[parts.concat(), set.clone()])?;
        text(BASE.to_owned(), &[parts.join("."), set])?;
        let (key, value) = parts.split_at(parts.len() / 2);
        text(BASE.to_owned(), &[format!("{}={}", key.join("."), value.concat())])?;
    }
}
