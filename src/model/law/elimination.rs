//! Linear systems with the generator of a law, solved without a subtraction.

use super::PhaseType;

/// The matrix sI - T with its phases eliminated one by one, from the last to the first.
///
/// Eliminating a phase sends whoever would go there straight on to where it leads. The rate out of a
/// phase is always formed as the sum of the rates to the phases that are left, never as a difference,
/// so every solution with a non-negative right side has a small relative error in every entry, however
/// stiff the law (W. K. Grassmann, M. I. Taksar, D. P. Heyman, Operations Research 33, 1985).
pub(super) struct Elimination {
    moves: Vec<Vec<f64>>,
    total: Vec<f64>,
}

impl Elimination {
    /// For sI - T; s is a rate at which every phase ends besides.
    pub(super) fn new(law: &PhaseType, s: f64) -> Self {
        let m = law.phases();
        let mut moves = law.moves.clone();
        let mut exit: Vec<f64> = law.exit.iter().map(|e| e + s).collect();
        let mut total = vec![0.0; m];
        for k in (0..m).rev() {
            let (before, after) = moves.split_at_mut(k);
            let row = &after[0][..k];
            total[k] = exit[k] + row.iter().sum::<f64>();
            for (i, other) in before.iter_mut().enumerate().filter(|(_, other)| other[k] > 0.0) {
                let share = other[k] / total[k];
                exit[i] += share * exit[k];
                for (j, rate) in row.iter().enumerate().filter(|(j, _)| *j != i) {
                    other[j] += share * rate;
                }
            }
        }
        Self { moves, total }
    }

    /// x with (sI - T) x = b.
    pub(super) fn right(&self, mut b: Vec<f64>) -> Vec<f64> {
        let m = b.len();
        for k in (0..m).rev() {
            let given = b[k] / self.total[k];
            for (i, x) in b[..k].iter_mut().enumerate() {
                *x += self.moves[i][k] * given;
            }
        }
        for k in 0..m {
            let (known, rest) = b.split_at_mut(k);
            let come: f64 = self.moves[k].iter().zip(known).map(|(rate, x)| rate * *x).sum();
            rest[0] = (rest[0] + come) / self.total[k];
        }
        b
    }

    /// x with x (sI - T) = b.
    pub(super) fn left(&self, mut b: Vec<f64>) -> Vec<f64> {
        let m = b.len();
        for k in (0..m).rev() {
            let (before, rest) = b.split_at_mut(k);
            let given = rest[0] / self.total[k];
            for (x, rate) in before.iter_mut().zip(&self.moves[k]) {
                *x += rate * given;
            }
        }
        for k in 0..m {
            let come: f64 = (0..k).map(|i| b[i] * self.moves[i][k]).sum();
            b[k] = (b[k] + come) / self.total[k];
        }
        b
    }
}
