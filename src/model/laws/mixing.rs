//! From a mixture of very many exponentials to one of a few, by Gauss quadrature.

use super::super::{LawError, PhaseType};
use nalgebra::{DMatrix, SymmetricEigen};

/// A rate and its probability.
#[derive(Debug, Clone, Copy)]
pub(super) struct Atom {
    pub(super) rate: f64,
    pub(super) weight: f64,
}

/// Rates beyond this many times the reciprocal mean, or below its reciprocal, are merged: they would
/// make the differential equations stiff without end, and nobody sees a time so short.
const SPREAD: f64 = 1e8;

/// A mixture of `phases` exponentials with mean 1, close to the mixture `atoms` with mean 1, and the
/// largest distance of its survival function from `survival`.
///
/// The nodes are those of the Gauss quadrature of the mixing law in the variable
/// u = 1 / (1 + rate^g); several g are tried and the best kept. In this variable 1 / rate is
/// absolutely monotone, so Gauss quadrature falls short of the mean; one slow phase makes up for it.
///
/// # Errors
/// Only if the atoms do not make a law.
pub(super) fn few_atoms(
    atoms: &[Atom],
    phases: usize,
    survival: impl Fn(f64) -> f64,
) -> Result<(PhaseType, f64), LawError> {
    const POWERS: [f64; 7] = [1.0, 0.5, 0.33, 0.25, 0.18, 0.125, 0.08];
    const SLOWER: [f64; 6] = [0.7, 0.4, 0.2, 0.1, 0.03, 0.01];
    let atoms = merged(atoms);
    let coarse = curve(&survival, 10);
    let mut best: Option<(f64, Vec<Atom>)> = None;
    for power in POWERS {
        let nodes = gauss(&atoms, phases - 1, power);
        let missing = 1.0 - nodes.iter().map(|a| a.weight / a.rate).sum::<f64>();
        let slowest = nodes.iter().map(|a| a.rate).fold(f64::INFINITY, f64::min);
        for slower in SLOWER {
            let mut candidate = nodes.clone();
            if missing > 0.0 {
                let rate = slower * slowest;
                candidate.push(Atom { rate, weight: missing * rate });
            }
            normalise(&mut candidate);
            let distance = distance(&candidate, &coarse);
            if best.as_ref().is_none_or(|(d, _)| distance < *d) {
                best = Some((distance, candidate));
            }
        }
    }
    let mut best = best.map(|(_, atoms)| atoms).unwrap_or_default();
    best.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    let distance = distance(&best, &curve(&survival, 100));
    let weights: Vec<f64> = best.iter().map(|a| a.weight).collect();
    let rates: Vec<f64> = best.iter().map(|a| a.rate).collect();
    Ok((PhaseType::hyperexponential(&weights, &rates)?, distance))
}

/// Total probability 1 and mean 1.
fn normalise(atoms: &mut [Atom]) {
    let total: f64 = atoms.iter().map(|a| a.weight).sum();
    let mean = atoms.iter().map(|a| a.weight / a.rate).sum::<f64>() / total;
    for atom in atoms {
        atom.weight /= total;
        atom.rate *= mean;
    }
}

/// The atoms within [`SPREAD`], and one for all faster and one for all slower ones that has their
/// probability and their part of the mean.
fn merged(atoms: &[Atom]) -> Vec<Atom> {
    let total: f64 = atoms.iter().map(|a| a.weight).sum();
    let (mut inside, mut ends) = (Vec::new(), [(0.0, 0.0); 2]);
    for &Atom { rate, weight } in atoms.iter().filter(|a| a.weight > 0.0) {
        if (1.0 / SPREAD..=SPREAD).contains(&rate) {
            inside.push(Atom { rate, weight: weight / total });
        } else {
            let end = &mut ends[usize::from(rate > 1.0)];
            *end = (end.0 + weight / total, end.1 + weight / total / rate);
        }
    }
    let ends = ends.into_iter().filter(|(weight, part)| *weight > 0.0 && *part > 0.0);
    inside.extend(ends.map(|(weight, part)| Atom { rate: weight / part, weight }));
    inside
}

/// The Gauss quadrature of `count` nodes in u = 1 / (1 + rate^power): Lanczos' method with full
/// reorthogonalisation gives the Jacobi matrix, its eigenvectors the weights (G. H. Golub,
/// J. H. Welsch, Mathematics of Computation 23, 1969).
fn gauss(atoms: &[Atom], count: usize, power: f64) -> Vec<Atom> {
    let values: Vec<f64> = atoms.iter().map(|a| 1.0 / (1.0 + a.rate.powf(power))).collect();
    let mut basis: Vec<Vec<f64>> = vec![atoms.iter().map(|a| a.weight.sqrt()).collect()];
    scale(&mut basis[0]);
    let (mut diagonal, mut beside) = (Vec::new(), Vec::new());
    loop {
        let last = &basis[basis.len() - 1];
        let mut next: Vec<f64> = last.iter().zip(&values).map(|(q, u)| q * u).collect();
        diagonal.push(dot(&next, last));
        if diagonal.len() == count {
            break;
        }
        for _ in 0..2 {
            for q in &basis {
                let along = dot(&next, q);
                next.iter_mut().zip(q).for_each(|(x, y)| *x -= along * y);
            }
        }
        let norm = scale(&mut next);
        // Fewer atoms than nodes that can be told apart.
        if norm < 1e-14 {
            break;
        }
        beside.push(norm);
        basis.push(next);
    }
    let n = diagonal.len();
    let jacobi = DMatrix::from_fn(n, n, |i, j| match i.abs_diff(j) {
        0 => diagonal[i],
        1 => beside[i.min(j)],
        _ => 0.0,
    });
    let eigen = SymmetricEigen::new(jacobi);
    let node = |i: usize| {
        let u = eigen.eigenvalues[i].clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON);
        let rate = ((1.0 - u) / u).powf(1.0 / power);
        Atom { rate: rate.clamp(0.1 / SPREAD, 10.0 * SPREAD), weight: eigen.eigenvectors[(0, i)].powi(2) }
    };
    (0..n).map(node).filter(|a| a.weight > 0.0).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Makes a vector one of length 1; returns the length it had.
fn scale(v: &mut [f64]) -> f64 {
    let norm = dot(v, v).sqrt();
    if norm > 0.0 {
        v.iter_mut().for_each(|x| *x /= norm);
    }
    norm
}

/// The survival function at times from 1e-10 to 1e10, so many a decade.
fn curve(survival: &impl Fn(f64) -> f64, per_decade: u32) -> Vec<(f64, f64)> {
    let times = (0..=20 * per_decade).map(|i| 10f64.powf(-10.0 + f64::from(i) / f64::from(per_decade)));
    times.map(|t| (t, survival(t))).collect()
}

/// The largest distance of a mixture from a survival function.
fn distance(atoms: &[Atom], curve: &[(f64, f64)]) -> f64 {
    let mixture = |t: f64| atoms.iter().map(|a| a.weight * (-a.rate * t).exp()).sum::<f64>();
    curve.iter().map(|&(t, s)| (mixture(t) - s).abs()).fold(0.0, f64::max)
}
