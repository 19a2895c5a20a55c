//! Does each figure hold the numbers it was given, under names a reader understands, and nothing else?

mod common;

use common::model;
use fluidlimit::finite::{self, Settings, Summary};
use fluidlimit::fluid::{Event, EventKind, FixedPoint, Path, Plan, fixed_point, integrate};
use fluidlimit::model::{Initial, LevelSet, Levels, Model, Policy, Tier, Tiers, Top};
use fluidlimit::output::figures::{FigureError, TailChoice, convergence, default_tails, levels, trajectory};
use fluidlimit::output::plot::{Figure, Fill, Guide, Panel, Point, Scale, Series, write};
use fluidlimit::run::{Convergence, Curve, Pair, Slope};
use fluidlimit::spec::{self, Source};
use std::fs;

const HORIZON: f64 = 20.0;

fn times() -> Vec<f64> {
    (0..=40).map(|i| 0.5 * f64::from(i)).collect()
}

/// Both answers of the fluid limit, from idle.
fn fluid(model: &Model) -> (Path, FixedPoint) {
    let plan = Plan { initial: Initial::Idle, times: times(), tolerance: 1e-8, cut: Top::Reflecting };
    (integrate(model, &plan).unwrap(), fixed_point(model).unwrap())
}

fn settings(n: u64, replications: u32) -> Settings {
    Settings {
        n,
        replications,
        horizon: HORIZON,
        warmup: 10.0,
        seed: 7,
        initial: Initial::Idle,
        sample_times: times(),
        levels: 200,
        paths: replications,
    }
}

fn runs(model: &Model, replications: u32) -> Vec<Summary> {
    [20, 100].map(|n| finite::simulate(model, &settings(n, replications), &()).unwrap()).into()
}

fn two_pools() -> Model {
    model(1.0, &[(0.5, 2.0, None), (0.5, 1.0 / 3.0, None)], Policy::pull())
}

/// Its second pool grows for ever, its first one settles.
fn unstable() -> Model {
    model(1.0, &[(0.5, 2.0, None), (0.5, 1.0 / 3.0, None)], Policy::jsq_d(2, true, false))
}

fn one_pool() -> Model {
    model(0.9, &[(1.0, 1.0, Some(5))], Policy::jsq_d(2, true, false))
}

fn many_pools() -> Model {
    let pools: Vec<_> = (1..=6).map(|i| (1.0 / 6.0, f64::from(i), Some(4))).collect();
    model(1.0, &pools, Policy::pull())
}

fn labels(panel: &Panel) -> Vec<&str> {
    panel.series.iter().map(|s| s.label.as_str()).filter(|label| !label.is_empty()).collect()
}

fn named<'p>(panel: &'p Panel, label: &str) -> &'p Series {
    panel.series.iter().find(|s| s.label == label).unwrap_or_else(|| panic!("{label}: {:?}", labels(panel)))
}

fn horizontals(panel: &Panel) -> Vec<f64> {
    let y = |guide: &Guide| if let Guide::Horizontal { y, .. } = guide { Some(*y) } else { None };
    panel.guides.iter().filter_map(y).collect()
}

fn intervals(figure: &Figure) -> usize {
    let points = figure.panels.iter().flat_map(|p| &p.series).flat_map(|s| &s.points);
    points.filter(|p| p.half_width.is_some()).count()
}

fn svg(figure: &Figure) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figure.svg");
    write(figure, &path).unwrap();
    fs::read_to_string(path).unwrap()
}

/// The text of an SVG file, one line for each label, scripts written on the line.
fn text(svg: &str) -> String {
    let document = roxmltree::Document::parse(svg).unwrap();
    let of = |node: roxmltree::Node| {
        let parts: String = node.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).collect();
        parts.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let lines = document.descendants().filter(|n| ["text", "title", "desc"].contains(&n.tag_name().name()));
    lines.map(of).collect::<Vec<_>>().join("\n")
}

fn fraction(tails: &[f64], k: usize, share: f64) -> f64 {
    let tail = |k: usize| if k == 0 { share } else { tails.get(k - 1).copied().unwrap_or(0.0) };
    (tail(k) - tail(k + 1)) / share
}

fn pairs<'a>(path: &'a Path, fixed: &'a FixedPoint, runs: &'a [Summary]) -> Vec<Pair<'a>> {
    runs.iter().map(|run| Pair { path, fixed, run }).collect()
}

