//! Draws synthetic figures that show what the plots can do, for looking at:
//! `cargo run --example plot_gallery -- FOLDER`.

use std::error::Error;
use std::path::PathBuf;

use fluidlimit::output::plot::{
    Axis, Colour, Figure, Fill, Guide, Line, Look, Panel, Point, Series, Shape, Width, write,
};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let figures = [
        ("trajectory", trajectory()),
        ("stationary", stationary()),
        ("convergence", convergence()),
        ("two_panels", two_panels()),
        ("stacked", stacked()),
        ("awkward", awkward()),
    ];
    for (name, figure) in figures {
        for suffix in ["svg", "png"] {
            let path = folder.join(name).with_extension(suffix);
            write(&figure, &path)?;
            println!("{}", path.display());
        }
    }
    Ok(())
}

/// Noise that is the same on every run: a congruential generator, mapped to a bell of unit variance.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

fn fluid(level: i32, t: f64) -> f64 {
    let load = 0.9f64;
    load.powi(level * level) * (1.0 - (-t / f64::from(level)).exp()).powi(level)
}

fn curve(points: usize, until: f64, f: impl Fn(f64) -> f64) -> Vec<Point> {
    (0..=points).map(|i| until * i as f64 / points as f64).map(|t| Point::new(t, f(t))).collect()
}

fn noisy(seed: u64, level: i32, n: f64) -> Vec<Point> {
    let mut noise = Noise(seed);
    let mut drift = 0.0;
    let points = curve(3000, 30.0, |t| fluid(level, t)).into_iter();
    points
        .map(|p| {
            drift += -0.01 * drift + 0.12 * noise.normal() / n.sqrt();
            Point::new(p.x, (p.y + drift * p.y.max(0.0).sqrt()).clamp(0.0, 1.0))
        })
        .collect()
}

fn trajectory() -> Figure {
    let mut panel =
        Panel::new(Axis::linear("time t (mean service times)"), Axis::linear("fraction of servers x_{k}(t)"));
    for (i, level) in (1..=3).enumerate() {
        let points = curve(400, 30.0, |t| fluid(level, t));
        panel = panel.series(Series::new(format!("fluid limit x_{{{level}}}"), points, Look::curve(i)));
        for seed in 0..2 {
            let label = if seed == 0 { format!("n = 500, x_{{{level}}}") } else { String::new() };
            panel =
                panel.series(Series::new(label, noisy(seed + 10 * i as u64, level, 500.0), Look::path(i)));
        }
    }
    let event = |x, label: &str| Guide::Vertical { x, label: label.into() };
    Figure::new("JSQ(2) from an empty system")
        .subtitle("λ = 0.9, exponential service with mean 1, buffers without bound; thin: two sample paths")
        .description(
            "Three fluid trajectories rise from zero to the fixed point; sample paths scatter around them.",
        )
        .panel(panel.guide(event(7.3, "x_{1} reaches 0.8")).guide(event(9.0, "tier empties")))
}

fn stationary() -> Figure {
    let levels = 0..9;
    let exact: Vec<Point> =
        levels.clone().map(|k| Point::new(f64::from(k), 0.9f64.powi((1 << k) - 1))).collect();
    let measured = |n: f64, seed| -> Vec<Point> {
        let mut noise = Noise(seed);
        let at = |p: &Point| {
            let half = 1.96 * (p.y / (40.0 * n)).sqrt();
            Point::measured(p.x, (p.y * (1.0 + 3.0 / n) + half * noise.normal() / 2.0).max(p.y / 3.0), half)
        };
        exact.iter().filter(|p| p.y > 0.05 / n).map(at).collect()
    };
    let line = Look::measured(0).line(Line::Solid).marker(Shape::Circle, Fill::Open);
    let panel =
        Panel::new(Axis::linear("level k"), Axis::log("stationary tail P(level ≥ k)").range(1e-7, 2.0))
            .series(Series::new("fixed point x_{k}^{*}", exact.clone(), line))
            .series(Series::new("n = 100", measured(100.0, 1), Look::measured(1)))
            .series(Series::new("n = 1000", measured(1000.0, 2), Look::measured(2)))
            .guide(Guide::Horizontal { y: 1e-6, label: "one server in 10^{6}".into() });
    Figure::new("Stationary tails fall doubly exponentially")
        .subtitle("JSQ(2), λ = 0.9; bars: 95 % intervals")
        .panel(panel)
}

