//! The definitions of the measures: from what jobs met and how servers spent their time to shares,
//! means and rates. Every finite reading keeps accounts of its own; only these quotients are common.

use crate::model::{Measures, Messages, Model, PoolMeasures, Value};

/// What happened in one pool over some time, or is expected to happen in one unit of time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PoolAccount {
    /// Servers of the pool.
    pub(super) servers: f64,
    /// Jobs that were sent to an idle server.
    pub(super) met_idle: f64,
    /// Jobs that were sent to a busy server with room.
    pub(super) met_busy: f64,
    /// Jobs that were sent to a full server.
    pub(super) lost: f64,
    /// Jobs completed.
    pub(super) completed: f64,
    /// Jobs completed that left their server idle.
    pub(super) became_idle: f64,
    /// Time integral of the number of busy servers.
    pub(super) busy: f64,
    /// Time integral of the number of jobs.
    pub(super) jobs: f64,
    /// Time integral of the number of jobs that are not in service.
    pub(super) waiting: f64,
}

/// What happened in all pools.
#[derive(Debug, Clone, Default)]
pub(super) struct Account {
    /// How long the account was kept.
    pub(super) time: f64,
    /// Jobs that found all tiers empty.
    pub(super) fallbacks: f64,
    /// Servers that the fallback samples.
    pub(super) sampled: f64,
    /// Messages, where they are counted one by one and do not follow from the rest.
    pub(super) messages: Option<f64>,
    /// By pool, in the model's order.
    pub(super) pools: Vec<PoolAccount>,
}

impl Account {
    /// The measures; a ratio without a denominator is `None`.
    pub(super) fn measures(&self, model: &Model) -> Measures {
        let sum = |of: fn(&PoolAccount) -> f64| self.pools.iter().map(of).sum::<f64>();
        let n = sum(|p| p.servers);
        let arrivals = sum(|p| p.met_idle + p.met_busy + p.lost);
        let accepted = sum(|p| p.met_idle + p.met_busy);
        let completed = sum(|p| p.completed);
        let per_sample = 2.0 * self.sampled;
        let messages = self.messages.unwrap_or_else(|| match model.policy.messages {
            Messages::PerIdleServer => {
                let asked = if self.sampled > 1.0 { per_sample * self.fallbacks } else { 0.0 };
                sum(|p| p.became_idle) + asked
            }
            Messages::PerSample => per_sample * arrivals,
            Messages::PerDeparture => completed,
            Messages::None => 0.0,
        });
        let by_rate = |of: fn(&PoolAccount) -> f64| {
            model.pools.iter().zip(&self.pools).map(|(pool, p)| pool.service_rate() * of(p)).sum::<f64>()
        };
        let pool = |(pool, name): (&PoolAccount, &String)| pool.measures(name, arrivals, self.time);
        Measures {
            p_idle: ratio(sum(|p| p.met_idle), arrivals),
            p_wait: ratio(sum(|p| p.met_busy), arrivals),
            p_block: ratio(sum(|p| p.lost), arrivals),
            p_busy: ratio(sum(|p| p.met_busy + p.lost), arrivals),
            mean_jobs: ratio(sum(|p| p.jobs), n * self.time),
            response_time: ratio(sum(|p| p.jobs), accepted),
            waiting_time: ratio(sum(|p| p.waiting), accepted),
            utilisation: ratio(by_rate(|p| p.busy), by_rate(|p| p.servers) * self.time),
            throughput: ratio(completed, n * self.time),
            messages_per_job: ratio(messages, arrivals),
            growth: None,
            pools: self.pools.iter().zip(model.pools.iter().map(|p| &p.name)).map(pool).collect(),
        }
    }
}

impl PoolAccount {
    /// Measures of the pool, which got some of all `arrivals` in `time`.
    fn measures(&self, name: &str, arrivals: f64, time: f64) -> PoolMeasures {
        let accepted = self.met_idle + self.met_busy;
        let server_time = self.servers * time;
        PoolMeasures {
            name: name.to_owned(),
            p_idle: ratio(self.met_idle, arrivals),
            p_wait: ratio(self.met_busy, arrivals),
            p_block: ratio(self.lost, arrivals),
            mean_jobs: ratio(self.jobs, server_time),
            response_time: ratio(self.jobs, accepted),
            waiting_time: ratio(self.waiting, accepted),
            utilisation: ratio(self.busy, server_time),
            throughput: ratio(self.completed, server_time),
            growth: None,
        }
    }
}

/// A quotient, where there is one.
fn ratio(numerator: f64, denominator: f64) -> Option<Value> {
    (denominator > 0.0).then(|| (numerator / denominator).into())
}
