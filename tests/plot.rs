//! Can a figure be trusted to be written, whole, the same every time, whatever the data?

use std::fs;
use std::path::Path;

use fluidlimit::output::plot::{
    Arrangement, Axis, Colour, Figure, Fill, Guide, Line, Look, Panel, PlotError, Point, Scale, Series,
    Shape, Width, check_path, write,
};
use proptest::prelude::*;

fn curve(count: usize, f: impl Fn(f64) -> f64) -> Vec<Point> {
    (0..count).map(|i| i as f64 / count as f64).map(|x| Point::new(x, f(x))).collect()
}

fn simple(points: Vec<Point>) -> Figure {
    let panel = Panel::new(Axis::linear("time"), Axis::linear("x_{1}"));
    Figure::new("A title").panel(panel.series(Series::new("a curve", points, Look::curve(0))))
}

fn svg(figure: &Figure) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figure.svg");
    write(figure, &path).unwrap();
    fs::read_to_string(path).unwrap()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// All text of an SVG file in reading order, spaces made single.
fn texts(svg: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let text_of = |node: roxmltree::Node| {
        let parts: String = node.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).collect();
        parts.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let named = |n: &roxmltree::Node| ["text", "title", "desc"].contains(&n.tag_name().name());
    document.descendants().filter(named).map(text_of).collect()
}

#[test]
fn only_svg_and_png_are_written() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["figure.pdf", "figure", "figure.svg.gz", ".svg"] {
        let path = folder.path().join(name);
        for result in [write(&simple(vec![]), &path), check_path(&path)] {
            let error = result.unwrap_err();
            assert!(matches!(error, PlotError::Suffix { .. }), "{name}: {error}");
            assert!(error.to_string().contains(".svg or .png"), "{error}");
        }
    }
    assert!(names_in(folder.path()).is_empty());
    check_path(&folder.path().join("figure.SVG")).unwrap();
}

#[test]
fn a_missing_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("absent").join("figure.png");
    for result in [write(&simple(vec![]), &path), check_path(&path)] {
        let error = result.unwrap_err();
        assert!(matches!(error, PlotError::NoFolder { .. }), "{error}");
        assert!(error.to_string().contains(folder.path().join("absent").to_str().unwrap()), "{error}");
    }
}

#[test]
fn a_folder_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figure.svg");
    fs::create_dir(&path).unwrap();
    assert!(matches!(write(&simple(vec![]), &path), Err(PlotError::IsFolder { .. })));
    assert!(matches!(check_path(&path), Err(PlotError::IsFolder { .. })));
    assert!(path.is_dir());
}

#[test]
fn a_figure_has_one_to_three_panels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figure.svg");
    for count in [0, 4] {
        let figure = Figure { panels: vec![Panel::default(); count], ..Figure::default() };
        assert!(matches!(write(&figure, &path), Err(PlotError::Panels { count: found }) if found == count));
    }
    assert!(names_in(folder.path()).is_empty());
}

#[test]
fn nothing_but_the_figure_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["figure.svg", "figure.png"] {
        let path = folder.path().join(name);
        check_path(&path).unwrap();
        assert!(!path.exists());
        fs::write(&path, "what was there before").unwrap();
        write(&Figure::default(), &path).unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "what was there before");
        write(&simple(curve(9, |x| x)), &path).unwrap();
        assert!(fs::metadata(&path).unwrap().len() > 1000);
    }
    let mut names = names_in(folder.path());
    names.sort();
    assert_eq!(names, ["figure.png", "figure.svg"]);
}

#[cfg(unix)]
#[test]
fn a_figure_has_the_rights_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (figure, other) = (folder.path().join("figure.svg"), folder.path().join("other"));
    write(&simple(vec![]), &figure).unwrap();
    fs::write(&other, "").unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(figure), mode(other));
}

#[test]
fn the_same_figure_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let figure = simple(curve(300, |x| (9.0 * x).sin()));
    for suffix in ["svg", "png"] {
        let [one, two] = ["one", "two"].map(|name| {
            let path = folder.path().join(name).with_extension(suffix);
            write(&figure, &path).unwrap();
            fs::read(path).unwrap()
        });
        assert!(one == two, "{suffix}");
    }
}

#[test]
fn svg_texts_are_text_and_escaped() {
    let mut figure = simple(vec![Point::new(1.0, 1.0)]);
    figure.title = "P(Q > 2) & \"more\" <b>".into();
    figure.subtitle = "λ = 0.9 'quoted'".into();
    figure.description = "Rises & falls; 1 < 2\u{0}".into();
    figure.panels[0].title = "<panel>".into();
    figure.panels[0].x.label = "n^{-1/2} a_{1}b^{2} c".into();
    figure.panels[0].guides = vec![
        Guide::Vertical { x: 1.0, label: "event & <1>".into() },
        Guide::Horizontal { y: 1.0, label: "level".into() },
    ];
    let found = texts(&svg(&figure));
    for text in [
        "P(Q > 2) & \"more\" <b>",
        "λ = 0.9 'quoted'",
        "Rises & falls; 1 < 2",
        "<panel>",
        "n\u{2212}1/2 a1b2 c",
        "x1",
        "a curve",
        "event & <1>",
        "level",
    ] {
        assert!(found.iter().any(|other| other == text), "{text} not in {found:?}");
    }
}

