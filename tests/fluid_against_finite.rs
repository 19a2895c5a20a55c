//! Do the two readings of one model agree? The fluid limit against the exact process at n = 10,000, for
//! every policy, with one pool and with two, buffers of 1, of 5 and without end, below and above
//! capacity. They share no code, so a fault in either shows.
//!
//! Compared are whole level distributions (tails of every level that either reading reaches): along
//! the way from idle and from three jobs everywhere, and at rest. Bound: 4 standard errors of the
//! finite side (see `CHANCE`) plus `BIAS` / n. The finite mean is off the limit by V / n with V of the order of the
//! variance per server over the distance from criticality (for the systems here, at most 1.4 per unit
//! of load), or, for what the limit puts on a boundary, D / (lambda - D) servers. Right after an event
//! the bias is of order n^(-1/2): samples keep away from events.

mod common;

use common::model;
use fluidlimit::finite::{Replication, Settings, simulate};
use fluidlimit::fluid::{Plan, fixed_point, integrate};
use fluidlimit::model::{Initial, LevelSet, Measures, Model, Policy, Top};
use statrs::distribution::{ContinuousCDF, StudentsT};

const SERVERS: u64 = 10_000;
const N: f64 = 10_000.0;
/// Allowance for the bias of the finite system, in servers.
const BIAS: f64 = 10.0;
/// The chance to be off by more than 4 standard errors on one side, were they known. They are estimated,
/// so the bound is the quantile of Student's law that has this chance: 4.8 errors for 24 replications.
const CHANCE: f64 = 3.167e-5;
/// Levels compared.
const LEVELS: u32 = 24;
const PATHS: u32 = 24;
const RUNS: u32 = 16;

/// Mean and its standard error, which is taken to be at least `least`: with a dozen replications the
/// spread that is seen is now and then far too small.
fn estimate(numbers: &[f64], least: f64) -> (f64, f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0) / count).sqrt().max(least))
}

/// Half the standard error of the mean of `trials` coins.
fn half_binomial(p: f64, trials: f64) -> f64 {
    0.5 * (p * (1.0 - p)).max(0.0).sqrt() / trials.sqrt()
}

/// Collects what disagrees, so that a failure shows all of it.
#[derive(Default)]
struct Comparison {
    wrong: Vec<String>,
    compared: u32,
    /// The largest of (deviation - bias allowed) / standard error.
    worst: f64,
}

impl Comparison {
    fn check(&mut self, what: &str, limit: f64, numbers: &[f64], least: f64) {
        let (mean, error) = estimate(numbers, least);
        let off = (mean - limit).abs();
        self.compared += 1;
        if error > 0.0 {
            self.worst = self.worst.max((off - BIAS / N) / error);
        }
        let freedom = numbers.len() as f64 - 1.0;
        let errors = StudentsT::new(0.0, 1.0, freedom).unwrap().inverse_cdf(1.0 - CHANCE);
        if !(off <= errors * error + BIAS / N + 1e-9) {
            let ratio = off / error;
            self.wrong.push(format!("{what}: fluid {limit:.6}, finite {mean:.6} +- {error:.6} ({ratio:.1})"));
        }
    }

    fn finish(self, least: u32) {
        assert!(
            self.wrong.is_empty(),
            "{} of {}:\n{}",
            self.wrong.len(),
            self.compared,
            self.wrong.join("\n")
        );
        assert!(self.compared >= least, "only {} numbers were compared", self.compared);
        println!("{} numbers, worst {:.2} standard errors", self.compared, self.worst);
    }
}

fn settings(initial: Initial, horizon: f64, warmup: f64, seed: u64) -> Settings {
    Settings {
        n: SERVERS,
        replications: RUNS,
        horizon,
        warmup,
        seed,
        initial,
        sample_times: vec![],
        levels: LEVELS,
        paths: 0,
    }
}

fn at(tails: &[f64], k: usize) -> f64 {
    tails.get(k).copied().unwrap_or(0.0)
}

