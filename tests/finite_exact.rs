//! Does the sampler draw from the process that the policy describes?
//!
//! The answer is computed by a chain that shares nothing with the sampler and keeps every server apart.

mod finite_support;

use finite_support::chain::{Chain, policies, systems};
use finite_support::{assert_near, measured, model, settings, tail};
use fluidlimit::finite::simulate;
use fluidlimit::model::Policy;

#[test]
fn stationary_measures_are_those_of_the_chain_with_every_server_kept_apart() {
    let mut seed = 0;
    for (arrival_rate, n, pools) in systems() {
        for policy in policies() {
            seed += 1;
            let model = model(arrival_rate, policy, &pools);
            let chain = Chain::new(&model, n);
            let law = chain.stationary();
            let runs = simulate(&model, &settings(n, 400.0, 40.0, seed), &()).unwrap().runs;
            let title = format!("{:?}, {pools:?}", model.policy);
            for (name, exact) in chain.measures(&law) {
                assert_near(&format!("{name} of {title}"), &measured(&runs, &name), exact, 0.05);
            }
            for (j, pool) in pools.iter().enumerate() {
                for k in 1..=pool.1.unwrap() {
                    let exact = chain.tail(&law, j, k);
                    let estimates = tail(&runs, j, k as usize);
                    assert_near(&format!("x_{k} of pool {j}, {title}"), &estimates, exact, 0.01);
                }
            }
        }
    }
}

#[test]
fn transient_states_are_those_of_the_chain() {
    let (_, n, pools) = systems().remove(5);
    for (seed, policy) in (0..).zip([Policy::jsq_d(2, false, false), Policy::pull(), Policy::jsq()]) {
        let model = model(1.0, policy, &pools);
        let chain = Chain::new(&model, n);
        let mut settings = settings(n, 4.0, 0.5, seed);
        settings.replications = 20_000;
        settings.paths = settings.replications;
        settings.sample_times = vec![0.0, 0.3, 1.0, 4.0];
        let summary = simulate(&model, &settings, &()).unwrap();
        for (i, &time) in settings.sample_times.iter().enumerate() {
            let law = chain.at(time);
            let snapshot = &summary.transient[i];
            assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            for (j, k) in [(0, 1), (0, 2), (1, 1), (1, 2)] {
                let exact = chain.tail(&law, j, u32::try_from(k).unwrap());
                let at = |tails: &Vec<f64>| tails.get(k - 1).copied().unwrap_or(0.0);
                let estimates: Vec<f64> = summary.paths.iter().map(|p| at(&p.tails[i][j])).collect();
                assert_near(&format!("x_{k} of pool {j} at {time}"), &estimates, exact, 0.01);
                let mean = estimates.iter().sum::<f64>() / 20_000.0;
                assert!((snapshot.tails[j][k - 1].value - mean).abs() < 1e-12);
            }
            let jobs: f64 = snapshot.tails.iter().flatten().map(|x| x.value).sum();
            assert!((snapshot.mean_jobs.value - jobs).abs() < 1e-12);
        }
    }
}
