//! How close are fitted laws to what they were fitted to?

mod common;

use common::close;
use fluidlimit::model::{DataFit, Decreasing, Family, Fitted, PhaseType, Sample};
use nalgebra::{DMatrix, DVector};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Law, phases, and what the largest distance of the survival functions may be.
fn decreasing() -> Vec<(Decreasing, usize, f64)> {
    let lomax = |shape| Decreasing::Lomax { shape, scale: 2.0 };
    let gamma = |shape| Decreasing::Gamma { shape, scale: 0.5 };
    let weibull = |shape| Decreasing::Weibull { shape, scale: 3.0 };
    vec![
        (lomax(1.1), 16, 3e-6),
        (lomax(1.5), 16, 1e-6),
        (lomax(2.5), 12, 1e-6),
        (lomax(5.0), 16, 1e-10),
        (lomax(100.0), 16, 1e-13),
        (gamma(0.1), 16, 8e-2),
        (gamma(0.3), 16, 1e-3),
        (gamma(0.5), 16, 5e-5),
        (gamma(0.5), 24, 1e-5),
        (gamma(0.99), 16, 5e-8),
        (weibull(0.2), 16, 3e-2),
        (weibull(0.5), 4, 3e-2),
        (weibull(0.5), 16, 2e-4),
        (weibull(0.5), 24, 2e-5),
        (weibull(0.8), 16, 3e-6),
        (weibull(0.999), 16, 1e-8),
    ]
}

#[test]
fn decreasing_hazard_rates_are_fitted_with_the_distance_that_is_stated() {
    for (law, phases, most) in decreasing() {
        let (fit, distance) = law.mixture(phases).unwrap();
        assert!(distance <= most, "{law:?}: {distance}");
        assert!(fit.phases() <= phases && fit.phases() >= phases.min(14), "{law:?}: {}", fit.phases());
        assert!((fit.mean() / law.mean() - 1.0).abs() < 1e-13, "{law:?}");
        let mut before = f64::INFINITY;
        for i in 0..400 {
            let t = law.mean() * 10f64.powf(-9.0 + f64::from(i) * 0.03);
            let off = (fit.survival(t) - survival(&law, t)).abs();
            assert!(off <= 1.01 * distance + 1e-13, "{law:?} at {t}: {off} against {distance}");
            if fit.survival(t) > 1e-200 {
                let hazard = fit.hazard(t);
                assert!(hazard <= before * (1.0 + 1e-12), "{law:?}: the hazard rate grows at {t}");
                before = hazard;
            }
        }
    }
}

/// The survival functions, written once more.
fn survival(law: &Decreasing, t: f64) -> f64 {
    match *law {
        Decreasing::Lomax { shape, scale } => (1.0 + t / scale).powf(-shape),
        Decreasing::Weibull { shape, scale } => (-(t / scale).powf(shape)).exp(),
        Decreasing::Gamma { shape, scale } => statrs::function::gamma::gamma_ur(shape, t / scale),
    }
}

#[test]
fn shapes_without_a_decreasing_hazard_rate_or_a_mean_are_refused() {
    for shape in [1.0, 0.5, f64::NAN, f64::INFINITY, -1.0] {
        assert!(Decreasing::Lomax { shape, scale: 1.0 }.mixture(16).is_err());
    }
    for shape in [1.0, 2.0, 0.0, f64::NAN] {
        assert!(Decreasing::Gamma { shape, scale: 1.0 }.mixture(16).is_err());
        assert!(Decreasing::Weibull { shape, scale: 1.0 }.mixture(16).is_err());
    }
    let weibull = Decreasing::Weibull { shape: 0.5, scale: 1.0 };
    assert!(weibull.mixture(1).is_err() && weibull.mixture(65).is_err());
    assert!(Decreasing::Weibull { shape: 0.5, scale: 0.0 }.mixture(16).is_err());
}

/// Independent service times of a law, phase by phase.
fn draws(law: &PhaseType, count: usize, seed: u64) -> Sample {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut pick = |weights: &[f64]| {
        let mut u = rng.random::<f64>() * weights.iter().sum::<f64>();
        let found = weights.iter().position(|w| {
            u -= w;
            u < 0.0
        });
        (found.unwrap_or(weights.len() - 1), -(1.0 - rng.random::<f64>()).ln())
    };
    let mut time = || {
        let (mut phase, _) = pick(law.initial());
        let mut t = 0.0;
        loop {
            let mut ends = law.moves()[phase].clone();
            ends.push(law.exit()[phase]);
            let (next, exponential) = pick(&ends);
            t += exponential / law.rate(phase);
            if next == law.phases() {
                return t;
            }
            phase = next;
        }
    };
    Sample::new((0..count).map(|_| time()).collect()).unwrap()
}

/// Standard errors of the maximum likelihood estimate: the information is the sum of the squared
/// scores at the true parameters, by central differences of the log-density.
fn standard_errors(sample: &Sample, truth: &[f64], law: &dyn Fn(&[f64]) -> PhaseType) -> Vec<f64> {
    let n = truth.len();
    let shifted = |i: usize, by: f64| {
        let mut parameters = truth.to_vec();
        parameters[i] *= 1.0 + by;
        law(&parameters)
    };
    let laws: Vec<_> = (0..n).map(|i| (shifted(i, -1e-5), shifted(i, 1e-5))).collect();
    let mut information = DMatrix::zeros(n, n);
    // Every tenth of the ordered times stands for ten.
    for &t in sample.times().iter().skip(5).step_by(10) {
        let score = DVector::from_iterator(
            n,
            laws.iter()
                .zip(truth)
                .map(|((low, high), p)| (high.density(t).ln() - low.density(t).ln()) / (2e-5 * p)),
        );
        information += 10.0 * &score * score.transpose();
    }
    information.try_inverse().unwrap().diagonal().iter().map(|v: &f64| v.sqrt()).collect()
}