#[test]
fn svg_files_scale_and_stay_small() {
    let mut figure = simple(curve(400, f64::sin));
    for i in 1..8 {
        let points = curve(400, |x| (x * f64::from(i)).cos());
        figure.panels[0].series.push(Series::new("more", points, Look::curve(i as usize)));
    }
    let text = svg(&figure);
    assert!(text.len() < 300_000, "{}", text.len());
    let document = roxmltree::Document::parse(&text).unwrap();
    let root = document.root_element();
    assert_eq!(root.attribute("width"), Some("720"));
    assert!(root.attribute("viewBox").unwrap().starts_with("0 0 7200 "));
    assert!(text.contains("sans-serif"));
}

#[test]
fn noisy_paths_of_any_length_stay_small() {
    let jagged = curve(200_000, |x| (1e5 * x * x).sin());
    for line in [Line::Solid, Line::Dashed, Line::Dotted] {
        let mut figure = simple(jagged.clone());
        figure.panels[0].series[0].look = Look::path(0).line(line);
        let text = svg(&figure);
        assert!(text.len() < 300_000, "{line:?} {}", text.len());
    }
}

#[test]
fn png_files_decode_and_show_the_curve() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figure.png");
    write(&simple(curve(50, |x| x)), &path).unwrap();
    let mut reader = png::Decoder::new(fs::File::open(path).unwrap()).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(info.width, 2160);
    let share = |wanted: [u8; 3]| {
        let matching = pixels.chunks(3).filter(|pixel| **pixel == wanted).count();
        matching as f64 / f64::from(info.width * info.height)
    };
    assert!(share([255, 255, 255]) > 0.8);
    assert!(share([0x00, 0x72, 0xB2]) > 0.003, "the curve's blue covers {}", share([0x00, 0x72, 0xB2]));
}

#[test]
fn a_log_axis_without_positive_data_says_so() {
    let mut figure = simple(curve(9, |_| 0.0));
    figure.panels[0].y.scale = Scale::Log;
    assert!(texts(&svg(&figure)).contains(&"no positive data".to_owned()));
    figure.panels[0].series[0].points[3].y = 1.0;
    assert!(texts(&svg(&figure)).contains(&"8 points ≤ 0 not shown".to_owned()));
    figure.panels[0].series.clear();
    assert!(texts(&svg(&figure)).contains(&"no data".to_owned()));
}

#[test]
fn intervals_that_reach_zero_on_a_log_axis_lose_their_lower_cap() {
    let strokes = |half: f64| {
        let mut figure = simple(vec![Point::measured(1.0, 1.0, half), Point::new(2.0, 0.1)]);
        figure.panels[0].y.scale = Scale::Log;
        figure.panels[0].y.range = Some((0.01, 10.0));
        figure.panels[0].series[0] =
            Series::new("", figure.panels[0].series[0].points.clone(), Look::measured(0));
        svg(&figure).matches("<polyline").count()
    };
    assert_eq!(strokes(0.5), strokes(1.5) + 1);
    assert_eq!(strokes(0.5), strokes(f64::INFINITY) + 2);
}