/// Tails at three times away from events.
fn along_the_way(c: &mut Comparison, what: &str, m: &Model, initial: &Initial, seed: u64) {
    const AFTER: f64 = 0.8;
    const BEFORE: f64 = 0.4;
    let candidates: Vec<f64> = (1..=26).map(|i| 0.3 * f64::from(i)).collect();
    let plan = Plan { initial: initial.clone(), times: candidates, tolerance: 1e-8, cut: Top::Reflecting };
    let path = integrate(m, &plan).unwrap_or_else(|e| panic!("{what}: {e}"));
    let quiet = |t: f64| path.events.iter().all(|e| t > e.time + AFTER || t < e.time - BEFORE);
    let mut chosen: Vec<_> = Vec::new();
    for s in path.snapshots.iter().filter(|s| quiet(s.time)) {
        let last = chosen.last().map_or(0.0, |l: &&fluidlimit::fluid::Snapshot| l.time);
        if chosen.len() < 3 && s.time > last + if chosen.is_empty() { 0.2 } else { 1.1 } {
            chosen.push(s);
        }
    }
    assert!(chosen.len() >= 2, "{what}: events everywhere: {:?}", path.events);
    let times: Vec<f64> = chosen.iter().map(|s| s.time).collect();
    let end = times[times.len() - 1];
    let settings = Settings {
        replications: PATHS,
        sample_times: times,
        paths: PATHS,
        ..settings(initial.clone(), end, 0.0, seed)
    };
    let finite = simulate(m, &settings, &()).unwrap();
    for (i, s) in chosen.iter().enumerate() {
        for (j, tails) in s.tails.iter().enumerate() {
            let highest = finite.paths.iter().map(|p| p.tails[i][j].len()).max().unwrap_or(0);
            for k in 0..highest.max(tails.len()).min(LEVELS as usize) {
                let numbers: Vec<f64> = finite.paths.iter().map(|p| at(&p.tails[i][j], k)).collect();
                let limit = at(tails, k);
                let what = format!("{what}, t = {:.1}, pool {j}, level {}", s.time, k + 1);
                c.check(&what, limit, &numbers, half_binomial(limit, N * f64::from(PATHS)));
            }
        }
        let jobs: Vec<f64> = finite.paths.iter().map(|p| p.mean_jobs[i]).collect();
        let (limit, half_poisson): (f64, _) = (s.jobs.iter().sum(), 0.5 / (N * f64::from(PATHS)).sqrt());
        c.check(&format!("{what}, t = {:.1}, jobs", s.time), limit, &jobs, half_poisson * limit.sqrt());
    }
}

/// Long-run measures and tails, from the fixed point on; pools that grow start with 30 jobs a server.
fn at_rest(c: &mut Comparison, what: &str, m: &Model, seed: u64) {
    const HORIZON: f64 = 9.0;
    const WARMUP: f64 = 1.0;
    let x = fixed_point(m).unwrap_or_else(|e| panic!("{what}: {e}"));
    let start = m.pools.iter().zip(&x.tails).zip(&x.growth);
    let start = start.map(|((pool, tails), growth)| match growth {
        Some(_) => vec![pool.share; 30],
        None => tails.clone(),
    });
    let settings = settings(Initial::Tails(start.collect()), HORIZON, WARMUP, seed);
    let runs = simulate(m, &settings, &()).unwrap().runs;
    let arrivals = m.arrival_rate * N * (HORIZON - WARMUP) * f64::from(RUNS);
    let mut share = |name: &str, of: &dyn Fn(&Measures) -> f64| {
        let numbers: Vec<f64> = runs.iter().map(|r| of(&r.measures)).collect();
        let limit = of(&x.measures);
        c.check(&format!("{what}, {name}"), limit, &numbers, half_binomial(limit, arrivals));
    };
    let of = |v: Option<fluidlimit::model::Value>| v.map_or(f64::NAN, |v| v.value);
    share("p_idle", &|m| of(m.p_idle));
    share("p_wait", &|m| of(m.p_wait));
    share("p_block", &|m| of(m.p_block));
    if x.is_proper() {
        share("mean_jobs", &|m| of(m.mean_jobs));
        for j in 0..m.pools.len() {
            share(&format!("pool {j} p_idle"), &|m| of(m.pools[j].p_idle));
            share(&format!("pool {j} p_wait"), &|m| of(m.pools[j].p_wait));
            share(&format!("pool {j} p_block"), &|m| of(m.pools[j].p_block));
        }
    }
    let tail = |r: &Replication, j: usize, k: usize| at(&r.tails[j], k);
    for (j, tails) in x.tails.iter().enumerate().filter(|(j, _)| x.growth[*j].is_none()) {
        let highest = runs.iter().map(|r| r.tails[j].len()).max().unwrap_or(0);
        for k in 0..highest.max(tails.len()).min(LEVELS as usize) {
            let numbers: Vec<f64> = runs.iter().map(|r| tail(r, j, k)).collect();
            let (limit, trials) = (at(tails, k), N * f64::from(RUNS) * (HORIZON - WARMUP));
            let what = format!("{what}, at rest, pool {j}, level {}", k + 1);
            c.check(&what, limit, &numbers, half_binomial(limit, trials));
        }
    }
}

