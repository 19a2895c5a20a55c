//! What the servers show: where they stand at one time, and what was measured up to the horizon.

use super::Farm;
use crate::finite::accounts::Account;
use crate::finite::estimate::Replication;
use crate::finite::mailboxes::Mailboxes;
use rand::Rng;

impl<R: Rng> Farm<'_, R> {
    /// Tails by pool up to `levels`, as fractions of all servers, and jobs per server.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn snapshot(&self, levels: usize) -> (Vec<Vec<f64>>, f64) {
        let n = self.roster.size() as f64;
        let tails = (0..self.model.pools.len()).map(|pool| {
            let by_level: Vec<f64> =
                self.roster.lists(pool).iter().map(|list| list.len() as f64 / n).collect();
            tails(&by_level, levels)
        });
        (tails.collect(), self.jobs as f64 / n)
    }

    /// Messages at each router as fractions of all servers; nothing with one router.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn messages(&self) -> Vec<f64> {
        let n = self.roster.size() as f64;
        self.mailboxes.iter().flat_map(Mailboxes::messages).map(|z| z as f64 / n).collect()
    }

    /// Tails by pool, level and phase up to `levels`, as fractions of all servers; nothing for pools with
    /// one phase.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn by_phase(&self, levels: usize) -> Vec<Vec<Vec<f64>>> {
        let phases = |pool: usize| self.model.pools[pool].law.phases();
        let mut counts: Vec<Vec<Vec<f64>>> = vec![Vec::new(); self.model.pools.len()];
        for (number, server) in (0..).zip(&self.servers) {
            let pool = self.roster.pool(number);
            if phases(pool) == 1 {
                continue;
            }
            let reached = server.jobs.len().min(levels);
            let rows = counts[pool].len().max(reached);
            counts[pool].resize_with(rows, || vec![0.0; phases(pool)]);
            counts[pool][..reached].iter_mut().for_each(|row| row[server.phase] += 1.0);
        }
        let n = self.roster.size() as f64;
        counts.iter_mut().flatten().flatten().for_each(|count| *count /= n);
        counts
    }

    /// What was measured up to the horizon.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn close(&mut self, levels: usize) -> Replication {
        let horizon = self.settings.horizon;
        let time = horizon - self.ledger.start;
        for server in (0..).take(self.servers.len()) {
            self.ledger.spent(server, self.roster.pool(server), self.roster.level(server), horizon);
        }
        let n = self.roster.size() as f64;
        let pools = 0..self.model.pools.len();
        let sizes: Vec<f64> = pools
            .clone()
            .map(|pool| self.roster.lists(pool).iter().map(Vec::len).sum::<usize>() as f64)
            .collect();
        let fallback = self.model.policy.fallback;
        let sampled = f64::from(fallback.d);
        let account = Account {
            time,
            fallbacks: self.ledger.fallbacks.measured(),
            sampled: if fallback.replacement { sampled } else { sampled.min(n) },
            messages: self.mailboxes.as_ref().map(|m| m.sent.measured()),
            pools: pools.clone().map(|pool| self.ledger.account(pool, sizes[pool])).collect(),
        };
        let shares = |pool: usize, of: f64| {
            self.ledger.time_at(pool).iter().map(|t| t / (of * time)).collect::<Vec<f64>>()
        };
        let run_tails: Vec<Vec<f64>> = pools.clone().map(|pool| tails(&shares(pool, n), levels)).collect();
        let by_level = |pool: usize| match sizes[pool] {
            0.0 => Vec::new(),
            size => {
                let mut all = shares(pool, size);
                all.resize(run_tails[pool].len() + 1, 0.0);
                all
            }
        };
        Replication {
            measures: account.measures(self.model),
            levels: pools.map(by_level).collect(),
            tails: run_tails,
            job_times: None,
            statistics: self.ledger.statistics(),
        }
    }
}

/// Tails from fractions by level, without zeros at the end and up to `most` of them.
fn tails(by_level: &[f64], most: usize) -> Vec<f64> {
    let mut tails: Vec<f64> = by_level.iter().skip(1).copied().collect();
    for k in (1..tails.len()).rev() {
        tails[k - 1] += tails[k];
    }
    tails.truncate(tails.iter().take(most).take_while(|x| **x > 0.0).count());
    tails
}
