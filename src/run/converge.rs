//! Does the fluid limit already hold at this n? The error of the fluid against finite n, over n.

use serde::Serialize;

/// Errors over n, each with the slope of its logarithm in log n.
#[derive(Debug, Clone, Serialize)]
pub struct Convergence {
    /// Largest deviation of a path of finite n from the fluid path over all recorded times, pools and
    /// levels, mean over replications. The theorem of Kurtz makes it fall as n^(-1/2).
    pub path: Curve,
    /// Difference between the long-run mean at finite n and the fixed point, for each measure. Of
    /// order 1/n where the drift is smooth.
    pub bias: Vec<Curve>,
}

/// One error over n.
#[derive(Debug, Clone, Serialize)]
pub struct Curve {
    /// What it is the error of.
    pub name: String,
    /// The fluid value; NaN where there is none (a path).
    pub fluid: f64,
    /// For each n: (n, error, half-width of its 95 % interval). Biases carry their sign.
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
