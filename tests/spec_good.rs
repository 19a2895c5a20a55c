//! Does a good model file become the system that it describes?

use std::path::{Path, PathBuf};

use fluidlimit::model::{Fallback, Initial, LevelSet, Message, Policy, Routers, Tiers};
use fluidlimit::spec::{FiniteSettings, FluidSettings, Source, System, load};

const BASE: &str = include_str!("spec/base.toml");
const SMALL: &str = "policy = \"pull\"\narrivals.rate = 1\n[[pools]]\nname = \"a\"\nshare = 1\nservice.exponential.rate = 2\n";

fn read(text: &str, overrides: &[&str]) -> System {
    let source = Source::Text { name: "dir/m.toml".into(), text: text.into() };
    load(&source, &overrides.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
}

fn policy(line: &str) -> Policy {
    read(&BASE.replace("policy.jsq-d.d = 2", line), &[]).model.policy
}

fn shipped() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let families = std::fs::read_dir(root).unwrap().map(|f| f.unwrap().path());
    let mut files: Vec<PathBuf> =
        families.flat_map(|f| std::fs::read_dir(f).unwrap().map(|m| m.unwrap().path())).collect();
    // Data files stand beside the models that read them.
    files.retain(|f| f.extension().is_some_and(|e| e == "toml"));
    files.sort();
    files
}

#[test]
fn every_shipped_model_loads_and_says_what_it_is() {
    let files = shipped();
    assert!(files.len() >= 18);
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().take(3).collect();
        assert!(
            lines[0].starts_with("# ") && lines[1].starts_with("# Shows ") && lines[2].is_empty(),
            "{path:?}"
        );
        let system = load(&Source::from(path.as_path()), &[]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(Some(system.model.name.as_str()), path.file_stem().and_then(|s| s.to_str()));
        assert!(!system.model.description.is_empty() && !system.expect.is_empty(), "{path:?}");
        // A few seconds of simulation at the most: an arrival and a departure are an event each.
        let servers: u64 = system.finite.sizes.iter().sum();
        #[allow(clippy::cast_precision_loss)]
        let events = 2.0
            * system.model.arrival_rate
            * servers as f64
            * system.finite.horizon
            * f64::from(system.finite.replications);
        assert!(events < 2e7, "{path:?}: {events}");
    }
}

#[test]
fn routers_are_a_number_or_a_list_of_shares() {
    assert_eq!(policy("policy.pull.routers = 1"), Policy::pull());
    assert_eq!(policy("policy.pull.routers = [1]"), Policy::pull());
    assert_eq!(policy("policy.pull.routers = 3"), Policy::pull_by(Routers::equal(3)));
    let routers = policy("policy.pull = { routers = [0.6, 0.2, 0.2] }").routers.unwrap();
    assert_eq!(routers, Routers::with_streams(vec![0.6, 0.2, 0.2]));
    let line = "policy.pull = { routers = [0.75, 0.25], messages = [1, 0], message = \"keep\" }";
    let routers = policy(line).routers.unwrap();
    assert_eq!((routers.messages, routers.message), (vec![1.0, 0.0], Message::Keep));
    let system =
        read(SMALL, &["policy.pull.routers=2", "fluid.messages=[1.0, 0.0]", "fluid.initial.level=0"]);
    let start = Initial::Messages { tails: vec![vec![]], idle: vec![vec![1.0, 0.0]] };
    assert_eq!(system.fluid.initial, start);
}

#[test]
fn what_is_left_out_has_its_default() {
    let system = read(SMALL, &[]);
    assert_eq!(
        system.fluid,
        FluidSettings { initial: Initial::Idle, horizon: 50.0, tolerance: 1e-10, points: 200 }
    );
    let finite = FiniteSettings {
        sizes: vec![100, 1000, 10_000],
        replications: 32,
        horizon: 200.0,
        warmup: None,
        seed: 1,
    };
    assert_eq!(system.finite, finite);
    assert_eq!((system.model.name.as_str(), system.model.description.as_str()), ("m", ""));
    assert_eq!(system.model.pools[0].buffer, None);
    assert_eq!(system.expect, []);
}

