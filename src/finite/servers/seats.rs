//! Where each server starts.

use crate::finite::start::Start;

/// Where one server starts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seat {
    pub(super) pool: usize,
    pub(super) level: usize,
    /// Phase of the job in service; drawn by the law if not given.
    pub(super) phase: Option<usize>,
    /// The router that has a message of it.
    pub(super) router: Option<usize>,
}

/// Seats for pools of these sizes, the fullest servers of each pool first.
pub(super) fn seats(start: &Start, sizes: &[u64]) -> Vec<Seat> {
    let given = start.busy.iter().zip(&start.phases).zip(&start.held).zip(sizes).enumerate();
    let pools = given.map(|(pool, (((busy, phases), held), &size))| {
        (0..size).map(move |server| {
            let level = busy.iter().take_while(|&&servers| servers > server).count();
            // Servers of one level, and idle ones with a message at one router, are neighbours: the rank
            // among them says the phase, or the router.
            let above = busy.get(level).copied().unwrap_or(0);
            let of_level = level.checked_sub(1).and_then(|k| phases.get(k));
            Seat {
                pool,
                level,
                phase: of_level.and_then(|servers| group(servers, server - above)),
                router: if level == 0 { group(held, server - above) } else { None },
            }
        })
    });
    pools.flatten().collect()
}

/// The group in which this rank falls, of groups of so many servers.
fn group(sizes: &[u64], rank: u64) -> Option<usize> {
    let ends = sizes.iter().scan(0, |sum, size| {
        *sum += size;
        Some(*sum)
    });
    ends.enumerate().find(|(_, end)| rank < *end).map(|(group, _)| group)
}
