//! Where the random numbers of a replication come from.
//!
//! Every replication owns one generator whose state depends on the seed, n and the replication's
//! number alone. Which thread runs it, and how many there are, therefore changes no bit of the result.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The increment of SplitMix64: 2^64 over the golden ratio, made odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64, a bijection of 64-bit words that spreads every input bit.
fn mix(word: u64) -> u64 {
    let z = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The generator of one replication: xoshiro256++ whose 256 bits of state are mixed from `seed`, the
/// number of servers `n` and the number of the replication.
#[must_use]
pub fn stream(seed: u64, n: u64, replication: u32) -> Xoshiro256PlusPlus {
    let key = [seed, n, u64::from(replication)]
        .into_iter()
        .fold(0, |key: u64, word| mix((key ^ word).wrapping_add(GOLDEN)));
    let mut state = [0; 32];
    let mut word = key;
    for bytes in state.chunks_exact_mut(8) {
        word = word.wrapping_add(GOLDEN);
        bytes.copy_from_slice(&mix(word).to_le_bytes());
    }
    Xoshiro256PlusPlus::from_seed(state)
}

/// A uniform integer in `0..bound`, exactly: the few words that would make some values likelier than
/// others are drawn again (Lemire 2019, "Fast random integer generation in an interval"). A bound of 0
/// gives 0.
#[inline]
#[allow(clippy::cast_possible_truncation)]
pub(super) fn below<R: Rng>(rng: &mut R, bound: u64) -> u64 {
    let scaled = |rng: &mut R| u128::from(rng.next_u64()) * u128::from(bound);
    let mut product = scaled(rng);
    if (product as u64) < bound {
        let threshold = bound.wrapping_neg() % bound.max(1);
        while (product as u64) < threshold {
            product = scaled(rng);
        }
    }
    (product >> 64) as u64
}

/// A uniform number in [0, 1) with 53 bits.
#[inline]
#[allow(clippy::cast_precision_loss)]
pub(super) fn unit<R: Rng>(rng: &mut R) -> f64 {
    const STEP: f64 = 1.0 / (1u64 << 53) as f64;
    (rng.next_u64() >> 11) as f64 * STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_in_every_argument_and_repeat() {
        let first = |seed, n, replication| stream(seed, n, replication).next_u64();
        let all = [first(1, 10, 0), first(2, 10, 0), first(1, 11, 0), first(1, 10, 1), first(10, 1, 0)];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b));
        }
        assert_eq!(first(1, 10, 0), all[0]);
    }

    #[test]
    fn small_integers_are_uniform() {
        let mut rng = stream(5, 1, 0);
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[usize::try_from(below(&mut rng, 7)).unwrap()] += 1;
        }
        // Five standard deviations of a binomial with 70,000 draws and probability 1/7.
        assert!(seen.iter().all(|&c| (f64::from(c) - 1e4).abs() < 5.0 * (1e4f64 * 6.0 / 7.0).sqrt()));
        assert_eq!(below(&mut rng, 0), 0);
        assert_eq!(below(&mut rng, 1), 0);
    }
}
