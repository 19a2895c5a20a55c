//! A path of the fluid limit: what is asked for, and what is recorded.

use super::step::StepCounts;
use crate::model::{Initial, StateSpace, Top, no_phases};
use serde::Serialize;

/// What to integrate over.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where the path starts.
    pub initial: Initial,
    /// Times at which the path is recorded: increasing, not negative.
    pub times: Vec<f64>,
    /// Accuracy of the path, about the largest error of any tail.
    pub tolerance: f64,
    /// What stands for the levels of an infinite buffer beyond those represented.
    pub cut: Top,
}

/// What happened at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A tier ran empty: from here the path slides on the boundary.
    Hit,
    /// A tier filled again: the path left the boundary.
    Leave,
}

/// A change of mode.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Event {
    /// When.
    pub time: f64,
    /// What.
    pub kind: EventKind,
    /// Which tier, counted from 1.
    pub tier: usize,
    /// Under pull with several routers: whose messages ran out or came back, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router: Option<usize>,
}

/// The path at one time. Masses are fractions of all servers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Snapshot {
    /// Time.
    pub time: f64,
    /// Idle servers of each pool.
    pub idle: Vec<f64>,
    /// Tails x_1, x_2, ... of each pool.
    pub tails: Vec<Vec<f64>>,
    /// The tails by the phase of the job in service, S_{1,1}.., S_{2,1}.., of pools with several phases.
    #[serde(skip_serializing_if = "no_phases")]
    pub phases: Vec<Vec<Vec<f64>>>,
    /// Jobs in each pool, per server of all pools: the sum of its tails.
    pub jobs: Vec<f64>,
    /// Under pull with several routers: the messages at each router, as fractions of all servers; else
    /// empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<f64>,
    /// The part of them whose servers are busy, where messages that are out of date are kept; else empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<f64>,
    /// Rate at which servers become idle, per server.
    pub to_idle: f64,
    /// Shares of the arrivals of this moment that find an idle, a busy, a full server.
    pub p_idle: f64,
    /// See `p_idle`.
    pub p_wait: f64,
    /// See `p_idle`.
    pub p_block: f64,
}

/// A path with what explains it.
#[derive(Debug, Clone)]
pub struct Path {
    /// The path at the times asked for.
    pub snapshots: Vec<Snapshot>,
    /// Changes of mode, in order.
    pub events: Vec<Event>,
    /// Work done.
    pub counts: StepCounts,
    /// Time spent sliding, with at least one tier closed.
    pub sliding: f64,
    /// The most negative entry that a step produced and that was set to zero before the path went on.
    pub clipped: f64,
    /// The most negative entry of any state along the path, between the steps as well.
    pub lowest: f64,
    /// The largest deviation of a pool's mass from its share, at any step.
    pub mass_defect: f64,
    /// Where the path ended.
    pub end: State,
}

/// A point of a path, with the space and the mode it is in.
#[derive(Debug, Clone)]
pub struct State {
    /// Time.
    pub time: f64,
    /// Occupancy over `states`.
    pub occupancy: Vec<f64>,
    /// The state space, with the levels that are in use.
    pub states: StateSpace,
    /// Index of the first open tier; the number of tiers if all are closed.
    pub open: usize,
}
