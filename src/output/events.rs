//! The events of a fluid path in words.

use crate::fluid::{Event, EventKind};
use crate::model::{Levels, Model, Tier};

/// What an event means for the servers. Tiers fill the levels from 0 upwards, so one that runs empty
/// leaves no server at its levels or below them.
pub(super) fn what_happened(model: &Model, event: &Event) -> String {
    if let Some(router) = event.router {
        return match event.kind {
            EventKind::Hit => format!("no message left at router {router}"),
            EventKind::Leave => format!("messages again at router {router}"),
        };
    }
    let Some(tier) = event.tier.checked_sub(1).and_then(|tier| model.policy.tiers.get(tier)) else {
        return String::new();
    };
    if let Levels::FreeSlots(_) = tier.levels {
        return match event.kind {
            EventKind::Hit => "no free slot left".into(),
            EventKind::Leave => "free slots again".into(),
        };
    }
    let place = tier.pools.as_ref().map_or_else(String::new, |pools| of_pools(model, pools));
    let servers = match levels_with_room(model, &tier) {
        (0, _) => {
            return match event.kind {
                EventKind::Hit => format!("no idle server left{place}"),
                EventKind::Leave => format!("idle servers again{place}"),
            };
        }
        (highest, room) => {
            let jobs = if highest == 1 { "job" } else { "jobs" };
            format!("{room}\u{2264} {highest} {jobs}{place}")
        }
    };
    match event.kind {
        EventKind::Hit => format!("no server with {servers}"),
        EventKind::Leave => format!("again servers with {servers}"),
    }
}

/// The highest level of a tier at which a server still has room, and the words needed where other servers
/// are full at that level or below.
fn levels_with_room(model: &Model, tier: &Tier) -> (u32, &'static str) {
    let levels = |j: usize| (tier.levels_in(j), model.pools[j].buffer.unwrap_or(u32::MAX));
    let in_tier = (0..model.pools.len()).map(levels).filter(|(levels, _)| !levels.is_empty());
    let highest: Vec<u32> = in_tier.map(|(levels, b)| levels.end.min(b).saturating_sub(1)).collect();
    let top = highest.iter().copied().max().unwrap_or(0);
    (top, if highest.iter().all(|h| *h == top) { "" } else { "room and " })
}

fn of_pools(model: &Model, pools: &[usize]) -> String {
    let names: Vec<&str> =
        pools.iter().filter_map(|&j| model.pools.get(j)).map(|p| p.name.as_str()).collect();
    match names.as_slice() {
        [first, _, _, ..] => format!(" in {first} and {} more pools", names.len() - 1),
        _ => format!(" in {}", names.join(", ")),
    }
}