#[test]
fn what_is_given_is_kept() {
    let system = read(BASE, &[]);
    let pools = &system.model.pools;
    assert_eq!((pools[0].share, pools[1].share, pools[0].buffer), (0.4, 0.6, Some(5)));
    assert!((pools[1].service_rate() - 1.0 / 3.0).abs() < 1e-16);
    assert_eq!((system.fluid.horizon, system.fluid.tolerance), (40.0, 1e-9));
    assert_eq!((system.finite.sizes.as_slice(), system.finite.warmup), ([10, 100].as_slice(), Some(10.0)));
    assert_eq!(system.expect[0].source, "closed form: below capacity");
    assert_eq!(read(BASE, &["finite.seed=18446744073709551615"]).finite.seed, u64::MAX);
    assert_eq!(read(BASE, &["arrivals.rate=-0.0"]).model.arrival_rate.to_bits(), 0);
}

#[test]
fn policies_get_their_parameters() {
    assert_eq!(policy("policy = \"random\""), Policy::random());
    assert_eq!(policy("policy.pull.routers = 1"), Policy::pull());
    assert_eq!(policy("policy.pull = {}"), Policy::pull());
    assert_eq!(policy("policy = \"jiq\""), Policy::jiq(1));
    assert_eq!(policy("policy.jiq.fallback_d = 2"), Policy::jiq(2));
    assert_eq!(policy("policy = \"i1f\""), Policy::i1f());
    assert_eq!(policy("policy = \"jsq\"").tiers, Tiers::EveryLevel);
    assert_eq!(policy("policy.threshold.level = 3"), Policy::threshold(3));
    let fallback = Fallback { d: 3, replacement: false, skip_full: true };
    assert_eq!(policy("policy.jsq-d = { d = 3, replacement = false, skip_full = true }").fallback, fallback);
    let levels = [LevelSet { from: 0, to: 1 }, LevelSet { from: 2, to: 2 }];
    assert_eq!(policy("policy.tiers = { tiers = [[0, 1], [2]], fallback_d = 2 }"), Policy::tiers(&levels, 2));
}

#[test]
fn fastest_idle_first_puts_equal_pools_together() {
    let text = "policy = \"fastest-idle-first\"\narrivals.rate = 1\n";
    let pool = |name: &str, law: &str| {
        format!("[[pools]]\nname = \"{name}\"\nshare = 0.25\nservice.exponential.{law}\n")
    };
    let pools = [
        pool("a", "rate = 0.333333333333333"),
        pool("b", "rate = 2"),
        pool("c", "mean = 3"),
        pool("d", "rate = 1"),
    ];
    let groups = vec![vec![1], vec![3], vec![2, 0]];
    let Tiers::List(tiers) = read(&(text.to_owned() + &pools.concat()), &[]).model.policy.tiers else {
        panic!("a list of tiers")
    };
    let found: Vec<Vec<usize>> = tiers.iter().map(|t| t.pools.clone().unwrap()).collect();
    assert_eq!(found, groups);
}

#[test]
fn shares_are_kept_or_mended() {
    let thirds = |share: &str| {
        let pool =
            |name| format!("[[pools]]\nname = \"{name}\"\nshare = {share}\nservice.exponential.rate = 1\n");
        let text = format!("policy = \"pull\"\narrivals.rate = 1\n{}{}{}", pool("a"), pool("b"), pool("c"));
        read(&text, &[]).model.pools.iter().map(|p| p.share).collect::<Vec<_>>()
    };
    assert_eq!(thirds("0.3333333333333"), [0.333_333_333_333_3; 3], "within 1e-12: as given");
    assert_eq!(thirds("0.333333333"), [1.0 / 3.0; 3], "within 1e-9: divided by the sum");
}

#[test]
fn initial_states_are_read() {
    assert_eq!(read(BASE, &["fluid.initial=idle"]).fluid.initial, Initial::Idle);
    assert_eq!(read(BASE, &["fluid.initial.level=3"]).fluid.initial, Initial::Level(3));
    let tails = read(BASE, &["fluid.initial.tails.slow=[0.6, 0.5, 0.5]"]).fluid.initial;
    assert_eq!(tails, Initial::Tails(vec![vec![], vec![0.6, 0.5, 0.5]]));
}

#[test]
fn names_of_expected_results_are_accepted() {
    for name in ["x.slow.40", "growth.slow", "p_busy", "event.2.time", "relaxation_time", "spectral_abscissa"]
    {
        let system = read(&BASE.replace("p_block", &format!("\"{name}\"")), &[]);
        assert_eq!(system.expect[0].name, name);
    }
}

