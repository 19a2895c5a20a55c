//! What a model file expects, looked up in what was computed.

use crate::fluid::{FixedPoint, Path};
use crate::model::Model;
use crate::spec::Expectation;
use serde::Serialize;

/// One expectation with what was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Checked {
    /// Name in the model file.
    pub name: String,
    /// Value expected.
    pub expected: f64,
    /// Allowed difference.
    pub tolerance: f64,
    /// Value found; `None` if the quantity does not exist for this system.
    pub found: Option<f64>,
    /// Is it within the tolerance?
    pub holds: bool,
    /// Where the expected value comes from.
    pub source: String,
}

/// Compares every expectation with the fluid limit.
#[must_use]
pub fn check(model: &Model, path: &Path, fixed: &FixedPoint, expect: &[Expectation]) -> Vec<Checked> {
    expect
        .iter()
        .map(|e| {
            let found = look_up(model, path, fixed, &e.name).filter(|v| v.is_finite());
            Checked {
                name: e.name.clone(),
                expected: e.value,
                tolerance: e.tolerance,
                found,
                holds: found.is_some_and(|v| (v - e.value).abs() <= e.tolerance),
                source: e.source.clone(),
            }
        })
        .collect()
}

fn look_up(model: &Model, path: &Path, fixed: &FixedPoint, name: &str) -> Option<f64> {
    let pool = |wanted: &str| model.pools.iter().position(|p| p.name == wanted);
    let parts: Vec<&str> = name.split('.').collect();
    match parts.as_slice() {
        ["relaxation_time"] => fixed.relaxation_time(),
        ["spectral_abscissa"] => fixed.spectral_abscissa,
        ["event", i, "time"] => path.events.get(i.parse::<usize>().ok()?.checked_sub(1)?).map(|e| e.time),
        ["x", name, k] => {
            let (j, k) = (pool(name)?, k.parse::<usize>().ok()?);
            match fixed.growth[j] {
                Some(_) => Some(model.pools[j].share),
                None => Some(fixed.tails[j].get(k.checked_sub(1)?).copied().unwrap_or(0.0)),
            }
        }
        [measure] => fixed.measures.get(measure).map(|v| v.value),
        [measure, name] => fixed.measures.pools[pool(name)?].get(measure).map(|v| v.value),
        _ => None,
    }
}
