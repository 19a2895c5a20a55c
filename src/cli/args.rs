//! What can be typed.

use super::output::Output;
use crate::spec::LARGEST_SIZE;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Fluid limits of large service systems, checked by exact simulation at finite n.
#[derive(Debug, Parser)]
#[command(name = "fluidlimit", version, about, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 done; 1 done, but an expectation of the model was missed; 2 usage or \
model file; 3 numerical or I/O failure; 130 interrupted, finished work kept.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(super) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Read a model and say what it is, without solving it
    #[command(after_help = "Examples:\n  fluidlimit check model.toml\n  fluidlimit check --format json -")]
    Check(Common),
    /// Integrate the fluid limit from its start, find its fixed point, check the model's expectations
    #[command(after_help = "Examples:\n  fluidlimit solve model.toml\n  fluidlimit solve model.toml --plot \
path.svg\n  fluidlimit solve model.toml --set arrivals.rate=0.9 --format json --out result.json")]
    Solve(Common),
    /// Simulate the system exactly at finite n, beside the fluid
    #[command(
        after_help = "Examples:\n  fluidlimit simulate model.toml\n  fluidlimit simulate model.toml --n \
50,500 --seed 7\n  fluidlimit simulate model.toml --n 50 --sampler servers\n  fluidlimit simulate model.toml --set finite.replications=100 --plot levels.svg"
    )]
    Simulate(SimulateOptions),
    /// Solve the chain of n servers exactly, for small n, beside the fluid
    #[command(
        after_help = "Examples:\n  fluidlimit exact model.toml --n 3\n  fluidlimit exact model.toml --n 2,3,4 \
--format json --out exact.json\n  fluidlimit exact model.toml --n 3 --set pools.fast.buffer=5"
    )]
    Exact(Common),
    /// Measure how the fluid's error falls with n, and fit its slope
    #[command(
        after_help = "Examples:\n  fluidlimit converge model.toml\n  fluidlimit converge model.toml --n \
100,1000,10000 --plot error.svg\n  fluidlimit converge model.toml --format csv --out error.csv"
    )]
    Converge(Common),
    /// Draw a figure: the path, the level distribution, or the convergence
    #[command(after_help = "Examples:\n  fluidlimit plot model.toml --plot path.svg\n  fluidlimit plot \
model.toml --kind levels --plot levels.png\n  fluidlimit plot model.toml --kind convergence --plot error.svg")]
    Plot(PlotOptions),
    /// Fit service laws to measured service times, and print the best for the model file
    #[command(
        after_help = "Examples:\n  fluidlimit fit times.csv\n  fluidlimit fit log.csv --column seconds \
--plot fit.svg\n  fluidlimit fit times.csv --format json --out fit.json"
    )]
    Fit(FitOptions),
}

/// Samplers of finite n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SamplerChoice {
    /// Numbers of servers per level: any n
    Counts,
    /// Servers one by one: also quantiles of waiting and response times
    Servers,
}

/// Figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// Tails over time, fluid and finite n
    Trajectory,
    /// Servers by number of jobs, in the long run
    Levels,
    /// Errors over n
    Convergence,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub(super) struct Common {
    /// The model file; `-` reads it from standard input
    pub model: PathBuf,
    /// Override a key of the model: arrivals.rate=0.9, pools.fast.share=0.4, policy.jsq-d.d=3
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Numbers of servers to simulate, instead of the model's
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=LARGEST_SIZE))]
    pub n: Vec<u64>,
    /// Seed of all random numbers, instead of the model's
    #[arg(long)]
    pub seed: Option<u64>,
    /// Threads; the result does not depend on it [default: one per core]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Say more: all levels, statistics of the solver
    #[arg(long, short)]
    pub verbose: bool,
    #[command(flatten)]
    pub output: Output,
}

/// What `simulate` takes.
#[derive(Debug, Clone, Args)]
pub(super) struct SimulateOptions {
    /// What to sample
    #[arg(long, value_enum, default_value_t = SamplerChoice::Counts)]
    pub sampler: SamplerChoice,
    #[command(flatten)]
    pub common: Common,
}

/// What `fit` takes.
#[derive(Debug, Clone, Args)]
pub(super) struct FitOptions {
    /// A CSV file of service times; `-` reads it from standard input
    pub data: PathBuf,
    /// The column that holds them: a name of the header, or a number counted from 1
    #[arg(long)]
    pub column: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// What `plot` takes.
#[derive(Debug, Clone, Args)]
pub(super) struct PlotOptions {
    /// Which figure
    #[arg(long, value_enum, default_value_t = Kind::Trajectory)]
    pub kind: Kind,
    #[command(flatten)]
    pub common: Common,
}
