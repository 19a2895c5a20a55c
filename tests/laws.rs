//! Are the service laws the ones of the textbooks, and are their functions right to the last digits?

mod common;

use common::{close, number, numbers};
use fluidlimit::model::{LawError, MomentFit, PhaseType};
use serde_json::Value;
use statrs::function::gamma::{gamma_lr, gamma_ur};

fn oracle() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracles/laws.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    file["laws"].clone()
}

#[track_caller]
fn relative(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!(
        (a - b).abs() <= tolerance * b.abs(),
        "{what}: {a} against {b}, off by {:e}",
        (a / b - 1.0).abs()
    );
}

#[test]
fn coxian_laws_have_the_known_times_in_phases_scv_and_transform() {
    let laws = oracle();
    let laws = laws.as_object().unwrap();
    assert_eq!(laws.len(), 10);
    for (name, o) in laws {
        let (rates, mut p) = (numbers(&o["mu"]), numbers(&o["p"]));
        p.pop();
        let law = PhaseType::coxian(&rates, &p).unwrap();
        close(law.mean(), 1.0, 1e-14, name);
        relative(law.scv(), number(&o["scv"]), 1e-14, name);
        for (v, known) in law.time_in_phases().iter().zip(numbers(&o["v"])) {
            relative(*v, known, 1e-14, name);
        }
        relative(law.laplace(1.0), number(&o["lst_at_1"]), 1e-14, name);
        relative(law.laplace(0.3), number(&o["lst_at_0_3"]), 1e-14, name);
    }
}

#[test]
fn constructions_give_the_known_rates() {
    let laws = oracle();
    let same = |law: &PhaseType, name: &str| {
        let o = &laws[name];
        for (m, mu) in numbers(&o["mu"]).into_iter().enumerate() {
            relative(law.rate(m), mu, 1e-14, name);
            if m + 1 < law.phases() {
                relative(law.moves()[m][m + 1] / law.rate(m), numbers(&o["p"])[m], 1e-13, name);
            }
        }
    };
    let marie = |scv: f64| PhaseType::from_moments(1.0, scv).unwrap();
    assert_eq!(marie(0.75).1, MomentFit::Coxian2);
    same(&marie(0.75).0, "marie.75");
    assert_eq!(marie(0.3).1, MomentFit::MixedErlang { stages: 4 });
    same(&marie(0.3).0, "mixerl.3");
    let (h2, fit) = marie(4.0);
    assert_eq!(fit, MomentFit::Hyperexponential);
    let h2 = PhaseType::hyperexponential_as_coxian(h2.initial(), h2.exit()).unwrap();
    same(&h2, "h2bal4");
    let h3 = PhaseType::hyperexponential_as_coxian(&[0.7, 0.2, 0.1], &[4.0, 1.0, 0.2]).unwrap();
    same(&h3.with_mean(1.0).unwrap(), "h3cox");
    assert_eq!(marie(1.0).1, MomentFit::Exponential);
    assert_eq!(marie(0.25).1, MomentFit::MixedErlang { stages: 4 });
    assert_eq!(marie(0.2).1, MomentFit::MixedErlang { stages: 5 });
}

#[test]
fn moments_are_met() {
    for mean in [1e-6, 0.3, 1.0, 7.0, 1e9] {
        for scv in [0.0005, 0.01, 0.0123, 0.25, 0.3, 0.49, 0.5, 0.77, 1.0, 1.5, 2.0, 10.0, 100.0, 1e4] {
            let (law, _) = PhaseType::from_moments(mean, scv).unwrap();
            relative(law.mean(), mean, 1e-12, "mean");
            relative(law.scv(), scv, 1e-12, "scv");
        }
    }
    for (mean, scv) in [(0.0, 1.0), (1.0, 0.0), (1.0, 4e-4), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
        assert!(matches!(PhaseType::from_moments(mean, scv), Err(LawError::Parameter { .. })));
    }
}

#[test]
fn erlang_has_its_closed_forms() {
    for (stages, rate) in [(1, 2.0), (2, 0.5), (4, 4.0), (20, 3.0), (100, 10.0)] {
        let law = PhaseType::erlang(stages, rate).unwrap();
        #[allow(clippy::cast_precision_loss)]
        let k = stages as f64;
        relative(law.mean(), k / rate, 1e-14, "mean");
        relative(law.scv(), 1.0 / k, 1e-13, "scv");
        relative(law.moment(3), k * (k + 1.0) * (k + 2.0) / rate.powi(3), 1e-13, "third moment");
        for x in [0.01, 0.3, 0.9, 1.0, 1.2, 2.0, 4.0] {
            let t = x * law.mean();
            close(law.survival(t), gamma_ur(k, rate * t), 1e-13, "survival");
            close(law.distribution(t), gamma_lr(k, rate * t), 1e-13, "distribution");
            close(law.survival(t) + law.distribution(t), 1.0, 1e-13, "sum");
            let log_density =
                k * rate.ln() + (k - 1.0) * t.ln() - rate * t - statrs::function::gamma::ln_gamma(k);
            relative(law.density(t), log_density.exp(), 2e-13, "density");
            relative(law.hazard(t), law.density(t) / law.survival(t), 1e-14, "hazard");
        }
    }
    // Far out nothing is lost: Erlang-2 survives t with probability (1 + t) exp(-t).
    let law = PhaseType::erlang(2, 1.0).unwrap();
    relative(law.survival(600.0), 601.0 * (-600.0_f64).exp(), 1e-12, "tail");
    relative(law.distribution(1e-8), 0.5e-16 * (1.0 - 2e-8 / 3.0), 1e-12, "start");
}

