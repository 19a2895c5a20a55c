//! What does a user read who has made a mistake in a model file?

use std::path::{Path, PathBuf};

use fluidlimit::spec::{Problem, Source, SpecError, System, load};

const BASE: &str = include_str!("spec/base.toml");
const MISTAKES: &str = include_str!("spec/mistakes.txt");

fn read(text: &str, overrides: &[&str]) -> Result<System, SpecError> {
    let source = Source::Text { name: "m.toml".into(), text: text.into() };
    load(&source, &overrides.iter().map(ToString::to_string).collect::<Vec<_>>())
}

/// One entry of the list of mistakes.
struct Mistake {
    from: String,
    to: String,
    message: String,
    suggestion: Option<String>,
}

fn mistakes() -> Vec<Mistake> {
    let mut list: Vec<Mistake> = Vec::new();
    for line in MISTAKES.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
        match (line.strip_prefix("  "), list.last_mut()) {
            (None, _) => {
                let (from, to) = line.split_once(" ->").unwrap();
                let text = |t: &str| t.replace("\\n", "\n");
                let to = text(to.strip_prefix(' ').unwrap_or(to));
                list.push(Mistake { from: text(from), to, message: String::new(), suggestion: None });
            }
            (Some(told), Some(mistake)) if mistake.message.is_empty() => mistake.message = told.to_owned(),
            (Some(told), Some(mistake)) => mistake.suggestion = Some(told.to_owned()),
            (Some(_), None) => panic!("{line}"),
        }
    }
    list
}

