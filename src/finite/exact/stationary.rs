//! The stationary law of a chain whose states are sorted by the number of jobs.

use super::ExactError;
use super::sparse::Generator;
use serde::Serialize;

/// Multiplications that elimination may take, and numbers that it may store.
const ELIMINATION_WORK: usize = 2_000_000_000;
const ELIMINATION_SIZE: usize = 32 << 20;

/// The iteration ends at this residual ...
const RESIDUAL: f64 = 1e-14;

/// ... or gives up after so many sweeps.
const SWEEPS: u32 = 20_000;

/// How a stationary law was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Elimination without subtractions within the band of the generator (Grassmann, Taksar and Heyman
    /// 1985): every probability, however small, is right to a few units of the last digits.
    Elimination,
    /// Gauss-Seidel sweeps, the masses of all states with equally many jobs balanced before each (Koury,
    /// McAllister and Stewart 1984).
    GaussSeidel,
}

/// A stationary law, and how it was found.
#[derive(Debug, Clone)]
pub(super) struct Stationary {
    pub(super) law: Vec<f64>,
    pub(super) method: Method,
    pub(super) sweeps: u32,
    pub(super) residual: f64,
}

/// The stationary law on the states that can be reached from state 0, which must be reachable from
/// all. `jobs` is non-decreasing and changes by 1 at most in a transition.
pub(super) fn stationary(
    generator: &Generator,
    jobs: &[u32],
    from_idle: &[bool],
) -> Result<Stationary, ExactError> {
    let (states, band) = (generator.states(), generator.bandwidth());
    let work = states.saturating_mul(band).saturating_mul(band);
    let size = states.saturating_mul(2 * band + 1);
    if work <= ELIMINATION_WORK && size <= ELIMINATION_SIZE {
        let law = eliminate(generator, band);
        let residual = generator.residual(&law);
        return Ok(Stationary { law, method: Method::Elimination, sweeps: 0, residual });
    }
    iterate(generator, jobs, from_idle)
}

/// Eliminates the states from the last to the first, then fills in their probabilities upwards.
fn eliminate(generator: &Generator, band: usize) -> Vec<f64> {
    let (states, width) = (generator.states(), 2 * band + 1);
    // Row i holds the rates to the states i - band .. i + band.
    let mut rates = vec![0.0; states * width];
    for i in 0..states {
        for &(to, rate) in generator.row(i) {
            rates[i * width + to as usize + band - i] = rate;
        }
    }
    for k in (1..states).rev() {
        let low = k.saturating_sub(band);
        let (above, below) = rates.split_at_mut(k * width);
        let row = &below[low + band - k..band];
        let down: f64 = row.iter().sum();
        for i in low..k {
            let entry = i * width + k + band - i;
            if above[entry] > 0.0 {
                above[entry] /= down;
                let factor = above[entry];
                let start = i * width + low + band - i;
                let target = &mut above[start..start + row.len()];
                target.iter_mut().zip(row).for_each(|(a, b)| *a += factor * b);
            }
        }
    }
    let mut law = vec![0.0; states];
    law[0] = 1.0;
    for k in 1..states {
        let low = k.saturating_sub(band);
        law[k] = (low..k).map(|i| law[i] * rates[i * width + k + band - i]).sum();
        // The idle system can be so rare that one over its probability is beyond all numbers.
        if law[k] > 1e200 {
            law[..=k].iter_mut().for_each(|p| *p *= 1e-200);
        }
    }
    normalise(&mut law);
    law
}

fn iterate(generator: &Generator, jobs: &[u32], from_idle: &[bool]) -> Result<Stationary, ExactError> {
    let incoming = generator.transposed();
    let out: Vec<f64> = (0..generator.states()).map(|i| generator.out(i)).collect();
    // Rates out of each state to states with one job more, and one job fewer.
    let turn: Vec<(f64, f64)> = (0..generator.states())
        .map(|i| {
            let to = |more: bool| {
                let change = |t: &&(u32, f64)| {
                    let after = jobs[t.0 as usize];
                    if more { after > jobs[i] } else { after < jobs[i] }
                };
                generator.row(i).iter().filter(change).map(|t| t.1).sum()
            };
            (to(true), to(false))
        })
        .collect();
    let mut law: Vec<f64> = from_idle.iter().map(|&reached| f64::from(u8::from(reached))).collect();
    let mut residual = f64::INFINITY;
    for sweep in 1..=SWEEPS {
        balance(&mut law, jobs, &turn);
        let mut relax = |j: usize| {
            if out[j] > 0.0 {
                law[j] =
                    incoming.row(j).iter().map(|&(i, rate)| law[i as usize] * rate).sum::<f64>() / out[j];
            }
        };
        (0..out.len()).for_each(&mut relax);
        (0..out.len()).rev().for_each(&mut relax);
        normalise(&mut law);
        // A look at the residual costs as much as a sweep.
        if sweep % 4 == 0 {
            residual = generator.residual(&law);
            if residual <= RESIDUAL {
                return Ok(Stationary { law, method: Method::GaussSeidel, sweeps: sweep, residual });
            }
        }
    }
    Err(ExactError::NotConverged { states: out.len(), sweeps: SWEEPS, residual })
}

