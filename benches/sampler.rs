//! Events per second of the finite-n sampler, on one thread.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fluidlimit::finite::{Settings, simulate};
use fluidlimit::model::{Initial, Model, PhaseType, Policy, Pool};

/// Pools with equal shares and exponential service at the given rates, at load 0.9.
fn model(policy: Policy, rates: &[f64]) -> Option<Model> {
    let share = 1.0 / f64::from(u32::try_from(rates.len()).ok()?);
    let pool = |&rate: &f64| {
        let law = PhaseType::exponential(rate).ok()?;
        Some(Pool::new(format!("rate {rate}"), share, Some(20), law))
    };
    Some(Model {
        name: String::new(),
        description: String::new(),
        arrival_rate: 0.9 * share * rates.iter().sum::<f64>(),
        pools: rates.iter().map(pool).collect::<Option<_>>()?,
        policy,
    })
}

/// Runs about a million events, half of them before measuring starts.
fn run(model: &Model, n: u64) -> u64 {
    #[allow(clippy::cast_precision_loss)]
    let horizon = 1e6 / (1.9 * n as f64);
    let settings = Settings {
        n,
        replications: 1,
        horizon,
        warmup: horizon / 2.0,
        seed: 1,
        // Near the fixed point, so that a short run at large n is typical.
        initial: Initial::Tails(
            model.pools.iter().map(|p| [0.9, 0.7, 0.4, 0.1].map(|x| x * p.share).to_vec()).collect(),
        ),
        sample_times: vec![],
        levels: 20,
        paths: 0,
    };
    simulate(model, &settings, &()).map_or(0, |summary| summary.statistics.events)
}

fn sampler(criterion: &mut Criterion) {
    let policies =
        [Policy::random(), Policy::jsq_d(2, true, false), Policy::pull(), Policy::jsq(), Policy::i1f()];
    for policy in policies {
        for rates in [&[1.0][..], &[1.5, 0.5]] {
            let Some(model) = model(policy.clone(), rates) else { continue };
            let mut group = criterion.benchmark_group(format!("{}/{} pools", policy.label(), rates.len()));
            group.sample_size(10);
            for n in [1_000, 100_000, 10_000_000] {
                group.throughput(Throughput::Elements(run(&model, n)));
                group.bench_with_input(BenchmarkId::from_parameter(n), &n, |b, &n| {
                    b.iter(|| black_box(run(&model, n)));
                });
            }
            group.finish();
        }
    }
}

/// Service with three phases: the events are jobs that come, end, or go on to another phase.
fn phases(criterion: &mut Criterion) {
    let Ok(law) = PhaseType::coxian(&[2.8, 2.8 / 1.5, 2.8 / 3.0], &[0.6, 0.5]) else { return };
    for policy in [Policy::jsq_d(2, true, false), Policy::pull()] {
        let Some(mut model) = model(policy.clone(), &[1.0]) else { continue };
        model.pools[0].law = law.clone();
        let mut group = criterion.benchmark_group(format!("{}/Coxian-3", policy.label()));
        group.sample_size(10);
        for n in [1_000, 100_000, 10_000_000] {
            group.throughput(Throughput::Elements(run(&model, n)));
            group.bench_with_input(BenchmarkId::from_parameter(n), &n, |b, &n| {
                b.iter(|| black_box(run(&model, n)));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, sampler, phases);
criterion_main!(benches);
