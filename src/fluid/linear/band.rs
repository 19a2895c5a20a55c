//! Banded matrices: Gaussian elimination with partial pivoting inside the band.

/// A square matrix whose entries lie within `reach` places of the diagonal; factorised in place.
#[derive(Debug)]
pub struct Band {
    n: usize,
    reach: usize,
    /// Entries of a row: from `reach` left of the diagonal to 2 `reach` right of it (row exchanges fill
    /// the second `reach`).
    width: usize,
    entries: Vec<f64>,
    exchanged: Vec<usize>,
}

impl Band {
    pub fn zeros(n: usize, reach: usize) -> Self {
        let width = 3 * reach + 1;
        Self { n, reach, width, entries: vec![0.0; n * width], exchanged: Vec::new() }
    }

    /// Adds to an entry within the band.
    pub fn add(&mut self, row: usize, column: usize, x: f64) {
        debug_assert!(row.abs_diff(column) <= self.reach);
        self.entries[row * self.width + column + self.reach - row] += x;
    }

    /// Makes a row zero.
    pub fn clear(&mut self, row: usize) {
        self.entries[row * self.width..(row + 1) * self.width].fill(0.0);
    }

    /// Factorises; `false` if the matrix is singular.
    pub fn factorise(&mut self) -> bool {
        let (n, reach, width) = (self.n, self.reach, self.width);
        self.exchanged = (0..n).collect();
        for k in 0..n {
            let last = (k + reach).min(n - 1);
            let at = |row: usize| row * width + k + reach - row;
            let size = |row: &usize| self.entries[at(*row)].abs();
            let largest = (k..=last).max_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or(k);
            let right = (k + 2 * reach).min(n - 1) - k + 1;
            if largest != k {
                self.exchanged[k] = largest;
                (0..right).for_each(|i| self.entries.swap(at(k) + i, at(largest) + i));
            }
            let pivot = self.entries[at(k)];
            if pivot == 0.0 || !pivot.is_finite() {
                return false;
            }
            for row in k + 1..=last {
                let factor = self.entries[at(row)] / pivot;
                if factor == 0.0 {
                    continue;
                }
                let (above, below) = self.entries.split_at_mut(row * width);
                let source = &above[at(k) + 1..at(k) + right];
                let start = at(row) - row * width;
                let target = &mut below[start + 1..start + right];
                target.iter_mut().zip(source).for_each(|(t, s)| *t -= factor * s);
                below[start] = factor;
            }
        }
        true
    }

    /// Solves in place; the matrix must have been factorised.
    pub fn solve(&self, r: &mut [f64]) {
        let (n, reach, width) = (self.n, self.reach, self.width);
        for k in 0..n {
            r.swap(k, self.exchanged[k]);
            let x = r[k];
            if x != 0.0 {
                let below = r[k + 1..].iter_mut().take(reach).enumerate();
                below.for_each(|(i, r)| *r -= self.entries[(k + 1 + i) * width + reach - 1 - i] * x);
            }
        }
        for k in (0..n).rev() {
            let start = k * width + reach;
            let right = (k + 2 * reach).min(n - 1) - k;
            let known: f64 =
                self.entries[start + 1..=start + right].iter().zip(&r[k + 1..]).map(|(a, x)| a * x).sum();
            r[k] = (r[k] - known) / self.entries[start];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::{DMatrix, DVector};

    #[test]
    fn agrees_with_dense_elimination_where_rows_must_be_exchanged() {
        for (n, reach) in [(1, 1), (7, 1), (23, 4), (40, 9)] {
            let entry = |i: usize, j: usize| {
                // Small diagonals: every other row is exchanged.
                if i == j { 1e-9 } else { ((i * 31 + j * 17) % 13) as f64 - 6.2 }
            };
            let mut band = Band::zeros(n, reach);
            let mut dense = DMatrix::zeros(n, n);
            for i in 0..n {
                for j in i.saturating_sub(reach)..=(i + reach).min(n - 1) {
                    band.add(i, j, entry(i, j));
                    dense[(i, j)] = entry(i, j);
                }
            }
            let r: Vec<f64> = (0..n).map(|i| 1.0 / (1.0 + i as f64)).collect();
            let mut x = r.clone();
            assert!(band.factorise());
            band.solve(&mut x);
            let back = &dense * DVector::from_vec(x.clone());
            let size = x.iter().fold(1.0, |a: f64, x| a.max(x.abs()));
            for (a, b) in back.iter().zip(&r) {
                assert!((a - b).abs() < 1e-11 * size, "n {n}: {a} against {b}");
            }
        }
    }
}