/// Scales the masses of all states with t jobs so that the flows between t and t + 1 balance, t = 0, 1, ...
fn balance(law: &mut [f64], jobs: &[u32], turn: &[(f64, f64)]) {
    let mut blocks: Vec<(f64, f64, f64)> = vec![(0.0, 0.0, 0.0); jobs.last().map_or(0, |&t| t as usize + 1)];
    for ((&p, &t), &(up, down)) in law.iter().zip(jobs).zip(turn) {
        let block = &mut blocks[t as usize];
        *block = (block.0 + p, block.1 + p * up, block.2 + p * down);
    }
    // Logarithms of the factors: masses span more than floating-point numbers can.
    let mut factors = vec![0.0; blocks.len()];
    for t in 1..blocks.len() {
        let ratio = blocks[t - 1].1 / blocks[t].2;
        factors[t] = factors[t - 1] + if ratio > 0.0 && ratio.is_finite() { ratio.ln() } else { 0.0 };
    }
    let mass = |t: usize| factors[t] + blocks[t].0.max(f64::MIN_POSITIVE).ln();
    let largest = (0..blocks.len()).map(mass).fold(f64::NEG_INFINITY, f64::max);
    for (p, &t) in law.iter_mut().zip(jobs) {
        *p *= (factors[t as usize] - largest).exp();
    }
}

fn normalise(law: &mut [f64]) {
    // Small ones first: the states with the most jobs are the last.
    let total: f64 = law.iter().rev().sum();
    law.iter_mut().for_each(|p| *p /= total);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M/M/1 with a buffer: rate `up` for arrivals and 1 for services.
    fn queue(up: f64, buffer: u32) -> (Generator, Vec<u32>) {
        let mut generator = Generator::default();
        for k in 0..=buffer {
            let rise = (k < buffer).then_some((k + 1, up));
            generator.push(rise.into_iter().chain((k > 0).then(|| (k.wrapping_sub(1), 1.0))));
        }
        (generator, (0..=buffer).collect())
    }

    #[test]
    fn both_methods_find_the_geometric_law_to_all_digits_of_its_tail() {
        for (up, buffer) in [(0.5, 40), (1.25, 2000)] {
            let (generator, jobs) = queue(up, buffer);
            let found = stationary(&generator, &jobs, &vec![true; jobs.len()]).unwrap();
            let iterated = iterate(&generator, &jobs, &vec![true; jobs.len()]).unwrap();
            assert_eq!((found.method, iterated.method), (Method::Elimination, Method::GaussSeidel));
            assert!(found.residual < 1e-14 && iterated.residual < 1e-13);
            // From the likelier end: the full buffer if `up` exceeds 1.
            let ratio: f64 = if up < 1.0 { up } else { 1.0 / up };
            for k in 0..40usize {
                let place = if up < 1.0 { k } else { buffer as usize - k };
                let exact = (1.0 - ratio) * ratio.powi(i32::try_from(k).unwrap());
                assert!((found.law[place] / exact - 1.0).abs() < 1e-11, "{k}");
                assert!((iterated.law[place] / exact - 1.0).abs() < 1e-11, "{k}");
            }
        }
    }

    #[test]
    fn states_that_idle_does_not_lead_to_have_no_mass() {
        // State 2 is left for good.
        let mut generator = Generator::default();
        generator.push([(1, 1.0)].into_iter());
        generator.push([(0, 1.0)].into_iter());
        generator.push([(0, 1.0)].into_iter());
        let reached = [true, true, false];
        for law in [
            stationary(&generator, &[0, 1, 1], &reached).unwrap().law,
            iterate(&generator, &[0, 1, 1], &reached).unwrap().law,
        ] {
            assert!((law[0] - 0.5).abs() < 1e-15 && (law[1] - 0.5).abs() < 1e-15 && law[2] == 0.0);
        }
    }
}
