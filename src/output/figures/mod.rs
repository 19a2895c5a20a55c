//! Results as figures: which numbers are drawn, and how they are called.

mod convergence;
mod levels;
mod survival;
mod trajectory;

pub use convergence::convergence;
pub use levels::levels;
pub use survival::survival;
pub use trajectory::{TailChoice, default_tails, trajectory};

use super::table::number;
use crate::finite::Summary;
use crate::model::Model;

/// The parameters in one line.
fn parameters(model: &Model) -> String {
    const MOST: usize = 4;
    let mut pools: Vec<String> = model
        .pools
        .iter()
        .take(MOST)
        .map(|p| {
            let buffer = p.buffer.map_or_else(String::new, |b| format!(", buffer {b}"));
            format!("{}: share {}, rate {}{buffer}", p.name, short(p.share), short(p.service_rate()))
        })
        .collect();
    if model.pools.len() > MOST {
        pools.push(format!("and {} more pools", model.pools.len() - MOST));
    }
    format!(
        "{}, arrival rate {} per server, load {}; {}",
        model.policy.label(),
        short(model.arrival_rate),
        short(model.load()),
        pools.join("; ")
    )
}

/// A parameter to four digits.
fn short(x: f64) -> String {
    if x > 0.0 && x.is_finite() {
        let unit = 10f64.powf(x.log10().floor() - 3.0);
        number((x / unit).round() * unit)
    } else {
        number(x)
    }
}

/// At most `most` of the runs, the smallest and the largest n among them.
fn spread_out(runs: &[Summary], most: usize) -> Vec<&Summary> {
    if runs.len() <= most {
        return runs.iter().collect();
    }
    (0..most).map(|i| &runs[i * (runs.len() - 1) / (most - 1).max(1)]).collect()
}
