//! How long does `solve` take, from the text of a model to its answer?

use criterion::{Criterion, criterion_group, criterion_main};
use fluidlimit::fluid::{Plan, bracketed, fixed_point};
use fluidlimit::model::Top;
use fluidlimit::spec::{self, Source};
use std::hint::black_box;

fn answer(text: &str) -> f64 {
    let source = Source::Text { name: "bench".into(), text: text.to_owned() };
    let Ok(system) = spec::load(&source, &[]) else { return f64::NAN };
    let s = &system.fluid;
    let steps = s.points - 1;
    let times = (0..=steps).map(|i| s.horizon * f64::from(i) / f64::from(steps)).collect();
    let plan = Plan { initial: s.initial.clone(), times, tolerance: s.tolerance, cut: Top::Reflecting };
    let path = bracketed(&system.model, &plan);
    let fixed = fixed_point(&system.model);
    path.map_or(f64::NAN, |(_, gap)| gap) + fixed.map_or(f64::NAN, |x| x.residual)
}

fn solve(c: &mut Criterion) {
    let mut group = c.benchmark_group("solve");
    for (name, text) in [
        ("pull, two pools", include_str!("../models/pull/two-pools.toml")),
        ("pull, hit and slide", include_str!("../models/pull/overload-finite.toml")),
        ("pull, long queues", include_str!("../models/pull/long-queues.toml")),
        ("jsq(2), rho 0.9", include_str!("../models/jsq/power-of-two.toml")),
        ("jsq(2), unstable pool", include_str!("../models/jsq/two-pools-unstable.toml")),
    ] {
        group.bench_function(name, |b| b.iter(|| answer(black_box(text))));
    }
    group.finish();
}

criterion_group!(benches, solve);
criterion_main!(benches);
