//! What several test files share: models written in Rust, and the oracles read from JSON.
#![allow(dead_code)]

use fluidlimit::model::{Model, PhaseType, Policy, Pool};
use serde_json::Value;

/// A model with exponential pools (share, rate, buffer).
pub fn model(arrival_rate: f64, pools: &[(f64, f64, Option<u32>)], policy: Policy) -> Model {
    let pools = pools
        .iter()
        .enumerate()
        .map(|(j, &(share, rate, buffer))| {
            Pool::new(format!("p{}", j + 1), share, buffer, PhaseType::exponential(rate).unwrap())
        })
        .collect();
    system(arrival_rate, pools, policy)
}

/// A model with these pools.
pub fn system(arrival_rate: f64, pools: Vec<Pool>, policy: Policy) -> Model {
    Model { name: "test".into(), description: String::new(), arrival_rate, pools, policy }
}

/// The file of oracles for single-router systems.
pub fn oracles() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracles/pull.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A decimal string or a number.
pub fn number(v: &Value) -> f64 {
    match v {
        Value::String(s) => s.trim().parse().unwrap_or_else(|_| panic!("not a number: {s}")),
        Value::Number(n) => n.as_f64().unwrap(),
        other => panic!("not a number: {other}"),
    }
}

/// A list of numbers.
pub fn numbers(v: &Value) -> Vec<f64> {
    v.as_array().unwrap().iter().map(number).collect()
}

/// Asserts |a - b| <= tolerance, with a message that shows both.
#[track_caller]
pub fn close(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance, "{what}: {a} against {b}, off by {:e}", (a - b).abs());
}