fn agree(policy: &Policy, seed: u64) {
    let mut c = Comparison::default();
    for (i, buffer) in [Some(1), Some(5), None].into_iter().enumerate() {
        for (pools, below, above) in
            [(vec![(1.0, 1.0, buffer)], 0.7, 1.3), (vec![(0.4, 1.5, buffer), (0.6, 0.8, buffer)], 0.7, 1.4)]
        {
            let policy = of_pools(policy, pools.len());
            for (rate, side) in [(below, "below"), (above, "above")] {
                let m = model(rate, &pools, policy.clone());
                let what = format!("{} pools, B = {buffer:?}, {side}", pools.len());
                let seed = seed + 100 * i as u64 + 10 * pools.len() as u64;
                along_the_way(&mut c, &format!("{what}, from idle"), &m, &Initial::Idle, seed);
                if rests(&m) {
                    at_rest(&mut c, &what, &m, seed + 1);
                }
                let from_three = format!("{what}, from level 3");
                along_the_way(&mut c, &from_three, &m, &Initial::Level(3), seed + 2);
            }
        }
    }
    c.finish(300);
}

/// Not covered: the limit of tiers before a fallback that samples, above capacity without end of buffers.
fn rests(m: &Model) -> bool {
    let endless = m.pools.iter().any(|p| p.buffer.is_none()) && m.load() > 1.0;
    !(endless && m.policy.fallback.d > 1 && m.policy.tiers.count() != Some(0))
}

/// Fastest idle first names its pools.
fn of_pools(policy: &Policy, pools: usize) -> Policy {
    match policy.name.as_str() {
        "fastest-idle-first" => Policy::fastest_idle_first(&(0..pools).map(|j| vec![j]).collect::<Vec<_>>()),
        _ => policy.clone(),
    }
}

macro_rules! agreement {
    ($($name:ident: $policy:expr, $seed:expr;)*) => {
        $(#[test] fn $name() { agree(&$policy, $seed); })*
    };
}

agreement! {
    random: Policy::random(), 1000;
    jsq_2: Policy::jsq_d(2, true, false), 2000;
    jsq_2_of_distinct_servers: Policy::jsq_d(2, false, false), 3000;
    jsq_2_passing_over_full_servers: Policy::jsq_d(2, true, true), 4000;
    jsq: Policy::jsq(), 5000;
    pull: Policy::pull(), 6000;
    jiq_with_two_samples: Policy::jiq(2), 7000;
    idle_one_first: Policy::i1f(), 8000;
    threshold_2: Policy::threshold(2), 9000;
    threshold_3: Policy::threshold(3), 10_000;
    fastest_idle_first: Policy::fastest_idle_first(&[vec![0]]), 11_000;
    tiers: Policy::tiers(&[LevelSet { from: 0, to: 1 }, LevelSet { from: 2, to: 2 }], 2), 12_000;
}
