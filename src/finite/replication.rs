//! One replication: a process, the meter that watches it, and what it leaves behind.

use super::counts::Counts;
use super::estimate::{Meter, Replication};
use super::process::{Process, System};
use super::summary::Path;
use super::{Control, Settings};
use crate::model::Model;

/// A process that jumps from state to state.
pub(super) trait Jumps {
    /// The servers now.
    fn counts(&self) -> &Counts;
    /// Runs to time `until`, telling `meter` of every event. Gives up, with `false`, soon after
    /// `cancelled` says so.
    fn run(&mut self, until: f64, meter: &mut Meter, cancelled: &dyn Fn() -> bool) -> bool;
    /// Messages at each router, where there are several.
    fn messages(&self) -> &[u64] {
        &[]
    }
    /// Jobs and messages so far, where there are several routers; with one the meter knows.
    fn traffic(&self) -> Option<Traffic> {
        None
    }
}

/// Jobs that came, and messages sent, those included that take one back.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Traffic {
    pub(super) arrived: u64,
    pub(super) sent: u64,
}

impl<R: rand::Rng> Jumps for Process<'_, R> {
    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn run(&mut self, until: f64, meter: &mut Meter, cancelled: &dyn Fn() -> bool) -> bool {
        Process::run(self, until, meter, cancelled)
    }
}

/// One replication; `None` if it was cancelled.
pub(super) fn replication(
    model: &Model,
    settings: &Settings,
    system: &System,
    mut process: impl Jumps,
    number: u32,
    control: &dyn Control,
) -> Option<(Replication, Path)> {
    if control.cancelled() {
        return None;
    }
    let mut meter = Meter::new(process.counts(), model);
    let mut path = Path { replication: number, ..Path::default() };
    let mut before = Traffic::default();
    let levels = settings.levels as usize;
    let early = settings.sample_times.partition_point(|&time| time <= settings.warmup);
    let (early, late) = settings.sample_times.split_at(early);
    for (times, end) in [(early, settings.warmup), (late, settings.horizon)] {
        for &time in times {
            process.run(time, &mut meter, &|| control.cancelled()).then_some(())?;
            let (tails, jobs) = snapshot(process.counts(), levels);
            path.messages.push(shares(process.messages(), settings.n));
            path.tails.push(tails);
            path.phases.push(by_phase(process.counts(), levels));
            path.mean_jobs.push(jobs);
        }
        process.run(end, &mut meter, &|| control.cancelled()).then_some(())?;
        if end < settings.horizon {
            meter.restart(end, process.counts());
            before = process.traffic().unwrap_or_default();
        }
    }
    let mut run = meter.finish(settings.horizon, process.counts(), model, system.dispatch.sampled(), levels);
    if let Some(traffic) = process.traffic() {
        let per_job = shares(&[traffic.sent - before.sent], traffic.arrived - before.arrived);
        run.measures.messages_per_job = per_job.first().filter(|x| x.is_finite()).map(|&x| x.into());
    }
    Some((run, path))
}

#[allow(clippy::cast_precision_loss)]
fn shares(counts: &[u64], of: u64) -> Vec<f64> {
    counts.iter().map(|&count| count as f64 / of as f64).collect()
}

/// Tails by pool, level and phase up to `levels`, as fractions of all servers.
fn by_phase(counts: &Counts, levels: usize) -> Vec<Vec<Vec<f64>>> {
    let n = counts.all().size();
    let pool = |j| counts.by_phase(j, levels).iter().map(|level| shares(level, n)).collect();
    (0..counts.pools.len()).map(pool).collect()
}

/// Tails by pool up to `levels`, as fractions of all servers, and jobs per server.
#[allow(clippy::cast_precision_loss)]
fn snapshot(counts: &Counts, levels: usize) -> (Vec<Vec<f64>>, f64) {
    let n = counts.all().size() as f64;
    let tails = counts.pools.iter().map(|pool| {
        let inhabited = pool.tails.busy().iter().take(levels).take_while(|&&servers| servers > 0);
        inhabited.map(|&servers| servers as f64 / n).collect()
    });
    // At most n times the levels that fit in memory: far from overflow for any n that is simulated.
    let jobs = counts.all().busy().iter().fold(0u64, |sum, &servers| sum.saturating_add(servers));
    (tails.collect(), jobs as f64 / n)
}