#[test]
fn awkward_data_is_drawn() {
    let cases: Vec<(&str, Vec<(f64, f64)>)> = vec![
        ("empty", vec![]),
        ("single", vec![(1.0, 1.0)]),
        ("zero", vec![(0.0, 0.0)]),
        ("constant", vec![(0.0, 3.0), (1.0, 3.0), (2.0, 3.0)]),
        ("same point", vec![(2.0, 3.0); 5]),
        ("all zero", vec![(0.0, 0.0), (1.0, 0.0)]),
        (
            "holes",
            vec![(0.0, f64::NAN), (1.0, f64::INFINITY), (f64::NEG_INFINITY, 1.0), (2.0, 1.0), (3.0, 2.0)],
        ),
        ("huge", vec![(1.0, 1e300), (1e300, -1e300), (f64::MAX, f64::MIN)]),
        ("tiny", vec![(1e-300, 1e-300), (2e-300, 3e-300), (f64::MIN_POSITIVE, 5e-324)]),
        ("both", vec![(1e-300, 1e300), (1e300, 1e-300)]),
        ("nearly constant", vec![(1.0, 1.0), (1.0 + 1e-15, 1.0 + 1e-12)]),
        ("many", (0..20_000).map(|i| (f64::from(i), f64::from(i * 7919 % 1000))).collect()),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (name, values) in cases {
        let points: Vec<Point> =
            values.iter().map(|(x, y)| Point { x: *x, y: *y, half_width: Some(*y / 3.0) }).collect();
        let look = Look::measured(1).line(Line::Dashed);
        let panel = |scale: Scale| {
            let axis = || Axis { label: "label ".repeat(1700), scale, ..Axis::default() };
            let series = |look: Look| Series::new("series ".repeat(1500), points.clone(), look);
            Panel::new(axis(), axis())
                .title("title ".repeat(1700))
                .series(series(look))
                .series(series(look.steps()))
        };
        let figure = Figure::new("x_{1} ".repeat(1700))
            .subtitle("word ".repeat(2000))
            .panel(panel(Scale::Linear))
            .panel(panel(Scale::Log));
        texts(&svg(&figure));
        // Drawing pixels without optimisation is slow; these points take every branch.
        if name == "holes" {
            write(&figure, &folder.path().join("figure.png")).unwrap();
        }
    }
}

#[test]
fn explicit_ranges_clip_what_lies_far_outside() {
    let mut figure =
        simple(vec![Point::new(-1e300, -1e300), Point::new(0.5, 0.5), Point::new(1e300, 1e-300)]);
    figure.panels[0].x.range = Some((0.0, 1.0));
    figure.panels[0].y.range = Some((0.0, 1.0));
    assert_inside(&svg(&figure));
}

/// Every stroke lies on the page.
fn assert_inside(svg: &str) {
    let document = roxmltree::Document::parse(svg).unwrap();
    let size: Vec<i64> = document
        .root_element()
        .attribute("viewBox")
        .unwrap()
        .split(' ')
        .map(|n| n.parse().unwrap())
        .collect();
    for points in document.descendants().filter_map(|node| node.attribute("points")) {
        for point in points.split_whitespace() {
            let (x, y) = point.split_once(',').unwrap();
            let (x, y): (i64, i64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((0..=size[2]).contains(&x) && (0..=size[3]).contains(&y), "{point} outside {size:?}");
        }
    }
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![4 => -10.0..10.0f64, 2 => any::<f64>(), 1 => Just(0.0), 1 => (-300.0..300.0f64).prop_map(|e| 10f64.powf(e))]
}

fn look() -> impl Strategy<Value = Look> {
    let line = prop_oneof![Just(Line::Solid), Just(Line::Dashed), Just(Line::Dotted), Just(Line::None)];
    let width = prop_oneof![Just(Width::Thin), Just(Width::Normal), Just(Width::Bold)];
    let shape =
        prop_oneof![Just(Shape::Circle), Just(Shape::Square), Just(Shape::Triangle), Just(Shape::Diamond)];
    let colour =
        (0..9usize).prop_map(|i| [Colour::Black, Colour::Grey, Colour::Palette(i), Colour::Pale(i)][i % 4]);
    (line, width, proptest::option::of(shape), colour, any::<bool>()).prop_map(
        |(line, width, shape, colour, steps)| {
            let look = Look { steps, ..Look::path(0).line(line).width(width).colour(colour) };
            shape.map_or(look, |shape| look.marker(shape, Fill::Open))
        },
    )
}

fn axis() -> impl Strategy<Value = Axis> {
    let scale = prop_oneof![Just(Scale::Linear), Just(Scale::Log)];
    let range = proptest::option::of((value(), value()));
    (".{0,40}", scale, range, any::<bool>()).prop_map(|(label, scale, range, whole)| Axis {
        label,
        scale,
        range,
        whole,
    })
}

fn guide() -> impl Strategy<Value = Guide> {
    prop_oneof![
        (value(), ".{0,20}").prop_map(|(x, label)| Guide::Vertical { x, label }),
        (value(), ".{0,20}").prop_map(|(y, label)| Guide::Horizontal { y, label }),
        (value(), (value(), value()), proptest::option::of((value(), value())), ".{0,20}")
            .prop_map(|(slope, through, span, label)| Guide::Slope { slope, through, span, label }),
    ]
}

fn panel() -> impl Strategy<Value = Panel> {
    let point = (value(), value(), proptest::option::of(value()));
    let points =
        prop::collection::vec(point.prop_map(|(x, y, half_width)| Point { x, y, half_width }), 0..30);
    let series = (".{0,30}", points, look()).prop_map(|(label, points, look)| Series { label, points, look });
    let guides = prop::collection::vec(guide(), 0..6);
    (".{0,30}", axis(), axis(), prop::collection::vec(series, 0..6), guides)
        .prop_map(|(title, x, y, series, guides)| Panel { title, x, y, series, guides })
}

fn figure() -> impl Strategy<Value = Figure> {
    let arrangement = prop_oneof![Just(Arrangement::SideBySide), Just(Arrangement::Stacked)];
    (".{0,30}", ".{0,300}", ".{0,30}", arrangement, prop::collection::vec(panel(), 1..=3)).prop_map(
        |(title, subtitle, description, arrangement, panels)| Figure {
            title,
            subtitle,
            description,
            arrangement,
            panels,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_figure_is_a_well_formed_file_with_all_strokes_on_the_page(figure in figure()) {
        assert_inside(&svg(&figure));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_figure_can_be_a_png(figure in figure()) {
        let folder = tempfile::tempdir().unwrap();
        write(&figure, &folder.path().join("figure.png")).unwrap();
    }
}
