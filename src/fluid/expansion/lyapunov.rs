//! The Lyapunov equation A W + W A^T + Q = 0, by Smith's doubling (R. A. Smith, SIAM Journal on Applied
//! Mathematics 16, 1968).
//!
//! With the Cayley transform M = (p - A)^-1 (p + A), whose spectrum is inside the unit circle exactly if
//! that of A is left of the imaginary axis, W is the sum of M^k G M^kT over k >= 0 for
//! G = 2 p (p - A)^-1 Q (p - A)^-T. Each step of the doubling adds as many terms as there are.

use nalgebra::DMatrix;

/// Doublings after which there is no hope: 2^60 terms.
const MOST_DOUBLINGS: u32 = 60;

/// The solution; `None` if A has an eigenvalue that is not to the left of the imaginary axis, as far as
/// rounding can tell. `slowest` is a guess of the smallest |eigenvalue|, for speed only.
pub(super) fn solve(a: &DMatrix<f64>, q: &DMatrix<f64>, slowest: f64) -> Option<DMatrix<f64>> {
    let n = a.nrows();
    if n == 0 {
        return Some(DMatrix::zeros(0, 0));
    }
    let fastest = a.diagonal().amax();
    let p = (fastest * slowest.clamp(1e-12 * fastest, fastest)).sqrt();
    if !p.is_finite() || p <= 0.0 {
        return None;
    }
    let mut shifted = -a;
    (0..n).for_each(|i| shifted[(i, i)] += p);
    let inverse = shifted.try_inverse()?;
    let mut sum = &inverse * q * inverse.transpose() * (2.0 * p);
    let mut power = inverse * (2.0 * p);
    (0..n).for_each(|i| power[(i, i)] -= 1.0);
    for _ in 0..MOST_DOUBLINGS {
        let next = &power * &sum * power.transpose();
        let (size, added) = (sum.amax(), next.amax());
        sum += next;
        if !sum.amax().is_finite() {
            return None;
        }
        if added <= 1e-17 * size && power.amax() < 0.5 {
            // Rounding leaves the two halves a little different.
            return Some((&sum + sum.transpose()) * 0.5);
        }
        power = &power * &power;
    }
    None
}

/// The largest entry of A W + W A^T + Q, over the largest of Q.
pub(super) fn residual(a: &DMatrix<f64>, q: &DMatrix<f64>, w: &DMatrix<f64>) -> f64 {
    let half = a * w;
    let left = &half + half.transpose() + q;
    if q.amax() > 0.0 { left.amax() / q.amax() } else { left.amax() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::{DVector, SymmetricEigen};

    /// A matrix with eigenvalues from -1e4 to -1e-2, some complex, and a second opinion: the equation as a
    /// linear system of n^2 unknowns.
    #[test]
    fn it_agrees_with_the_linear_system_of_all_entries() {
        let n = 7;
        let a = DMatrix::from_fn(n, n, |i, j| match j as i64 - i as i64 {
            0 => -[1e-2, 0.3, 1.0, 1.0, 20.0, 20.0, 1e4][i],
            1 => 0.7,
            -1 if i == 3 || i == 5 => -3.0,
            _ => 0.0,
        });
        let root = DMatrix::from_fn(n, n, |i, j| ((3 * i + 5 * j) % 7) as f64 / 7.0);
        let q = &root * root.transpose();
        let w = solve(&a, &q, 1e-2).unwrap();
        let identity = DMatrix::identity(n, n);
        let sum = identity.kronecker(&a) + a.kronecker(&identity);
        let expected = sum.lu().solve(&-DVector::from_column_slice(q.as_slice())).unwrap();
        let scale = expected.amax();
        for (x, y) in w.iter().zip(expected.iter()) {
            assert!((x - y).abs() < 1e-11 * scale, "{x} {y}");
        }
        assert!(residual(&a, &q, &w) < 1e-10);
        assert!(SymmetricEigen::new(w).eigenvalues.iter().all(|x| *x > 0.0));
    }

    #[test]
    fn what_does_not_decay_has_no_solution() {
        for top in [0.0, 0.1] {
            let a = DMatrix::from_row_slice(2, 2, &[top, 1.0, 0.0, -1.0]);
            assert!(solve(&a, &DMatrix::identity(2, 2), 0.1).is_none());
        }
    }
}
