//! Which server takes a job where there are several routers, read literally: each router has a box with
//! the messages of servers.

use rand::Rng;

use super::ledger::Count;
use super::roster::{Pick, Roster};
use super::streams::{below, unit};
use crate::model::{Message, Routers};

/// The boxes of all routers.
#[derive(Debug, Clone)]
pub(super) struct Mailboxes<'a> {
    routers: &'a Routers,
    /// By router, the servers whose message is there.
    boxes: Vec<Vec<u32>>,
    /// By server, the router that has its message and the place in the box.
    slips: Vec<Option<(usize, usize)>>,
    /// Messages sent, those included that take one back.
    pub(super) sent: Count,
}

impl<'a> Mailboxes<'a> {
    /// With the messages of these servers at these routers.
    pub(super) fn new(routers: &'a Routers, held: impl Iterator<Item = Option<usize>>) -> Self {
        let boxes = vec![Vec::new(); routers.len()];
        let mut all = Self { routers, boxes, slips: Vec::new(), sent: Count::default() };
        for (server, router) in (0..).zip(held) {
            all.slips.push(None);
            if let Some(router) = router {
                all.put(server, router);
            }
        }
        all
    }

    /// Picks the server of a job: the sender of a message that its router has, or else any server.
    pub(super) fn pick<R: Rng>(&mut self, roster: &Roster, rng: &mut R) -> Pick {
        let router = choose(&self.routers.streams, rng);
        let messages = self.boxes[router].len();
        if messages > 0 {
            let server = self.boxes[router][index(rng, messages)];
            self.take(server);
            return Pick { server, fallback: false };
        }
        let server = roster.server(index(rng, roster.size()));
        if roster.level(server) == 0 && self.routers.message == Message::Withdraw {
            self.take(server);
            self.sent.add(1);
        }
        Pick { server, fallback: true }
    }

    /// A server has become idle; it sends a message unless one is still out.
    pub(super) fn became_idle<R: Rng>(&mut self, server: u32, rng: &mut R) {
        if self.slips[server as usize].is_none() {
            self.put(server, choose(&self.routers.messages, rng));
            self.sent.add(1);
        }
    }

    /// By router, its messages.
    pub(super) fn messages(&self) -> impl Iterator<Item = usize> {
        self.boxes.iter().map(Vec::len)
    }

    fn put(&mut self, server: u32, router: usize) {
        self.slips[server as usize] = Some((router, self.boxes[router].len()));
        self.boxes[router].push(server);
    }

    /// The message of a server is gone.
    fn take(&mut self, server: u32) {
        let Some((router, place)) = self.slips[server as usize].take() else { return };
        self.boxes[router].swap_remove(place);
        if let Some(&moved) = self.boxes[router].get(place) {
            self.slips[moved as usize] = Some((router, place));
        }
    }
}

/// A router at random, with these probabilities.
fn choose<R: Rng>(probabilities: &[f64], rng: &mut R) -> usize {
    let mut left = unit(rng);
    let possible = probabilities.iter().enumerate().filter(|(_, p)| **p > 0.0);
    let mut last = 0;
    for (router, p) in possible {
        last = router;
        left -= p;
        if left < 0.0 {
            break;
        }
    }
    last
}

fn index<R: Rng>(rng: &mut R, bound: usize) -> usize {
    usize::try_from(below(rng, bound as u64)).unwrap_or(0)
}
