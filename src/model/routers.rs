//! Pull with several routers: who gets which jobs, who gets which messages, and what becomes of a
//! message that is out of date.
//!
//! Jobs arrive in one Poisson stream per router. A server that becomes idle sends one message to a
//! router drawn at random; a router with messages sends each job to the server of a random one of them,
//! and a router without any sends it to a uniformly random server of the whole system. So an idle server
//! can be given a job behind the back of the router that holds its message ([`Message`]).
//!
//! Equal streams and messages: A. Stolyar, "Pull-based load distribution among heterogeneous parallel
//! servers: the case of multiple routers" (QUESTA 2017, arXiv 1512.07873). Unequal ones were derived.

use super::{Initial, Model, Policy};

/// Shares this close are one share.
const SAME_SHARE: f64 = 1e-12;

/// What becomes of the message of an idle server that a randomly routed job comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Message {
    /// It is withdrawn: the server sends word to the router. Idle servers have one message each, busy
    /// ones none.
    #[default]
    Withdraw,
    /// It stays, and may yet send a job to the server while it is busy. A server that becomes idle
    /// sends a message only if it has none that is still out.
    Keep,
}

/// The routers of pull.
#[derive(Debug, Clone, PartialEq)]
pub struct Routers {
    /// Share of the arrivals that come to each router; they sum to 1.
    pub streams: Vec<f64>,
    /// Probability that a message goes to each router; they sum to 1.
    pub messages: Vec<f64>,
    /// What becomes of a message that is out of date.
    pub message: Message,
}

impl Routers {
    /// `count` routers with equal streams that get equally many messages.
    #[must_use]
    pub fn equal(count: usize) -> Self {
        Self::with_streams(even(count))
    }

    /// Routers with these shares of the arrivals that get equally many messages.
    #[must_use]
    pub fn with_streams(streams: Vec<f64>) -> Self {
        Self { messages: even(streams.len()), streams, message: Message::Withdraw }
    }

    /// The number of routers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// Is there no router?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Does each router get messages in proportion to its jobs? Then together they do what one router
    /// with all jobs and all messages would do, once none of them is short of messages.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.streams.iter().zip(&self.messages).all(|(s, m)| (s - m).abs() <= SAME_SHARE)
    }
}

#[allow(clippy::cast_precision_loss)]
fn even(count: usize) -> Vec<f64> {
    vec![1.0 / count as f64; count]
}

impl Policy {
    /// Pull with these routers. One router alone is [`Policy::pull`].
    #[must_use]
    pub fn pull_by(routers: Routers) -> Self {
        let routers = Some(routers).filter(|r| r.len() > 1);
        Self { routers, ..Self::pull() }
    }
}

impl Initial {
    /// The idle servers of one pool at time 0 by the router that holds their message, as fractions of
    /// all servers. Where the start does not say, messages went to routers in the usual proportions.
    #[must_use]
    pub fn held_messages(&self, model: &Model, routers: &Routers, pool: usize) -> Vec<f64> {
        if let Self::Messages { idle, .. } = self {
            return idle[pool].clone();
        }
        let busy = self.tails(model, pool).first().copied().unwrap_or(0.0);
        let idle = (model.pools[pool].share - busy).max(0.0);
        routers.messages.iter().map(|w| w * idle).collect()
    }
}