#[test]
fn every_mistake_gets_its_message_at_its_place() {
    assert!(read(BASE, &[]).is_ok());
    let list = mistakes();
    assert!(list.len() > 150);
    let mut wrong = String::new();
    for Mistake { from, to, message, suggestion } in &list {
        assert_eq!(BASE.matches(from.as_str()).count().min(1), 1, "{from}");
        let told = match read(&BASE.replacen(from, to, 1), &[]) {
            Ok(_) => "nothing".to_owned(),
            Err(e) => {
                e.to_string()
                    + &e.suggestion().map(|s| format!("\n  did you mean `{s}`?")).unwrap_or_default()
            }
        };
        let expected = message.clone() + &suggestion.as_ref().map(|s| format!("\n  {s}")).unwrap_or_default();
        if told != expected {
            wrong += &format!("{from} -> {to}\n  expected {expected}\n  got      {told}\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn a_message_shows_the_line_with_a_caret() {
    let error = read(&BASE.replace("buffer = 5", "bufer = 5"), &[]).unwrap_err();
    let expected = "\
error: unknown key `bufer` in `pools[0]`
 --> m.toml:7:1
  |
7 | bufer = 5
  | ^^^^^ not known here
  |
  = help: did you mean `buffer`?
  = help: allowed: `name`, `share`, `buffer`, `speed`, `slots`, `service`
";
    assert_eq!(error.render(false), expected);
    assert!(error.render(true).contains("\u{1b}["));
    assert_eq!(error.problem(), Problem::Key);
}

#[test]
fn a_message_about_two_places_shows_both() {
    let error = read(&BASE.replace("\"fast\"", "\"slow\""), &[]).unwrap_err();
    let expected = "\
error: two pools are named `slow`
  --> m.toml:11:8
   |
11 | name = \"slow\"
   |        ^^^^^^ each pool needs a name of its own
   |
note: the other one is here
  --> m.toml:5:8
   |
 5 | name = \"slow\"
   |        ^^^^^^
";
    assert_eq!(error.render(false), expected);
}

#[test]
fn a_message_about_an_override_shows_the_override() {
    let error = read(BASE, &["seed=1", "pools.fast.share=0.5"]).unwrap_err();
    assert_eq!(error.title(), "unknown key `seed`");
    let error = read(BASE, &["finite.seed=1", "pools.fast.share=0.5"]).unwrap_err();
    let expected = "\
error: the shares of the pools sum to 1.1
 |
 | --set pools.fast.share=0.5
 |                        ^^^ the shares must sum to 1
 |
 = help: now 0.5 (`fast`) + 0.6 (`slow`)
";
    assert_eq!(error.render(false), expected);
    assert_eq!(error.place().unwrap().source(), "--set");
}

/// The override, what is pointed at, and the message.
const OVERRIDES: [(&str, &str, &str); 19] = [
    ("finite.seed", "finite.seed", "an override has no `=`; must read KEY=VALUE"),
    ("finite.seed=", "", "an override has no value; must read KEY=VALUE; empty text is written \"\""),
    ("=3", "", "`` is not a dotted key; must be names or indices joined by dots, such as pools.0.share"),
    (
        "a b=3",
        "a b",
        "`a b` is not a dotted key; must be names or indices joined by dots, such as pools.0.share",
    ),
    (
        "finite.seed=1O",
        "1O",
        "`1O` is not a TOML value; must be a number, true or false, a word, \"quoted text\", [a list] or { a = table }",
    ),
    ("finite.sead=1", "sead", "unknown key `sead` in `finite`; not known here"),
    ("pools.2.share=1", "2", "there is no pool `2`; must be one of `fast`, `slow` or an index from 0 to 1"),
    (
        "pools.fats.share=1",
        "fats",
        "there is no pool `fats`; must be one of `fast`, `slow` or an index from 0 to 1",
    ),
    ("finite.sizes.5=1", "5", "`finite.sizes` has no entry `5`; must be an index from 0 to 1"),
    (
        "arrivals.rate.x=1",
        "x",
        "`arrivals.rate` is a number; there is nothing inside it to set; set `arrivals.rate` itself, or leave this part out",
    ),
    (
        "arrivals.rate=fast",
        "fast",
        "`fast` is not a formula of n: `fast` is not known; may name `n`, `pi`, and the functions `sqrt`, `ln`, `log2`, `log10`, `exp`, `abs`, `ceil`, `floor`, `round`, `min`, `max`",
    ),
    ("pools.fast.buffer=0", "0", "`buffer` of pool `fast` is 0; must be a whole number from 1 to 1000000000"),
    ("pools.fast.name=slow", "slow", "two pools are named `slow`; each pool needs a name of its own"),
    ("policy=jsq-d", "jsq-d", "`policy.jsq-d` lacks `d`; needs `d`"),
    ("policy.jsq-d.skip_full=3", "3", "`policy.jsq-d.skip_full` is a number; must be true or false"),
    (
        "finite.horizon=10",
        "10",
        "`finite.warmup` is 10 and the horizon 10; the warm-up must end before the horizon",
    ),
    (
        "fluid.initial.tails.fast=[1]",
        "1",
        "a tail of pool `fast` is 1, more than the pool's share; must be from 0 to the pool's share, 0.4",
    ),
    (
        "expect.\"x.fast.9\"={value=1,tolerance=1,source=\"s\"}",
        "\"x.fast.9\"",
        "pool `fast` has no level 9; its buffer has 5",
    ),
    ("format=2", "2", "this version of the format is not known; must be 1, or left out"),
];

#[test]
fn mistakes_in_overrides_are_told_like_those_in_the_file() {
    for (set, at, message) in OVERRIDES {
        let error = read(BASE, &[set]).unwrap_err();
        assert_eq!(error.to_string(), format!("--set {set}: {message}"));
        assert_eq!(error.place().unwrap().text(), at, "{set}");
    }
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let told = |path: &Path| {
        let error = load(&Source::from(path), &[]).unwrap_err();
        assert_eq!(error.problem(), Problem::Read);
        assert!(error.render(false).contains(&*path.to_string_lossy()));
        error.title().to_owned()
    };
    assert_eq!(told(&dir.path().join("none.toml")), "there is no such file");
    assert_eq!(told(dir.path()), "this is a directory, not a model file");
    assert_eq!(told(&file("empty.toml", b"")), "the file is empty");
    assert_eq!(told(&file("blank.toml", b"\xef\xbb\xbf\n \n")), "the file is empty");
    let large = vec![b'#'; (16 << 20) + 1];
    assert_eq!(
        told(&file("large.toml", &large)),
        "the file is larger than 16 MB, too large for a model file"
    );
    let latin = file("latin.toml", b"# ok\nname = \"caf\xe9\"\n");
    assert_eq!(told(&latin), "the file is not UTF-8 text");
    let place = load(&Source::Path(latin), &[]).unwrap_err();
    assert_eq!(place.place().map(|p| (p.line(), p.column())), Some((2, 12)));
}

#[cfg(unix)]
#[test]
fn a_file_without_permission_says_so() {
    use std::os::unix::fs::PermissionsExt;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o000)).unwrap();
    // The administrator may read everything: then there is nothing to see.
    if std::fs::File::open(file.path()).is_err() {
        let error = load(&Source::from(file.path()), &[]).unwrap_err();
        assert_eq!(error.title(), "there is no permission to read this file");
    }
}

#[test]
fn long_lines_and_many_pools_do_not_flood_the_terminal() {
    let long = BASE.replace("seed = 7", &format!("seed = [{}]", "7, ".repeat(100_000)));
    let rendered = read(&long, &[]).unwrap_err().render(false);
    assert!(rendered.len() < 500 && rendered.contains("m.toml:24:8"), "{rendered}");
    let pools = "{},".repeat(100_001);
    let text = format!("policy = \"pull\"\narrivals.rate = 1\npools = [{pools}]\n");
    let error = read(&text, &[]).unwrap_err();
    assert_eq!(error.to_string(), "m.toml:3:9: there are 100001 pools; must be at most 100000");
    let key = format!("{} = 1\n{BASE}", "k".repeat(300));
    assert!(read(&key, &[]).unwrap_err().title().len() < 90);
}

#[test]
fn the_name_of_a_file_may_hold_anything() {
    let source = Source::Path(PathBuf::from("no\nsuch\u{1b}[31m.toml"));
    let rendered = load(&source, &[]).unwrap_err().render(false);
    assert!(
        !rendered.contains('\u{1b}') && rendered.starts_with("error: there is no such file\n"),
        "{rendered}"
    );
}

/// Equal routers take any service but several slots; unequal ones exponential service at one speed.
#[test]
fn unequal_routers_need_plain_service() {
    let base = BASE.replacen("policy.jsq-d.d = 2", "policy.pull.routers = 2", 1);
    assert!(read(&base, &[]).is_ok());
    for change in
        ["pools.fast.speed=[1, 2]", "pools.fast.speed=[2]", "pools.fast.service.erlang={stages=2,rate=1}"]
    {
        assert!(read(&base, &[change]).is_ok(), "{change}");
        let unequal = base.replacen("= 2", "= [0.6, 0.4]", 1);
        let told = read(&unequal, &[change]).unwrap_err().to_string();
        assert!(told.starts_with("m.toml:1:23: unequal routers"), "{change}: {told}");
        assert!(read(&unequal, &[change, "policy.pull.messages=[0.6, 0.4]"]).is_ok(), "{change}");
        let told = read(&base, &[change, "fluid.messages=[1, 0]"]).unwrap_err().to_string();
        assert!(told.contains("routers that start unequal"), "{change}: {told}");
        assert!(read(&base, &[change, "fluid.messages=[0.5, 0.5]"]).is_ok(), "{change}");
    }
    let told = read(&base, &["pools.fast.slots=2"]).unwrap_err().to_string();
    assert!(told.starts_with("m.toml:1:23: several routers with several slots"), "{told}");
}
