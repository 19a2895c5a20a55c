//! Routers that are alike stay alike, and count as one.
//!
//! The equations are linear in the size of a router: routers with streams, messages and messages held at
//! time 0 in one proportion keep what they hold in that proportion, and together they do what one router
//! of their joint size does. So a thousand equal routers cost no more than one.

use crate::model::{Initial, Model, Routers};

/// Proportions this close are equal.
const SAME: f64 = 1e-13;

/// Routers merged where they are alike.
pub(super) struct Merged {
    pub routers: Routers,
    /// The start, with what each merged router holds.
    pub initial: Initial,
    /// For every router, the merged one that it belongs to and its share of it.
    pub belongs: Vec<(usize, f64)>,
}

/// Merges the routers of a model that are alike, at time 0 and for ever.
pub(super) fn merge(model: &Model, routers: &Routers, initial: &Initial) -> Merged {
    let held: Vec<Vec<f64>> =
        (0..model.pools.len()).map(|j| initial.held_messages(model, routers, j)).collect();
    // Size, and what a router of size 1 would be.
    let of = |r: usize| {
        let held = held.iter().map(|by_router| by_router[r]);
        let parts: Vec<f64> = [routers.streams[r], routers.messages[r]].into_iter().chain(held).collect();
        let size: f64 = parts.iter().sum();
        (size, parts.iter().map(|x| if size > 0.0 { x / size } else { 0.0 }).collect::<Vec<f64>>())
    };
    let (size, kind): (Vec<f64>, Vec<Vec<f64>>) = (0..routers.len()).map(of).unzip();
    let alike = |a: usize, b: usize| kind[a].iter().zip(&kind[b]).all(|(x, y)| (x - y).abs() <= SAME);
    let mut first: Vec<usize> = Vec::new();
    let mut belongs = Vec::with_capacity(routers.len());
    for r in 0..routers.len() {
        let group = first.iter().position(|&a| alike(a, r)).unwrap_or(first.len());
        if group == first.len() {
            first.push(r);
        }
        belongs.push(group);
    }
    let sum = |x: &[f64]| {
        let mut sums = vec![0.0; first.len()];
        x.iter().zip(&belongs).for_each(|(x, &group)| sums[group] += x);
        sums
    };
    let mut sizes = vec![0.0; first.len()];
    (0..routers.len()).for_each(|r| sizes[belongs[r]] += size[r]);
    let share = |r: usize| if sizes[belongs[r]] > 0.0 { size[r] / sizes[belongs[r]] } else { 0.0 };
    Merged {
        routers: Routers {
            streams: sum(&routers.streams),
            messages: sum(&routers.messages),
            message: routers.message,
        },
        initial: Initial::Messages {
            tails: (0..model.pools.len()).map(|j| initial.tails(model, j)).collect(),
            idle: held.iter().map(|by_router| sum(by_router)).collect(),
        },
        belongs: (0..routers.len()).map(|r| (belongs[r], share(r))).collect(),
    }
}

impl Merged {
    /// Do all routers act as one?
    pub fn is_one(&self) -> bool {
        self.routers.len() == 1
    }

    /// From what each merged router holds to what each router holds.
    pub fn spread(&self, held: &[f64]) -> Vec<f64> {
        self.belongs.iter().map(|&(group, share)| held[group] * share).collect()
    }
}