#[test]
fn tails_that_do_not_exist_are_refused() {
    let model = one_pool();
    let (path, fixed) = fluid(&model);
    for (pool, level) in [(0, 0), (1, 1), (usize::MAX, usize::MAX)] {
        let error = trajectory(&model, &path, Some(&fixed), &[], &[TailChoice { pool, level }]).unwrap_err();
        assert_eq!(error, FigureError::NoTail { pool, level, pools: 1 });
    }
    // A level that no server reaches is a tail all the same, and zero.
    let high = TailChoice { pool: 0, level: usize::MAX };
    let figure = trajectory(&model, &path, Some(&fixed), &[], &[high]).unwrap();
    assert!(figure.panels[0].series[0].points.iter().all(|p| p.y == 0.0));
    assert!(trajectory(&model, &path, Some(&fixed), &[], &[]).is_ok());
}

#[test]
fn results_of_another_model_are_refused() {
    let (one, two) = (one_pool(), two_pools());
    let ((path, fixed), (other_path, other_fixed)) = (fluid(&two), fluid(&one));
    let (finite, other_finite) = (runs(&two, 1), runs(&one, 1));
    let wrong = FigureError::OtherModel { found: 1, pools: 2 };
    let tails = default_tails(&two, &other_path);
    for (path, fixed, runs) in
        [(&other_path, &fixed, &finite), (&path, &other_fixed, &finite), (&path, &fixed, &other_finite)]
    {
        assert_eq!(trajectory(&two, path, Some(fixed), runs, &tails).unwrap_err(), wrong);
        assert_eq!(levels(&two, path, fixed, runs).unwrap_err(), wrong);
    }
}

#[test]
fn trajectories_hold_the_path_the_runs_and_the_fixed_point() {
    let model = two_pools();
    let (path, fixed) = fluid(&model);
    let runs = runs(&model, 3);
    let figure = trajectory(&model, &path, Some(&fixed), &runs, &default_tails(&model, &path)).unwrap();
    assert_eq!(figure.panels.len(), 2);
    for (panel, run) in figure.panels.iter().zip(&runs) {
        assert_eq!(panel.title, format!("n = {}", run.n));
        assert_eq!(labels(panel), ["x_{1} of p1", "x_{1} of p2"]);
        for (j, name) in labels(panel).iter().enumerate() {
            let points = path.snapshots.iter().map(|s| Point::new(s.time, s.tails[j][0]));
            assert_eq!(named(panel, name).points, points.collect::<Vec<_>>());
        }
        let thin: Vec<&Series> = panel.series.iter().filter(|s| s.label.is_empty()).collect();
        assert_eq!(thin.len(), 2 * run.paths.len());
        let tail = |t: usize| run.paths[2].tails[t][1].first().copied().unwrap_or(0.0);
        let points = (0..41).map(|t| Point::new(run.transient[t].time, tail(t)));
        assert_eq!(thin[5].points, points.collect::<Vec<_>>());
        assert_eq!(horizontals(panel), [fixed.tails[0][0], fixed.tails[1][0]]);
    }
    assert_eq!(intervals(&figure), 0);
    let text = text(&svg(&figure));
    for label in ["x1 of p1", "x1 of p2", "n = 20", "n = 100", "time t", "fixed point"] {
        assert!(text.contains(label), "{label} not in {text}");
    }
}

#[test]
fn a_growing_pool_takes_away_only_its_own_guides() {
    let model = unstable();
    let (path, fixed) = fluid(&model);
    assert!(fixed.growth[0].is_none() && fixed.growth[1].is_some());
    let tails = [(0, 1), (1, 1), (0, 2), (1, 2)].map(|(pool, level)| TailChoice { pool, level });
    let figure = trajectory(&model, &path, Some(&fixed), &[], &tails).unwrap();
    assert_eq!(horizontals(&figure.panels[0]), [fixed.tails[0][0], fixed.tails[0][1]]);
}

