//! All pools eliminated together, level by level.
//!
//! When jobs join the shortest of sampled queues, the rate at a level depends on the tails X_k there and
//! one level up. With X_k as unknowns beside the occupancies, X_k - X_(k+1) = mass at level k, every
//! equation couples neighbouring levels only: the matrix is banded, whatever the number of levels. Two
//! unknowns that couple to everything form its border: the change of the stream that reaches the
//! fallback, and the mass of full servers that is passed over.
//!
//! Without gamma the equations of a pool sum to zero, and its mass must be given instead. The pool's own
//! tails, again unknowns, say that locally: the tail at level 0 is zero.

use super::band::Band;
use crate::fluid::dispatch::{self, Target};
use crate::fluid::drift::Linearisation;
use crate::model::StateSpace;
use nalgebra::{Matrix2, Vector2};

/// The unknowns of the border.
const STREAM: usize = 0;
const FULL: usize = 1;

/// gamma I - J as a banded matrix with a border.
#[derive(Debug)]
pub struct Leveled {
    order: Order,
    band: Band,
    /// Rows of the border: (unknown of the band, coefficient).
    rows: [Vec<(usize, f64)>; 2],
    /// The band's solution for each column of the border.
    columns: [Vec<f64>; 2],
    small: Matrix2<f64>,
    /// Without gamma: the lowest open state of each pool, whose equation gives way to the pool's mass.
    grounds: Vec<usize>,
}

/// Where the unknowns stand in the band: level by level, the tails first.
#[derive(Debug)]
struct Order {
    states: Vec<usize>,
    tails: Vec<usize>,
    /// Without gamma: the tails of each pool.
    pool_tails: Vec<Vec<usize>>,
    size: usize,
}

impl Order {
    fn new(states: &StateSpace, with_pool_tails: bool) -> Self {
        let pool_tails = vec![Vec::new(); states.pools.len()];
        let mut order = Self { states: vec![0; states.len()], tails: Vec::new(), pool_tails, size: 0 };
        let mut next = || {
            order.size += 1;
            order.size - 1
        };
        for k in 0..=states.max_level() {
            order.tails.push(next());
            for (j, pool) in states.pools.iter().enumerate().filter(|(_, p)| k <= p.levels) {
                if with_pool_tails {
                    order.pool_tails[j].push(next());
                }
                pool.level(k).for_each(|s| order.states[s] = next());
            }
        }
        order
    }
}

/// The most unknowns at one level.
fn block(states: &StateSpace) -> usize {
    1 + states.pools.iter().map(|p| p.phases() + 1).sum::<usize>()
}

/// About how many multiplications the elimination takes.
pub(super) fn work(states: &StateSpace) -> f64 {
    let block = block(states) as f64;
    8.0 * f64::from(states.max_level() + 1) * block * block * block
}

impl Leveled {
    /// Factorises; `None` if the matrix is singular.
    pub fn new(states: &StateSpace, linearisation: &Linearisation<'_>, gamma: f64) -> Option<Self> {
        let field = linearisation.field;
        let dispatch = &field.dispatch;
        let passes_over = matches!(dispatch.target, Target::Fallback(f) if f.skip_full);
        let top = states.max_level() as usize;
        let order = Order::new(states, gamma == 0.0);
        let place = &order.states;
        let mut band = Band::zeros(order.size, 2 * block(states) - 1);
        for m in linearisation.frozen() {
            band.add(place[m.from], place[m.from], m.rate);
            band.add(place[m.to], place[m.from], -m.rate);
        }
        for (s, closed) in field.closed.iter().enumerate() {
            let alone = gamma == 0.0 && closed.is_some();
            band.add(place[s], place[s], if alone { 1.0 } else { gamma });
        }
        // Tails: X_k - X_(k+1) - mass at level k = 0, without the full servers that are passed over.
        add_differences(&mut band, &order.tails);
        let mut rows = [Vec::new(), Vec::new()];
        for (_, k, s) in dispatch::levels(states) {
            if passes_over && dispatch.level[s] > top {
                rows[FULL].push((place[s], -1.0));
            } else {
                band.add(order.tails[k as usize], place[s], -1.0);
            }
        }
        rows[STREAM].extend(dispatch.closed.iter().flatten().map(|&(s, rate)| (place[s], rate)));
        // Where servers go when the rate of their level changes, and what changes it.
        let mut columns = [vec![0.0; order.size], vec![0.0; order.size]];
        for arc in &dispatch.arcs {
            let flow = linearisation.occupancy(arc.from) * arc.share;
            let (by_stream, by_tail, by_next) = linearisation.rate_partials(arc.group);
            for (row, flow) in [(place[arc.from], flow), (place[arc.to], -flow)] {
                columns[STREAM][row] += flow * by_stream;
                columns[FULL][row] += flow * (by_tail + by_next);
                band.add(row, order.tails[arc.group], flow * by_tail);
                if arc.group < top {
                    band.add(row, order.tails[arc.group + 1], flow * by_next);
                }
            }
        }
        let mut grounds = Vec::new();
        for (pool, tails) in states.pools.iter().zip(&order.pool_tails).filter(|(_, t)| !t.is_empty()) {
            add_differences(&mut band, tails);
            for (k, &tail) in (0..=pool.levels).zip(tails) {
                pool.level(k).for_each(|s| band.add(tail, place[s], -1.0));
            }
            let ground = pool.range().find(|&s| field.closed[s].is_none()).unwrap_or(pool.offset);
            let level = (0..=pool.levels).find(|&k| pool.level(k).contains(&ground)).unwrap_or(0);
            columns.iter_mut().for_each(|c| c[place[ground]] = 0.0);
            band.clear(place[ground]);
            band.add(place[ground], tails[level as usize], 1.0);
            grounds.push(ground);
        }
        if !band.factorise() {
            return None;
        }
        columns.iter_mut().for_each(|c| band.solve(c));
        let small = Matrix2::identity() - Matrix2::from_fn(|i, j| product(&rows[i], &columns[j]));
        let small = small.try_inverse().filter(|m| m.iter().all(|x| x.is_finite()))?;
        Some(Self { order, band, rows, columns, small, grounds })
    }

    /// Solves in place; `false` if the matrix is singular.
    pub fn solve(&self, r: &mut [f64]) -> bool {
        let place = &self.order.states;
        let mut x = vec![0.0; self.order.size];
        r.iter().zip(place).for_each(|(r, &p)| x[p] = *r);
        self.grounds.iter().for_each(|&s| x[place[s]] = 0.0);
        self.band.solve(&mut x);
        let border = self.small * Vector2::from_fn(|i, _| -product(&self.rows[i], &x));
        for (column, b) in self.columns.iter().zip(border.iter()).filter(|(_, b)| **b != 0.0) {
            x.iter_mut().zip(column).for_each(|(x, c)| *x -= b * c);
        }
        r.iter_mut().zip(place).for_each(|(r, &p)| *r = x[p]);
        r.iter().all(|x| x.is_finite())
    }
}

fn product(row: &[(usize, f64)], x: &[f64]) -> f64 {
    row.iter().map(|&(i, a)| a * x[i]).sum()
}

/// Each unknown of the list less the next one.
fn add_differences(band: &mut Band, tails: &[usize]) {
    tails.iter().for_each(|&t| band.add(t, t, 1.0));
    tails.windows(2).for_each(|t| band.add(t[0], t[1], -1.0));
}
