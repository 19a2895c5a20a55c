//! A server whose speed depends on its level, or that takes several jobs at once: how long a job stays
//! depends on those that come after it, so the whole server is followed.
//!
//! In the limit a server at level k with the first job in phase m gets jobs at the rate
//! a_km = (rate of jobs that find such servers) / (mass of these servers), independent of what else
//! happens. A job that finds k others leaves with the (k + 1)-th departure, and waits until so many jobs
//! have left that those ahead of it are fewer than the slots. With T_i(k, m) the time of the i-th departure,
//!
//! ```text
//! (s + a_km + c_k r_m) E exp(-s T_i(k, m)) = a_km E exp(-s T_i(k + 1, m))
//!     + c_k sum over m' of t_mm' E exp(-s T_i(k, m')) + c_k e_m sum over m' of b_m' E exp(-s T_(i-1)(k - 1, m'))
//! ```
//!
//! for the speeds c_k and a law with entries b, moves t, exits e and rates r. Levels from the top down, and
//! i upwards: no equation is larger than the number of phases. Derived.

use super::{C, Times};
use crate::model::{PhaseType, StateSpace};
use nalgebra::{DMatrix, DVector};

/// Squares of numbers of states for which transforms are still evaluated: some seconds for all quantiles.
const MOST_WORK: usize = 100_000;

/// Jobs beyond the last level are fewer than this fraction.
const NEGLIGIBLE: f64 = 1e-13;

/// The servers of one pool as a job sees them.
pub(super) struct Tagged {
    law: PhaseType,
    slots: usize,
    /// Rate of jobs that find k jobs, the first in phase m, at `found[k][m]`; of idle servers, in the phase
    /// that the job starts in.
    found: Vec<Vec<f64>>,
    /// By level and phase, the rate at which one server gets jobs. Infinite where servers come, but none
    /// stays: each gets a job at once.
    arrivals: Vec<Vec<f64>>,
    /// By level, the speed.
    speeds: Vec<f64>,
}

impl Tagged {
    /// From the rates of jobs that find servers in each state and the masses of these. `None` if there are
    /// too many states.
    pub(super) fn new(states: &StateSpace, j: usize, met: &[f64], q: &[f64]) -> Option<Self> {
        let pool = &states.pools[j];
        let with_room = (1..=pool.levels).filter(|&k| !pool.is_full(k));
        let mut found = vec![pool.law.initial().iter().map(|b| b * met[pool.offset]).collect::<Vec<f64>>()];
        found.extend(with_room.map(|k| met[pool.level(k)].to_vec()));
        let total: f64 = found.iter().flatten().sum();
        let mut rest = 0.0;
        while let Some(last) = found.last() {
            rest += last.iter().sum::<f64>();
            if rest > NEGLIGIBLE * total || found.len() == 1 {
                break;
            }
            found.pop();
        }
        let size = found.len() * pool.law.phases();
        if size.saturating_mul(size) > MOST_WORK {
            return None;
        }
        let rate = |s: usize| match (met[s], q[s].max(0.0)) {
            (met, 0.0) if met > 0.0 => f64::INFINITY,
            (met, mass) if met > 0.0 => met / mass,
            _ => 0.0,
        };
        let top = u32::try_from(found.len()).unwrap_or(u32::MAX);
        let at =
            |k: u32| if k < top { pool.level(k).map(rate).collect() } else { vec![0.0; pool.law.phases()] };
        Some(Self {
            law: pool.law.clone(),
            slots: pool.slots as usize,
            arrivals: (0..=top).map(at).collect(),
            speeds: (0..=top).map(|k| pool.speed_at(k)).collect(),
            found,
        })
    }

    /// The sum over what a job finds of its rate times f, where f solves the equations above with `source`
    /// added on the right, and is `at_once` for jobs that need not wait for any departure.
    fn over_found(&self, s: C, source: f64, at_once: C, until: Until) -> C {
        let ahead = match until {
            Until::Served => 0,
            Until::InService => self.slots,
        };
        let phases = self.law.phases();
        let top = self.found.len();
        let mut sum: C = self.found.iter().take(ahead).flatten().map(|rate| at_once * *rate).sum();
        let mut before = vec![vec![at_once; phases]; top + 1];
        let mut now = before.clone();
        for departures in 1..=top {
            for k in (departures..=top).rev() {
                let entered: C = before[k - 1].iter().zip(self.law.initial()).map(|(f, b)| f * *b).sum();
                let (lower, upper) = now.split_at_mut(k + 1);
                self.level(k, s, source, entered, upper.first(), &mut lower[k]);
            }
            if let Some(found) = self.found.get(departures + ahead - 1) {
                sum += found.iter().zip(&now[departures + ahead]).map(|(rate, f)| f * *rate).sum::<C>();
            }
            std::mem::swap(&mut before, &mut now);
        }
        sum
    }

    /// The equations of one level, given f after a departure and f one level up.
    fn level(&self, k: usize, s: C, source: f64, entered: C, above: Option<&Vec<C>>, f: &mut [C]) {
        let (law, speed) = (&self.law, self.speeds[k]);
        let up = |m: usize| above.map_or(C::from(0.0), |f| f[m]);
        let right = |m: usize| up(m) * self.arrivals[k][m] + entered * (speed * law.exit()[m]) + source;
        let at_once = |m: usize| self.arrivals[k][m].is_infinite();
        let diagonal = |m: usize| s + self.arrivals[k][m] + speed * law.rate(m);
        let n = law.phases();
        let forward = law.moves().iter().enumerate().all(|(m, row)| row[..m].iter().all(|r| *r == 0.0));
        if forward {
            for m in (0..n).rev() {
                let on: C = (m + 1..n).map(|to| f[to] * (speed * law.moves()[m][to])).sum();
                f[m] = if at_once(m) { up(m) } else { (right(m) + on) / diagonal(m) };
            }
            return;
        }
        let matrix = DMatrix::from_fn(n, n, |m, to| match () {
            () if at_once(m) => C::from(f64::from(u8::from(m == to))),
            () if m == to => diagonal(m),
            () => C::from(-speed * law.moves()[m][to]),
        });
        let right = DVector::from_fn(n, |m, _| if at_once(m) { up(m) } else { right(m) });
        let solved = matrix.lu().solve(&right).unwrap_or(right);
        f.copy_from_slice(solved.as_slice());
    }
}

/// What a job is waiting for.
#[derive(Debug, Clone, Copy)]
enum Until {
    InService,
    Served,
}

impl Until {
    fn new(own_service: bool) -> Self {
        if own_service { Self::Served } else { Self::InService }
    }
}

impl Times for Tagged {
    fn accepted(&self) -> f64 {
        self.found.iter().flatten().sum()
    }

    fn at_once(&self) -> f64 {
        self.found.iter().take(self.slots).flatten().sum()
    }

    fn work(&self, own_service: bool) -> f64 {
        self.over_found(C::from(0.0), 1.0, C::from(0.0), Until::new(own_service)).re
    }

    fn transform(&self, s: C, own_service: bool) -> C {
        self.over_found(s, 0.0, C::from(1.0), Until::new(own_service))
    }
}
