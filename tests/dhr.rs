//! Service with a decreasing hazard rate under PULL: the paths from idle, against the renewal equation
//! (one pool: x_1(t) = lambda times the integral of the survival function) and values computed outside
//! this program for two pools.
//!
//! The laws are mixtures of exponentials, so a path is off by at most lambda times the integral of the
//! distance of the survival functions. With 60 phases that is rounding for Lomax and gamma service, and
//! about 1e-7 for Weibull service, whose fastest rates have no end.

mod common;

use common::{close, numbers, oracles, system};
use fluidlimit::fluid::{Plan, fixed_point, integrate};
use fluidlimit::model::{Decreasing, Initial, Model, PhaseType, Policy, Pool, Top};

const PHASES: usize = 60;

fn mixture(law: Decreasing) -> PhaseType {
    law.mixture(PHASES).unwrap().0
}

fn pull(arrival_rate: f64, pools: Vec<Pool>) -> Model {
    system(arrival_rate, pools, Policy::pull())
}

fn x1(model: &Model, times: &[f64]) -> Vec<Vec<f64>> {
    let plan = Plan { initial: Initial::Idle, times: times.to_vec(), tolerance: 1e-11, cut: Top::Reflecting };
    let path = integrate(model, &plan).unwrap();
    assert!(path.events.is_empty() && path.mass_defect < 1e-12 && path.lowest >= -1e-14);
    path.snapshots.into_iter().map(|s| s.tails.iter().map(|x| x[0]).collect()).collect()
}

#[test]
fn one_pool_from_idle() {
    let p9 = &oracles()["P9_DHR_homogeneous_from_idle"];
    let times = numbers(&p9["t"]);
    let h2 = PhaseType::hyperexponential(&[0.9, 0.1], &[2.0, 2.0 / 11.0]).unwrap();
    for (key, law, bound) in [
        ("x1_lomax", mixture(Decreasing::Lomax { shape: 2.5, scale: 1.5 }), 1e-9),
        ("x1_gamma", mixture(Decreasing::Gamma { shape: 0.5, scale: 2.0 }), 1e-9),
        ("x1_weibull", mixture(Decreasing::Weibull { shape: 0.5, scale: 0.5 }), 5e-7),
        ("x1_hyperexp", h2, 1e-9),
    ] {
        let model = pull(0.8, vec![Pool::new("all", 1.0, Some(3), law)]);
        for ((x, expected), t) in x1(&model, &times).iter().zip(numbers(&p9[key])).zip(&times) {
            close(x[0], expected, bound, &format!("{key} at {t}"));
        }
        // In the long run only the mean counts.
        close(fixed_point(&model).unwrap().tails[0][0], 0.8, 1e-12, key);
    }
}

#[test]
fn two_pools_from_idle() {
    let p10 = &oracles()["P10_DHR_two_pools_from_idle"];
    let times = numbers(&p10["t"]);
    let model = pull(
        1.0,
        vec![
            Pool::new("lomax", 0.5, None, mixture(Decreasing::Lomax { shape: 3.0, scale: 1.0 })),
            Pool::new("h2", 0.5, None, PhaseType::hyperexponential(&[0.9, 0.1], &[2.0, 0.2]).unwrap()),
        ],
    );
    let (first, second) = (numbers(&p10["x1_pool1"]), numbers(&p10["x1_pool2"]));
    for (i, x) in x1(&model, &times).iter().enumerate() {
        close(x[0], first[i], 1e-9, &format!("pool 1 at {}", times[i]));
        close(x[1], second[i], 1e-9, &format!("pool 2 at {}", times[i]));
    }
    let x = fixed_point(&model).unwrap();
    for (j, nu) in numbers(&p10["fixed_point"]["nu"]).into_iter().enumerate() {
        close(x.tails[j][0], nu, 1e-12, "fixed point");
    }
}