#[test]
fn overrides_change_what_they_name() {
    let first = |set: &[&str]| read(BASE, set).model.pools[0].clone();
    assert_eq!(first(&["pools.0.share=0.3", "pools.slow.share=0.7"]).share, 0.3);
    assert_eq!(first(&["pools.fast.buffer=7"]).buffer, Some(7));
    assert_eq!(first(&["pools.fast.service.exponential.rate=3"]).service_rate(), 3.0);
    assert_eq!(first(&["pools.fast.service.exponential.mean=4"]).service_rate(), 0.25, "mean replaces rate");
    assert_eq!(read(BASE, &["policy=jsq"]).model.policy, Policy::jsq());
    assert_eq!(read(SMALL, &["policy.jsq-d.d=3"]).model.policy, Policy::jsq_d(3, true, false));
    let set = ["policy.jsq-d.skip_full=true", " policy.jsq-d.d = 4 "];
    assert_eq!(read(BASE, &set).model.policy, Policy::jsq_d(4, true, true), "the same policy keeps the rest");
    assert_eq!(read(BASE, &["arrivals.rate=0.5", "arrivals.rate=0.25"]).model.arrival_rate, 0.25);
    assert_eq!(read(BASE, &["finite.sizes=[10,20]", "finite.sizes.1=30"]).finite.sizes, [10, 30]);
    assert_eq!(read(BASE, &["name=\"two words\""]).model.name, "two words");
    assert_eq!(
        read(SMALL, &["fluid.horizon=9", "fluid.points=2"]).fluid.horizon,
        9.0,
        "a table that was not there"
    );
    let expect =
        read(BASE, &["expect.p_block.value=1", "expect.\"x.fast.1\"={value=1,tolerance=1,source=\"s\"}"])
            .expect;
    assert_eq!(expect.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(), ["p_block", "x.fast.1"]);
}

#[test]
fn the_hash_sees_values_and_nothing_else() {
    let hash = read(SMALL, &[]).hash;
    assert!(hash.len() == 16 && hash.chars().all(|c| c.is_ascii_hexdigit()));
    let same = "# a comment\npools = [{ service = { exponential = { rate = 2.0 } }, share = 1e0, name = 'a' }]\r\n\r\n[arrivals]\r\nrate = 1.0 # here\r\n[policy.pull]\r\n";
    assert_eq!(read(same, &[]).hash, hash, "layout, order of keys, comments, notation");
    assert_eq!(
        read(&SMALL.replace("rate = 2", "rate = 5"), &["pools.a.service.exponential.rate=2"]).hash,
        hash
    );
    for other in ["arrivals.rate=1.0000000000000002", "pools.0.name=b", "policy=random", "finite.seed=2"] {
        assert_ne!(read(SMALL, &[other]).hash, hash, "{other}");
    }
}

#[test]
fn a_model_may_come_from_standard_input() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    if std::env::var_os("READ_STANDARD_INPUT").is_some() {
        let system = load(&Source::from(Path::new("-")), &[]).unwrap();
        assert_eq!((system.model.name.as_str(), system.model.arrival_rate), ("model", 1.0));
        return;
    }
    // This test again, as a process of its own that has a standard input.
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_model_may_come_from_standard_input"])
        .env("READ_STANDARD_INPUT", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(SMALL.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn formulas_are_taken_at_n() {
    let text = r#"
        policy.jsq-d.d = "ceil(n^0.3 * ln(n)^2)"
        arrivals.rate = "1 - n^-0.3"
        [[pools]]
        name = "all"
        share = 1.0
        buffer = "2 + floor(log10(n))"
        service.exponential.rate = 1.0
        [finite]
        sizes = [100, 1_000]
    "#;
    let source = Source::Text { name: "m.toml".into(), text: text.into() };
    let at = |n| fluidlimit::spec::load_at(&source, &[], n).unwrap();
    for (n, taken_at, d, buffer) in
        [(Some(100), 100, 85, 4), (None, 1000, 380, 5), (Some(1000), 1000, 380, 5)]
    {
        let system = at(n);
        assert_eq!(system.taken_at, Some(taken_at));
        assert_eq!(system.model.policy.fallback.d, d);
        assert_eq!(system.model.pools[0].buffer, Some(buffer));
        let rate = 1.0 - (taken_at as f64).powf(-0.3);
        assert!((system.model.arrival_rate - rate).abs() < 1e-15);
        // One model, whatever n.
        assert_eq!(system.hash, at(Some(5)).hash);
    }
}