#[test]
fn a_single_pool_needs_no_name_and_many_pools_are_counted() {
    let model = one_pool();
    let (path, fixed) = fluid(&model);
    let figure = trajectory(&model, &path, Some(&fixed), &[], &default_tails(&model, &path)).unwrap();
    assert_eq!(labels(&figure.panels[0]), ["x_{1}", "x_{2}", "x_{3}"]);
    let figure = levels(&model, &path, &fixed, &runs(&model, 2)).unwrap();
    assert_eq!((figure.panels.len(), figure.panels[0].title.as_str()), (1, ""));

    let model = many_pools();
    let (path, fixed) = fluid(&model);
    let tails = default_tails(&model, &path);
    let figure = trajectory(&model, &path, Some(&fixed), &[], &tails).unwrap();
    assert_eq!(labels(&figure.panels[0])[..4], [1, 2, 3, 4].map(|j| format!("x_{{1}} of p{j}")));
    let figure = levels(&model, &path, &fixed, &runs(&model, 2)).unwrap();
    let titles: Vec<&str> = figure.panels.iter().map(|p| p.title.as_str()).collect();
    assert_eq!(titles, ["p1", "p2", "p3"]);
    assert!(figure.subtitle.contains("and 2 more pools"), "{}", figure.subtitle);
    assert!(figure.subtitle.contains("the first 3 of 6 pools"), "{}", figure.subtitle);
    svg(&figure);
}

#[test]
fn levels_hold_the_fractions_and_their_intervals() {
    let model = one_pool();
    let (path, fixed) = fluid(&model);
    let runs = runs(&model, 3);
    let figure = levels(&model, &path, &fixed, &runs).unwrap();
    assert!(figure.title.ends_with("in the long run") && figure.description.contains("95 %"));
    let panel = &figure.panels[0];
    assert_eq!(labels(panel), ["fluid, n = ∞", "n = 20", "n = 100"]);
    assert_eq!(panel.y.scale, Scale::Log);
    let points = &named(panel, "fluid, n = ∞").points;
    assert_eq!(points.len(), 6);
    for (k, point) in points.iter().enumerate() {
        assert_eq!(point.x, k as f64);
        common::close(point.y, fraction(&fixed.tails[0], k, 1.0), 1e-15, "fluid");
    }
    for run in &runs {
        let points = &named(panel, &format!("n = {}", run.n)).points;
        let given: Vec<_> = run.levels[0].iter().filter(|v| v.value >= 1e-6).collect();
        assert_eq!(points.len(), given.len());
        for (point, value) in points.iter().zip(given) {
            assert_eq!((point.y, point.half_width), (value.value, value.half_width));
        }
    }
}

#[test]
fn a_growing_pool_is_compared_at_one_time() {
    let model = unstable();
    let (path, fixed) = fluid(&model);
    // Their last common sample is older than the horizon.
    let mut runs = runs(&model, 3);
    runs[1].transient.truncate(31);
    let figure = levels(&model, &path, &fixed, &runs).unwrap();
    assert!(!figure.title.contains("long run"), "{}", figure.title);
    assert_eq!(figure.panels[0].title, "p1: in the long run");
    assert_eq!(figure.panels[1].title, "p2: grows; at t = 15");
    let settled = &named(&figure.panels[0], "n = 100").points;
    assert_eq!(settled[0].y, runs[1].levels[0][0].value);
    let fluid = &named(&figure.panels[1], "fluid, n = ∞").points;
    assert!(!fluid.is_empty());
    for point in fluid {
        common::close(point.y, fraction(&path.snapshots[30].tails[1], point.x as usize, 0.5), 1e-15, "fluid");
    }
    for run in &runs {
        let points = &named(&figure.panels[1], &format!("n = {}", run.n)).points;
        assert!((points.iter().map(|p| p.y).sum::<f64>() - 1.0).abs() < 1e-9);
        for point in points {
            let k = point.x as usize;
            let single = run.paths.iter().map(|p| fraction(&p.tails[30][1], k, 0.5));
            let expected = finite::interval(single).unwrap();
            common::close(point.y, expected.value, 1e-12, "mean");
            common::close(point.half_width.unwrap(), expected.half_width.unwrap(), 1e-12, "interval");
        }
    }
}