#[track_caller]
fn recovered(
    sample: &Sample,
    found: &[f64],
    truth: &[f64],
    law: &dyn Fn(&[f64]) -> PhaseType,
    fit: &DataFit,
) {
    for ((a, b), error) in found.iter().zip(truth).zip(standard_errors(sample, truth, law)) {
        assert!((a - b).abs() < 4.0 * error, "{a} against {b} ± {error}");
    }
    let of_truth = law(truth).log_likelihood(sample.times());
    assert!(fit.log_likelihood > of_truth - 1e-3, "{} against {of_truth}", fit.log_likelihood);
    let stated = fit.law.log_likelihood(sample.times());
    close(fit.log_likelihood, stated, 1e-9 * stated.abs(), "log-likelihood");
}

fn fit_of(sample: &Sample, family: Family) -> (DataFit, DataFit) {
    let fits = DataFit::all(sample).unwrap();
    let chosen = DataFit::chosen(&fits).unwrap().clone();
    (fits.into_iter().find(|f| f.family == family).unwrap(), chosen)
}

#[test]
fn em_recovers_a_mixture_of_exponentials() {
    let law = |p: &[f64]| PhaseType::hyperexponential(&[1.0 - p[0], p[0]], &[p[1], p[2]]).unwrap();
    let truth = [0.1, 2.0, 0.2];
    let sample = draws(&law(&truth), 20_000, 1);
    let (fit, chosen) = fit_of(&sample, Family::Hyperexponential);
    let Fitted::Hyperexponential { probabilities, rates } = &fit.fitted else { panic!("{fit:?}") };
    recovered(&sample, &[probabilities[1], rates[0], rates[1]], &truth, &law, &fit);
    // The same law, written in two ways; both have three parameters.
    assert!(matches!(chosen.family, Family::Hyperexponential | Family::Coxian2), "{chosen:?}");
}

#[test]
fn em_recovers_a_coxian_law() {
    let law = |p: &[f64]| PhaseType::coxian(&[p[0], p[1]], &[p[2]]).unwrap();
    let truth = [4.0, 0.8, 0.5];
    let sample = draws(&law(&truth), 20_000, 2);
    let (fit, chosen) = fit_of(&sample, Family::Coxian2);
    let Fitted::Coxian { rates, continuation } = &fit.fitted else { panic!("{fit:?}") };
    recovered(&sample, &[rates[0], rates[1], continuation[0]], &truth, &law, &fit);
    assert!(matches!(chosen.family, Family::Hyperexponential | Family::Coxian2), "{chosen:?}");
}

#[test]
fn em_recovers_a_mixture_of_erlang_laws() {
    let law = |p: &[f64]| PhaseType::hyper_erlang(&[1.0 - p[0], p[0]], &[5, 2], &[p[1], p[2]]).unwrap();
    let truth = [0.3, 10.0, 0.5];
    let sample = draws(&law(&truth), 20_000, 3);
    let (fit, chosen) = fit_of(&sample, Family::HyperErlang);
    let Fitted::HyperErlang { probabilities, stages, rates } = &fit.fitted else { panic!("{fit:?}") };
    assert_eq!(stages, &[5, 2]);
    recovered(&sample, &[probabilities[1], rates[0], rates[1]], &truth, &law, &fit);
    assert_eq!(chosen.family, Family::HyperErlang);
}

#[test]
fn erlang_and_exponential_times_are_told_from_others() {
    let erlang = PhaseType::erlang(3, 2.0).unwrap();
    let sample = draws(&erlang, 5_000, 4);
    let (fit, chosen) = fit_of(&sample, Family::Erlang);
    assert_eq!(chosen.family, Family::Erlang);
    let Fitted::Erlang { stages, rate } = fit.fitted else { panic!("{fit:?}") };
    assert_eq!(stages, 3);
    close(rate, 2.0, 4.0 * 2.0 / (15_000.0_f64).sqrt(), "rate");
    let sample = draws(&PhaseType::exponential(0.5).unwrap(), 5_000, 5);
    let (_, chosen) = fit_of(&sample, Family::Exponential);
    assert_eq!(chosen.family, Family::Exponential);
}

#[test]
fn odd_data_are_fitted_or_refused() {
    for bad in [vec![], vec![1.0], vec![1.0, -1.0], vec![1.0, f64::NAN], vec![0.0, 0.0]] {
        assert!(Sample::new(bad).is_err());
    }
    let cases = [
        vec![1.0, 1.0],
        vec![0.0, 1.0],
        vec![1e-300, 1.0],
        vec![0.0; 100].into_iter().chain([1.0, 2.0, 3.0]).collect(),
        vec![1.0, 1e9],
        vec![3.0; 1000],
        (0..100).map(|i| f64::from(i) * 1e-9).collect(),
    ];
    for times in cases {
        let sample = Sample::new(times.clone()).unwrap();
        let fits = DataFit::all(&sample).unwrap();
        let chosen = DataFit::chosen(&fits).unwrap();
        assert!(chosen.law.mean().is_finite() && !chosen.log_likelihood.is_nan(), "{times:?}");
    }
}