#[test]
fn mixtures_and_coxian_laws_with_distinct_rates_have_their_closed_forms() {
    let (p, r) = ([0.6, 0.3, 0.1], [5.0, 1.0, 0.01]);
    let law = PhaseType::hyperexponential(&p, &r).unwrap();
    let sum = |f: &dyn Fn(f64, f64) -> f64| p.iter().zip(&r).map(|(&p, &r)| f(p, r)).sum::<f64>();
    for t in [0.0, 1e-9, 0.1, 1.0, 30.0, 2000.0] {
        relative(law.survival(t), sum(&|p, r| p * (-r * t).exp()), 1e-14, "survival");
        relative(law.density(t), sum(&|p, r| p * r * (-r * t).exp()), 1e-14, "density");
        close(law.distribution(t), sum(&|p, r| -p * (-r * t).exp_m1()), 1e-15, "distribution");
    }
    // Two phases of very different rates: the second is longer than any number of steps.
    for (a, b, p) in [(2.0, 0.01, 0.005), (1.0, 1e-4, 0.3), (1e7, 1.0, 0.9), (1.0, 3.0, 0.5)] {
        let law = PhaseType::coxian(&[a, b], &[p]).unwrap();
        for t in [1e-3, 0.5, 3.0, 50.0, 700.0 / b] {
            let known = (1.0 - p * a / (a - b)) * (-a * t).exp() + p * a / (a - b) * (-b * t).exp();
            if known > 1e-290 {
                relative(law.survival(t), known, 1e-12, &format!("survival {a} {b} {t}"));
            }
        }
    }
}

#[test]
fn a_mixture_of_two_exponentials_is_a_coxian_law() {
    for (w, fast, slow) in [(0.9, 2.0, 0.2), (0.5, 10.0, 0.01), (0.99, 1.0, 0.9), (0.3, 1.0, 5.0)] {
        let (p, r) = ([w, 1.0 - w], [fast, slow]);
        let mixture = PhaseType::hyperexponential(&p, &r).unwrap();
        let coxian = PhaseType::hyperexponential_as_coxian(&p, &r).unwrap();
        assert!(coxian.rate(0) >= coxian.rate(1));
        for t in [0.0, 0.01, 0.5, 1.0, 5.0, 100.0] {
            let what = format!("density at {t} of {w} {fast} {slow}");
            close(coxian.density(t), mixture.density(t), 1e-12 * mixture.density(0.0), &what);
        }
    }
}

#[test]
fn quantiles_invert_the_distribution_function() {
    let laws = [
        PhaseType::erlang(7, 2.0).unwrap(),
        PhaseType::hyperexponential(&[0.9, 0.1], &[3.0, 0.01]).unwrap(),
        PhaseType::coxian(&[1e4, 1.0, 0.5], &[0.5, 0.9]).unwrap(),
    ];
    for law in &laws {
        for p in [1e-9, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0 - 1e-9] {
            let t = law.quantile(p);
            relative(law.distribution(t), p, 1e-11, "distribution");
            close(law.survival(t), 1.0 - p, 1e-15 + 1e-11 * (1.0 - p), "survival");
        }
        assert_eq!((law.quantile(0.0), law.quantile(1.0)), (0.0, f64::INFINITY));
    }
    let law = PhaseType::exponential(3.0).unwrap();
    relative(law.quantile(0.5), 2.0_f64.ln() / 3.0, 1e-15, "median");
}

#[test]
fn the_equilibrium_law_has_survival_over_mean_as_its_density() {
    for law in [
        PhaseType::erlang(4, 2.0).unwrap(),
        PhaseType::coxian(&[2.0, 0.5], &[0.25]).unwrap(),
        PhaseType::hyperexponential(&[0.5, 0.5], &[1.0, 4.0]).unwrap(),
    ] {
        let rest = law.equilibrium().unwrap();
        relative(rest.mean(), 0.5 * (1.0 + law.scv()) * law.mean(), 1e-13, "mean");
        for t in [0.0, 0.3, 1.0, 4.0] {
            relative(rest.density(t), law.survival(t) / law.mean(), 1e-12, "density");
        }
    }
}

#[test]
fn phases_may_come_again() {
    // Two phases in a loop: T = [[-3, 2], [1, -2]], eigenvalues -1 and -4.
    let generator = [vec![-3.0, 2.0], vec![1.0, -2.0]];
    let law = PhaseType::from_generator(&[1.0, 0.0], &generator).unwrap();
    // exp(Tt) 1 = 1 exp(-t), since T 1 = -1.
    for t in [0.1, 1.0, 10.0, 600.0] {
        relative(law.survival(t), (-t).exp(), 1e-12, "survival");
    }
    relative(law.survival(5000.0_f64.min(700.0)), (-700.0_f64).exp(), 1e-12, "survival far out");
    relative(law.mean(), 1.0, 1e-15, "mean");
    assert!(PhaseType::from_generator(&[1.0], &[vec![1.0]]).is_err());
    assert!(PhaseType::from_generator(&[1.0, 0.0], &[vec![-1.0, 2.0], vec![0.0, -1.0]]).is_err());
    let stuck = PhaseType::from_generator(&[1.0, 0.0], &[vec![-1.0, 1.0], vec![2.0, -2.0]]);
    assert_eq!(stuck, Err(LawError::NeverEnds { phase: 1 }));
}

#[test]
fn the_largest_law_is_quick() {
    let law = PhaseType::erlang(PhaseType::MOST_PHASES, 2000.0).unwrap();
    relative(law.scv(), 1.0 / 2000.0, 1e-11, "scv");
    close(law.survival(1.0) + law.distribution(1.0), 1.0, 1e-12, "sum");
    assert!(PhaseType::erlang(PhaseType::MOST_PHASES + 1, 1.0).is_err());
    assert!(PhaseType::erlang(0, 1.0).is_err());
}