#[test]
fn a_growing_pool_gets_no_interval_and_no_point_that_is_not_known() {
    let model = unstable();
    let (path, fixed) = fluid(&model);
    // Replications that were not kept say nothing about the spread.
    let mut runs = runs(&model, 3);
    runs.iter_mut().for_each(|run| run.paths.truncate(2));
    let figure = levels(&model, &path, &fixed, &runs).unwrap();
    let grown = &named(&figure.panels[1], "n = 20").points;
    assert!(!grown.is_empty() && grown.iter().all(|p| p.half_width.is_none()));
    // Without samples only the fluid is left, at its own horizon.
    runs.iter_mut().for_each(|run| run.transient.clear());
    let figure = levels(&model, &path, &fixed, &runs).unwrap();
    assert_eq!(labels(&figure.panels[1]), ["fluid, n = ∞"]);
    assert!(figure.panels[1].title.contains("at t = 20"), "{}", figure.panels[1].title);
    let empty = Path { snapshots: vec![], ..path };
    assert!(levels(&model, &empty, &fixed, &runs).is_ok());
}

#[test]
fn all_of_the_mass_on_one_high_level_is_seen() {
    let model = model(30.0, &[(1.0, 1.0, Some(300))], Policy::pull());
    let (path, mut fixed) = fluid(&model);
    let full = |panel: &Panel| *named(panel, "fluid, n = ∞").points.last().unwrap();
    let figure = levels(&model, &path, &fixed, &[]).unwrap();
    assert_eq!(figure.panels[0].y.scale, Scale::Log);
    assert!(full(&figure.panels[0]).x == 300.0 && full(&figure.panels[0]).y > 0.9);
    fixed.tails[0] = vec![1.0; 300];
    let figure = levels(&model, &path, &fixed, &[]).unwrap();
    assert_eq!(figure.panels[0].y.scale, Scale::Linear);
    assert_eq!(
        named(&figure.panels[0], "fluid, n = ∞").points,
        [Point::new(299.0, 0.0), Point::new(300.0, 1.0)]
    );
    svg(&figure);
}

#[test]
fn long_tails_keep_their_end() {
    let model = model(0.95, &[(1.0, 1.0, None)], Policy::random());
    let (path, fixed) = fluid(&model);
    let run = finite::simulate(&model, &Settings { horizon: 200.0, ..settings(500, 2) }, &()).unwrap();
    let highest = run.levels[0].iter().rposition(|v| v.value >= 1e-6).unwrap();
    let figure = levels(&model, &path, &fixed, &[run]).unwrap();
    let points = &named(&figure.panels[0], "fluid, n = ∞").points;
    assert!(points.len() > 200 && points.len() > highest);
    let last = points.last().unwrap();
    common::close(last.y, 0.05 * 0.95f64.powf(last.x), 1e-10, "the end of the tail");
    assert!(last.y < 1.1e-6);
    assert!(named(&figure.panels[0], "n = 500").points.len() <= 61);
}

fn curve(name: &str, points: &[(u64, f64, f64)]) -> Curve {
    Curve { name: name.into(), fluid: 0.0, points: points.to_vec(), slope: Slope::fit(points) }
}

#[test]
fn errors_are_called_by_words() {
    let falling = [(100, 0.1, 0.01), (10_000, 0.001, 0.0001)];
    let names = ["p_wait", "p_block", "mean_jobs", "x.p1.1", "x.a.b.12"];
    let bias = names.map(|name| curve(name, &falling)).into();
    let errors = Convergence { path: curve("largest path deviation", &falling), bias };
    let figure = convergence(&errors, &two_pools());
    let expected =
        ["P(wait)", "P(block)", "mean jobs per server", "x_{1} of p1", "x_{12} of a.b"].map(String::from);
    let plain: Vec<&str> = labels(&figure.panels[1]).iter().map(|l| l.split(':').next().unwrap()).collect();
    assert_eq!(plain, expected);
    assert_eq!(labels(&convergence(&errors, &one_pool()).panels[1])[3].split(':').next(), Some("x_{1}"));
    let text = text(&svg(&figure));
    for name in names {
        assert!(!text.contains(name), "{name} in {text}");
    }
    for label in ["P(wait): slope", "mean jobs per server: slope", "x1 of p1: slope", "slope −1/2"] {
        assert!(text.contains(label), "{label} not in {text}");
    }
}

