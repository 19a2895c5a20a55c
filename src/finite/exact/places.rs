//! What one server can be in: its cell, and with several routers the one that has its message.

use super::start;
use crate::model::{Initial, Message, Model, Routers, StateSpace};

/// Pool and level of a server; one cell for each phase that the job in service can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) pool: usize,
    pub(super) level: u32,
    pub(super) full: bool,
}

/// The places of the servers: cell by cell, and in each cell holder by holder.
///
/// Holder 0 means that no router has a message of the server, holder r + 1 that router r has. With one
/// router there is nothing to tell apart, so there is one holder only, 0; the same without any jobs.
#[derive(Debug)]
pub(super) struct Places<'a> {
    pub(super) model: &'a Model,
    pub(super) cells: Vec<Cell>,
    holders: usize,
}

impl<'a> Places<'a> {
    pub(super) fn new(model: &'a Model, space: &StateSpace) -> Self {
        let mut cells = Vec::with_capacity(space.len());
        for (pool, states) in space.pools.iter().enumerate() {
            for level in 0..=states.levels {
                let full = !model.pools[pool].has_room(level);
                cells.extend(states.level(level).map(|_| Cell { pool, level, full }));
            }
        }
        Self { model, cells, holders: holders(model) }
    }

    /// The routers, where it matters which one has a message.
    pub(super) fn routers(&self) -> Option<&'a Routers> {
        self.model.policy.routers.as_ref().filter(|_| self.holders > 1)
    }

    pub(super) fn cell(&self, place: u32) -> Cell {
        self.cells[self.cell_number(place)]
    }

    pub(super) fn cell_number(&self, place: u32) -> usize {
        place as usize / self.holders
    }

    /// The router that has a message of a server in this place.
    pub(super) fn router(&self, place: u32) -> Option<usize> {
        (place as usize % self.holders).checked_sub(1)
    }

    /// The place of a server in a cell whose message is at this router, if anywhere.
    pub(super) fn place(&self, cell: usize, router: Option<usize>) -> u32 {
        let holder = router.map_or(0, |r| r + 1).min(self.holders - 1);
        // Memory runs out long before 2^32 places.
        u32::try_from(cell * self.holders + holder).unwrap_or(u32::MAX)
    }

    /// By place, what one server can do beside taking a job: the place after, and the rate. A server that
    /// becomes idle sends a message, unless one is still out.
    pub(super) fn services(&self, space: &StateSpace) -> Vec<Vec<(u32, f64)>> {
        let mut services = vec![Vec::new(); self.cells.len() * self.holders];
        for m in space.service_moves() {
            for from in (0..self.holders).map(|holder| m.from * self.holders + holder) {
                let router = self.router(u32::try_from(from).unwrap_or(u32::MAX));
                let moves: &mut Vec<(u32, f64)> = &mut services[from];
                match self.routers().filter(|_| self.cells[m.to].level == 0 && router.is_none()) {
                    None => moves.push((self.place(m.to, router), m.rate)),
                    Some(routers) => {
                        let sent = routers.messages.iter().enumerate().filter(|(_, w)| **w > 0.0);
                        moves.extend(sent.map(|(r, w)| (self.place(m.to, Some(r)), m.rate * w)));
                    }
                }
            }
        }
        services
    }
}

/// How many holders are told apart in a model.
pub(super) fn holders(model: &Model) -> usize {
    let routers = model.policy.routers.as_ref().filter(|_| model.arrival_rate > 0.0);
    routers.map_or(1, |routers| routers.len() + 1)
}

/// Routers that get messages but no jobs, if messages that are out of date are kept: what such a router
/// has got it never gives away.
pub(super) fn hoarders(model: &Model) -> Vec<usize> {
    let kept = model.policy.routers.iter().filter(|r| r.message == Message::Keep && model.arrival_rate > 0.0);
    kept.flat_map(|r| (0..r.len()).filter(|&i| r.messages[i] > 0.0 && r.streams[i] <= 0.0)).collect()
}

/// The messages of pool j in an idle system that comes back to this state for ever: by router, as many
/// as servers.
pub(super) fn held_when_idle(model: &Model, j: usize, size: u64) -> Vec<u64> {
    let mut held = start::held(model, &Initial::Idle, j, size);
    if let [hoarder] = hoarders(model)[..] {
        held.fill(0);
        held[hoarder] = size;
    }
    held
}
