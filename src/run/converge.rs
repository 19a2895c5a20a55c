//! Does the fluid limit already hold at this n? The error of the fluid against finite n, over n.

use crate::finite::{self, Summary};
use crate::fluid::{FixedPoint, Path};
use crate::model::{Model, Value};
use serde::Serialize;

/// Errors over n, each with the slope of its logarithm in log n.
#[derive(Debug, Clone, Serialize)]
pub struct Convergence {
    /// Largest deviation of a path of finite n from the fluid path over all recorded times, pools and
    /// levels, mean over replications. The theorem of Kurtz makes it fall as n^(-1/2).
    pub path: Curve,
    /// Difference between the long-run mean at finite n and the fixed point, for each measure. Of
    /// order 1/n where the drift is smooth. Empty where there is no fixed point.
    pub bias: Vec<Curve>,
}

/// One error over n.
#[derive(Debug, Clone, Serialize)]
pub struct Curve {
    /// What it is the error of.
    pub name: String,
    /// The fluid value; NaN where there is none (a path) or one for each n.
    pub fluid: f64,
    /// For each n: (n, error, half-width of its 95 % interval, infinite for a single replication). Biases
    /// carry their sign.
    pub points: Vec<(u64, f64, f64)>,
    /// The fitted slope; `None` where fewer than two errors stand out from their intervals.
    pub slope: Option<Slope>,
}

/// Slope of log |error| in log n by weighted regression.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Slope {
    /// The slope.
    pub value: f64,
    /// Half-width of its 95 % interval.
    pub half_width: f64,
    /// Number of sizes whose error stands out from its interval, and was used.
    pub sizes: usize,
}

/// A run with its fluid: the same for all n, unless the model depends on n.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// The fluid path, at the times of the run's paths.
    pub path: &'a Path,
    /// The fixed point.
    pub fixed: &'a FixedPoint,
    /// The run, with all its paths kept.
    pub run: &'a Summary,
}