#[test]
fn errors_keep_their_values_and_intervals() {
    let (clear, hidden) = ((100, -0.1, 0.02), (1000, 0.01, 0.05));
    let bias = vec![curve("p_wait", &[clear, hidden, (10_000, 0.0, 0.0)])];
    let errors = Convergence { path: curve("largest path deviation", &[clear, hidden]), bias };
    let figure = convergence(&errors, &two_pools());
    for (panel, name) in figure.panels.iter().zip(["largest path deviation", "P(wait)"]) {
        assert_eq!(named(panel, name).points, [Point::measured(100.0, 0.1, 0.02)]);
        // What does not stand out from its interval is told apart.
        let open: Vec<&Series> = panel
            .series
            .iter()
            .filter(|s| s.look.marker.is_some_and(|m| m.fill == Fill::Open) && !s.points.is_empty())
            .collect();
        assert_eq!(open.len(), 1);
        assert_eq!(open[0].points, [Point::measured(1000.0, 0.01, 0.05)]);
    }
    assert!(figure.description.contains("95 %"));
}

#[test]
fn one_replication_has_no_interval() {
    let model = two_pools();
    let (path, fixed) = fluid(&model);
    let single = runs(&model, 1);
    let errors = Convergence::new(&model, &pairs(&path, &fixed, &single));
    assert!(errors.path.points.iter().all(|p| p.1 > 0.0 && p.2 == f64::INFINITY), "{:?}", errors.path);
    for figure in [convergence(&errors, &model), levels(&model, &path, &fixed, &single).unwrap()] {
        assert_eq!(intervals(&figure), 0);
        assert!(!figure.description.contains("95 %"), "{}", figure.description);
        assert!(!text(&svg(&figure)).contains('±'));
    }
    let several = runs(&model, 3);
    let errors = Convergence::new(&model, &pairs(&path, &fixed, &several));
    assert!(errors.path.points.iter().all(|p| p.2 > 0.0 && p.2.is_finite()));
    let figure = convergence(&errors, &model);
    let deviations: Vec<&Point> = figure.panels[0].series.iter().flat_map(|s| &s.points).collect();
    assert_eq!(deviations.len(), 2);
    assert!(deviations.iter().all(|p| p.half_width.is_some()));
    // Zero is an interval that cannot be drawn, and no claim.
    let exact = Convergence { path: curve("largest path deviation", &[(9, 0.1, 0.0)]), bias: vec![] };
    assert_eq!(intervals(&convergence(&exact, &model)), 0);
}

#[test]
fn events_say_what_they_mean_for_the_servers() {
    let pools = [(0.3, 2.0, None), (0.3, 1.0, Some(2)), (0.4, 1.0, None)];
    let told = |policy: Policy, tier: usize| {
        let model = model(0.5, &pools, policy);
        let (mut path, _) = fluid(&model);
        let event = |kind| Event { time: 1.0, kind, tier, router: None };
        path.events = vec![event(EventKind::Hit), event(EventKind::Leave)];
        let figure = trajectory(&model, &path, None, &[], &default_tails(&model, &path)).unwrap();
        let label =
            |g: &Guide| if let Guide::Vertical { label, .. } = g { Some(label.clone()) } else { None };
        figure.panels[0].guides.iter().filter_map(label).collect::<Vec<_>>()
    };
    let level = |from, to| LevelSet { from, to };
    let idle = ["no idle server left", "idle servers again"];
    assert_eq!(told(Policy::pull(), 1), idle);
    assert_eq!(told(Policy::jsq(), 1), idle);
    assert_eq!(told(Policy::jsq(), 2), ["no server with ≤ 1 job", "again servers with ≤ 1 job"]);
    // Servers of the second pool are full at two jobs.
    assert_eq!(told(Policy::jsq(), 3)[0], "no server with room and ≤ 2 jobs");
    assert_eq!(told(Policy::i1f(), 2)[0], "no server with ≤ 1 job");
    assert_eq!(told(Policy::threshold(2), 1)[1], "again servers with ≤ 1 job");
    assert_eq!(told(Policy::tiers(&[level(0, 0), level(1, 3)], 1), 2)[0], "no server with room and ≤ 3 jobs");
    let groups = Policy::fastest_idle_first(&[vec![0], vec![1, 2]]);
    assert_eq!(told(groups.clone(), 1), ["no idle server left in p1", "idle servers again in p1"]);
    assert_eq!(told(groups, 2)[0], "no idle server left in p2, p3");
    let all = Policy::fastest_idle_first(&[vec![0, 1, 2]]);
    assert_eq!(told(all, 1)[0], "no idle server left in p1 and 2 more pools");
    let mut own = Policy::pull();
    own.tiers = Tiers::List(vec![Tier { levels: Levels::Set(level(0, 4)), pools: Some(vec![1]) }]);
    assert_eq!(told(own.clone(), 1)[0], "no server with ≤ 1 job in p2");
    // A tier that the policy does not have gets a line without words.
    assert_eq!(told(own, 6)[0], "");
}

