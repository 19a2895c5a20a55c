//! A histogram of durations with bins of equal relative width, so that its memory does not depend on
//! how many durations it holds.

/// Bits of the fraction that tell bins apart: 256 bins for every doubling.
const FRACTION_BITS: u32 = 8;

/// Durations from 2^-32 to 2^32 times the scale are told apart.
const OCTAVES: u64 = 64;

/// Where the pattern of a floating-point number is cut: what is left is exponent and upper fraction.
const SHIFT: u32 = f64::MANTISSA_DIGITS - 1 - FRACTION_BITS;

/// The cut pattern of 2^-32, the lower end of the first bin.
const FIRST: u64 = (1023 - OCTAVES / 2) << FRACTION_BITS;

/// Durations by size. A quantile lies in the bin of the true quantile of the durations recorded, so it
/// is off by 1/256 of its value at most; a duration of exactly 0 has a bin of its own.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    scale: f64,
    zeros: u64,
    bins: Vec<u64>,
    count: u64,
    sum: f64,
}

impl Histogram {
    /// No durations yet. `scale` is a typical one.
    pub(super) fn new(scale: f64) -> Self {
        let bins = usize::try_from(OCTAVES << FRACTION_BITS).unwrap_or(0);
        Self { scale, zeros: 0, bins: vec![0; bins], count: 0, sum: 0.0 }
    }

    /// Adds a duration; one beyond the ends goes to the first or the last bin.
    #[inline]
    pub(super) fn record(&mut self, duration: f64) {
        self.count += 1;
        self.sum += duration;
        if duration <= 0.0 {
            self.zeros += 1;
            return;
        }
        let cut = (duration / self.scale).to_bits() >> SHIFT;
        let last = self.bins.len() - 1;
        let bin = usize::try_from(cut.saturating_sub(FIRST)).unwrap_or(last).min(last);
        self.bins[bin] += 1;
    }

    /// Durations recorded.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Their mean, from their sum and not from the bins.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The duration that a fraction `p` does not exceed, linear within its bin. `None` if fewer than
    /// ten durations are expected beyond it: then it would be little more than the largest one.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn quantile(&self, p: f64) -> Option<f64> {
        const BEYOND: f64 = 10.0;
        let count = self.count as f64;
        if count * (1.0 - p) < BEYOND * (1.0 - 1e-9) {
            return None;
        }
        let rank = p * count;
        let mut below = self.zeros as f64;
        if rank <= below {
            return Some(0.0);
        }
        for (bin, &here) in (0..).zip(&self.bins) {
            let here = here as f64;
            if here > 0.0 && rank <= below + here {
                let (from, to) = (edge(bin), edge(bin + 1));
                return Some(self.scale * (from + (to - from) * (rank - below) / here));
            }
            below += here;
        }
        None
    }

    /// Takes in what another histogram of the same scale holds.
    pub(super) fn merge(&mut self, other: &Self) {
        self.zeros += other.zeros;
        self.count += other.count;
        self.sum += other.sum;
        self.bins.iter_mut().zip(&other.bins).for_each(|(a, b)| *a += b);
    }
}

/// The lower end of a bin.
fn edge(bin: u64) -> f64 {
    f64::from_bits((FIRST + bin) << SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_durations_within_a_bin() {
        for scale in [1e-6, 1.0, 3e5] {
            let mut all = Histogram::new(scale);
            (0..1000).for_each(|_| all.record(0.0));
            (1..=3000).for_each(|i| all.record(scale * f64::from(i) * 0.01));
            assert_eq!(all.quantile(0.25), Some(0.0));
            for (p, exact) in [(0.5, 10.0), (0.75, 20.0), (0.99, 29.6)] {
                let found = all.quantile(p).unwrap() / scale;
                assert!((found / exact - 1.0).abs() < 1.0 / 256.0, "{found} for {exact}");
            }
            assert!((all.mean().unwrap() / scale - 11.25375).abs() < 1e-9);
            assert_eq!(all.quantile(0.999), None);
        }
    }

    #[test]
    fn the_ends_take_what_lies_beyond_them() {
        let mut ends = Histogram::new(1.0);
        (0..20).for_each(|_| ends.record(1e-300));
        (0..20).for_each(|_| ends.record(1e300));
        assert!(ends.quantile(0.25).unwrap() < 1e-9 && ends.quantile(0.75).unwrap() > 4e9);
        let mut twice = ends.clone();
        twice.merge(&ends);
        assert_eq!((twice.count(), Histogram::new(1.0).mean()), (80, None));
    }
}