fn convergence() -> Figure {
    let sizes = [10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0];
    let errors = |power: f64, scale: f64, spread: f64| -> Vec<Point> {
        let mut noise = Noise(7);
        sizes
            .iter()
            .map(|n: &f64| {
                let half = spread * scale * n.powf(-0.75);
                Point::measured(*n, scale * n.powf(power) + half * noise.normal() / 3.0, half)
            })
            .collect()
    };
    let guide = |slope, y, label: &str| Guide::Slope {
        slope,
        through: (10.0, y),
        span: Some((10.0, 10_000.0)),
        label: label.into(),
    };
    let panel = Panel::new(Axis::log("number of servers n"), Axis::log("distance to the limit"))
        .series(Series::new("E |X^{n} - x^{*}|", errors(-0.5, 0.8, 0.3), Look::measured(0)))
        .series(Series::new("|E X^{n} - x^{*}|", errors(-1.0, 0.5, 0.1), Look::measured(1)))
        .guide(guide(-0.5, 0.4, "slope -1/2"))
        .guide(guide(-1.0, 0.028, "slope -1"));
    Figure::new("Convergence to the fluid limit").subtitle("JIQ, λ = 0.7; 95 % intervals").panel(panel)
}

fn two_panels() -> Figure {
    let left = Panel::new(Axis::linear("time t"), Axis::linear("x_{1,fast}, x_{1,slow}"))
        .title("(a) Occupancy")
        .series(Series::new("fast pool", curve(400, 12.0, |t| 0.5 * (1.0 - (-t).exp())), Look::curve(0)))
        .series(Series::new(
            "slow pool",
            curve(400, 12.0, |t| 0.4 * (1.0 - (-t / 3.0).exp())),
            Look::curve(1),
        ))
        .guide(Guide::Horizontal { y: 0.5, label: "share of the fast pool".into() });
    let right = Panel::new(Axis::linear("time t"), Axis::log("distance to the fixed point"))
        .title("(b) Relaxation")
        .series(Series::new("from empty", curve(400, 12.0, |t| (-t).exp() + 1e-9), Look::curve(0)))
        .series(Series::new("from full", curve(400, 12.0, |t| 3.0 * (-1.2 * t).exp() + 1e-9), Look::curve(1)))
        .guide(Guide::Slope {
            slope: -1.0,
            through: (0.0, 0.1),
            span: Some((1.0, 9.0)),
            label: "rate e^{-t}".into(),
        });
    Figure::new("Two pools under fastest-idle-first")
        .subtitle("λ = 0.8; shares 0.5 and 0.5; speeds 2 and 1")
        .panel(left)
        .panel(right)
}

fn stacked() -> Figure {
    let steps = |seed, n: usize| -> Vec<Point> {
        let mut noise = Noise(seed);
        let mut level = 3.0;
        let mut next = |i: usize| {
            level = f64::max(0.0, level + f64::from((noise.uniform() * 3.0) as i32 - 1));
            Point::new(i as f64 * 0.4, level)
        };
        (0..n).map(&mut next).collect()
    };
    let look = |i| Look::path(i).colour(Colour::Palette(i)).width(Width::Normal).steps();
    let panel = |title: &str, label: &str, points, look| {
        Panel::new(Axis::linear("time t"), Axis::linear("jobs"))
            .title(title)
            .series(Series::new(label, points, look))
    };
    Figure::new("One server, two policies")
        .stacked()
        .panel(panel("Random", "queue length, random", steps(1, 100), look(0)))
        .panel(
            panel("JIQ", "queue length, JIQ", steps(2, 100), look(1))
                .guide(Guide::Horizontal { y: 2.5, label: "mean".into() }),
        )
}

fn awkward() -> Figure {
    let all = |f: fn(f64) -> f64| curve(200, 10.0, f);
    let zero = Panel::new(Axis::linear("time"), Axis::log("loss")).title("All zero").series(Series::new(
        "blocked jobs",
        all(|_| 0.0),
        Look::curve(0),
    ));
    let large = Panel::new(Axis::linear("n"), Axis::linear("number in system"))
        .title("Large numbers")
        .series(Series::new("jobs", curve(100, 3e7, |n| 1.2 * n), Look::curve(0)))
        .series(Series::new("servers", curve(100, 3e7, |n| n), Look::curve(1)));
    let mixed = Panel::new(Axis::linear("time"), Axis::log("rate"))
        .title("Less than a decade; some not positive")
        .series(Series::new(
            "rate",
            curve(60, 3.0, |t| 2.0 + t.sin() - 40.0 * f64::from(t > 2.9)),
            Look::measured(3),
        ))
        .series(Series::new("very long label ".repeat(600), all(|t| 1.0 + t / 5.0), Look::curve(4)));
    Figure::new("Awkward input ".repeat(20))
        .subtitle(
            "Parameters that need more than one line, such as this rather long enumeration of shares: "
                .repeat(8),
        )
        .panel(zero)
        .panel(large)
        .panel(mixed)
}