/// A figure labels four events, and says how many more there are.
#[test]
fn many_events_are_counted() {
    let model = model(0.5, &[(1.0, 1.0, None)], Policy::pull());
    let (mut path, _) = fluid(&model);
    let event = |r| Event { time: f64::from(r), kind: EventKind::Hit, tier: 1, router: Some(r as usize) };
    path.events = (1..=7).map(event).collect();
    let figure = trajectory(&model, &path, None, &[], &default_tails(&model, &path)).unwrap();
    let labels = figure.panels[0].guides.iter().filter_map(|g| match g {
        Guide::Vertical { x, label } => Some((*x, label.as_str())),
        _ => None,
    });
    let labels: Vec<_> = labels.collect();
    assert_eq!(labels[0], (1.0, "no message left at router 1"));
    assert_eq!(labels[4..], [(5.0, "3 more events from here")]);
}

/// All that `plot` draws for one model file, at small n.
fn drawn(file: &std::path::Path) -> [(&'static str, Figure); 3] {
    let small = ["finite.sizes=[20,50,100]", "finite.replications=3", "fluid.tolerance=1e-7"];
    let system = spec::load(&Source::from(file), &small.map(String::from)).unwrap();
    let model = &system.model;
    let horizon = system.fluid.horizon.min(40.0);
    let times: Vec<f64> = (0..=50).map(|i| horizon * f64::from(i) / 50.0).collect();
    let initial = system.fluid.initial;
    let plan = Plan { initial, times, tolerance: system.fluid.tolerance, cut: Top::Reflecting };
    let (path, fixed) = (integrate(model, &plan).unwrap(), fixed_point(model).unwrap());
    let run = |&n| {
        let times = plan.times.clone();
        let settings =
            Settings { horizon, sample_times: times, initial: plan.initial.clone(), ..settings(n, 3) };
        finite::simulate(model, &settings, &()).unwrap()
    };
    let runs: Vec<Summary> = system.finite.sizes.iter().map(run).collect();
    let errors = Convergence::new(model, &pairs(&path, &fixed, &runs));
    let tails = default_tails(model, &path);
    [
        ("trajectory", trajectory(model, &path, Some(&fixed), &runs, &tails).unwrap()),
        ("levels", levels(model, &path, &fixed, &runs).unwrap()),
        ("convergence", convergence(&errors, model)),
    ]
}

#[test]
fn every_shipped_model_can_be_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let models = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/models"));
    let mut count = 0;
    for group in fs::read_dir(models).unwrap() {
        for file in fs::read_dir(group.unwrap().path()).unwrap() {
            let file = file.unwrap().path();
            if file.extension().is_none_or(|e| e != "toml") {
                continue;
            }
            let name = file.file_stem().unwrap().to_string_lossy().into_owned();
            for (kind, figure) in drawn(&file) {
                let svg = svg(&figure);
                let text = text(&svg);
                assert!(text.contains(&name), "{name} {kind}: {text}");
                for wrong in ["NaN", "p_wait", "mean_jobs", "no data"] {
                    assert!(!text.contains(wrong), "{name} {kind}: {wrong} in {text}");
                }
                // Coordinates; "inf" may be part of a model's name.
                let words = svg.split(|c: char| !(c.is_alphanumeric() || ".-_".contains(c)));
                let unreal = |word: &str| ["nan", "inf", "-inf"].contains(&word.to_lowercase().as_str());
                assert_eq!(words.filter(|word| unreal(word)).count(), 0, "{name} {kind}");
                let png = folder.path().join(format!("{name}-{kind}.png"));
                write(&figure, &png).unwrap();
                assert!(fs::metadata(png).unwrap().len() > 10_000, "{name} {kind}");
            }
            count += 1;
        }
    }
    assert!(count >= 14, "{count}");
}