impl Convergence {
    /// Compares runs at several n, each with its fluid.
    #[must_use]
    pub fn new(model: &Model, pairs: &[Pair<'_>]) -> Self {
        let deviations = pairs.iter().filter_map(|Pair { path, run, .. }| {
            let deviation = finite::interval(run.paths.iter().map(|p| largest_deviation(path, p)))?;
            Some((run.n, deviation.value, deviation.half_width.unwrap_or(f64::INFINITY)))
        });
        let path = Curve::new("largest path deviation".into(), f64::NAN, deviations.collect());
        let proper = pairs.iter().all(|p| p.fixed.is_proper());
        Self { path, bias: if proper { biases(model, pairs) } else { Vec::new() } }
    }
}

fn largest_deviation(fluid: &Path, finite: &finite::Path) -> f64 {
    let pairs = fluid.snapshots.iter().zip(&finite.tails);
    pairs
        .flat_map(|(snapshot, tails)| {
            snapshot.tails.iter().zip(tails).flat_map(|(a, b)| {
                let at = |x: &[f64], k: usize| x.get(k).copied().unwrap_or(0.0);
                (0..a.len().max(b.len())).map(move |k| (at(a, k) - at(b, k)).abs())
            })
        })
        .fold(0.0, f64::max)
}

fn biases(model: &Model, pairs: &[Pair<'_>]) -> Vec<Curve> {
    type Of<'a, T> = &'a dyn Fn(&T) -> Option<f64>;
    let curve = |name: String, fluid: Of<FixedPoint>, finite: &dyn Fn(&Summary) -> Option<Value>| {
        let point = |Pair { fixed, run, .. }: &Pair<'_>| {
            let (fluid, seen) = (fluid(fixed)?, finite(run)?);
            Some((run.n, seen.value - fluid, seen.half_width.unwrap_or(f64::INFINITY)))
        };
        let values: Vec<f64> = pairs.iter().filter_map(|p| fluid(p.fixed)).collect();
        // One value, if the fluid is the same for all n.
        let value = values.first().copied().filter(|first| values.iter().all(|x| x == first));
        Curve::new(name, value.unwrap_or(f64::NAN), pairs.iter().filter_map(point).collect())
    };
    let mut curves = Vec::new();
    for name in ["p_wait", "p_block", "mean_jobs"] {
        let bias =
            curve(name.into(), &|x| x.measures.get(name).map(|v| v.value), &|run| run.measures.get(name));
        if !bias.points.is_empty() {
            curves.push(bias);
        }
    }
    for (j, pool) in model.pools.iter().enumerate() {
        for k in 1..=2 {
            let fluid = move |x: &FixedPoint| Some(x.tails[j].get(k - 1).copied().unwrap_or(0.0));
            let at = move |run: &Summary| Some(run.tails[j].get(k - 1).copied().unwrap_or(Value::from(0.0)));
            curves.push(curve(format!("x.{}.{k}", pool.name), &fluid, &at));
        }
    }
    curves
}

impl Curve {
    fn new(name: String, fluid: f64, points: Vec<(u64, f64, f64)>) -> Self {
        let slope = Slope::fit(&points);
        Self { name, fluid, points, slope }
    }
}

impl Slope {
    /// Fits the errors that stand out from their intervals, each weighted by its precision; the
    /// interval is widened where the points scatter about the line by more than their own intervals.
    #[must_use]
    pub fn fit(points: &[(u64, f64, f64)]) -> Option<Self> {
        const NORMAL: f64 = 1.959_963_984_540_054;
        // log |error|, its standard deviation to first order, and log n.
        #[allow(clippy::cast_precision_loss)]
        let used: Vec<(f64, f64, f64)> = points
            .iter()
            .filter(|(_, error, half)| error.abs() > *half && half.is_finite() && *half > 0.0)
            .map(|&(n, error, half)| ((n as f64).ln(), error.abs().ln(), half / NORMAL / error.abs()))
            .collect();
        if used.len() < 2 {
            return None;
        }
        let weight = |sd: f64| 1.0 / (sd * sd);
        let total: f64 = used.iter().map(|p| weight(p.2)).sum();
        let mean = |f: &dyn Fn(&(f64, f64, f64)) -> f64| {
            used.iter().map(|p| weight(p.2) * f(p)).sum::<f64>() / total
        };
        let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
        let spread: f64 = used.iter().map(|p| weight(p.2) * (p.0 - x).powi(2)).sum();
        if spread <= 0.0 {
            return None;
        }
        let value = used.iter().map(|p| weight(p.2) * (p.0 - x) * (p.1 - y)).sum::<f64>() / spread;
        let misfit: f64 = used.iter().map(|p| weight(p.2) * (p.1 - y - value * (p.0 - x)).powi(2)).sum();
        #[allow(clippy::cast_precision_loss)]
        let free = (used.len() - 2) as f64;
        let widen = if free > 0.0 { (misfit / free).max(1.0) } else { 1.0 };
        Some(Self { value, half_width: NORMAL * (widen / spread).sqrt(), sizes: used.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::Slope;

    #[test]
    fn an_exact_power_has_its_slope_and_noise_is_left_out() {
        let points: Vec<_> = [100u64, 1000, 10_000]
            .iter()
            .map(|&n| (n, 3.0 / (n as f64).sqrt(), 0.01 / (n as f64).sqrt()))
            .collect();
        let slope = Slope::fit(&points).unwrap();
        assert!((slope.value + 0.5).abs() < 1e-12 && slope.half_width < 0.01 && slope.sizes == 3);
        assert_eq!(Slope::fit(&[(10, 0.1, 0.2), (100, 0.1, 0.01)]), None);
        // Signs do not matter.
        let signed = Slope::fit(&[(10, -0.1, 0.001), (100, -0.01, 0.0001)]).unwrap();
        assert!((signed.value + 1.0).abs() < 1e-12);
    }
}
