//! What the commands share: reading the model, running both readings, and handing out the result.

use super::args::Common;
use super::error::CliError;
use crate::finite::{Control, FiniteError, Settings, Summary};
use crate::fluid::{self, FixedPoint, Path, Plan};
use crate::model::{Model, PhaseType, Top};
use crate::output::document::{
    ByPool, DataLikelihood, Document, FinitePart, FluidPart, ModelPart, RunPart, ServicePart, SizePart,
};
use crate::output::plot::Figure;
use crate::output::{csv, table};
use crate::run;
use crate::spec::{self, Fit, Service, Source, System};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// One command on one model.
pub(super) struct Session<'a> {
    pub options: &'a Common,
    source: Source,
    pub system: System,
    pub threads: usize,
}

/// The fluid reading of a model.
pub(super) struct Fluid {
    pub model: Model,
    pub path: Path,
    pub truncation: f64,
    pub fixed: FixedPoint,
}

/// A sampler of finite n.
pub(super) type Sample = fn(&Model, &Settings, &dyn Control) -> Result<Summary, FiniteError>;

/// Set by the first Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

impl<'a> Session<'a> {
    /// Reads the model and checks that the outputs can be written.
    pub fn open(options: &'a Common) -> Result<Self, CliError> {
        options.output.check()?;
        let source = Source::from(options.model.as_path());
        let mut system = spec::load(&source, &options.set)?;
        if let (Some(_), Some(&largest)) = (system.taken_at, options.n.iter().max()) {
            system = spec::load_at(&source, &options.set, Some(largest))?;
        }
        if !options.n.is_empty() {
            system.finite.sizes.clone_from(&options.n);
        }
        system.finite.seed = options.seed.unwrap_or(system.finite.seed);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = options.threads.map_or(cores, usize::from);
        Ok(Self { options, source, system, threads })
    }

    /// Refuses a model with a single replication where errors over n are wanted.
    pub fn needs_intervals(&self) -> Result<(), CliError> {
        if self.system.finite.replications < 2 {
            let advice = "an error over n needs an interval: set finite.replications to 2 or more";
            return Err(CliError::Usage(advice.into()));
        }
        Ok(())
    }

    /// Refuses a model that depends on n where one fluid is wanted and no n, or several, are given.
    pub fn needs_one_size(&self) -> Result<(), CliError> {
        if self.system.taken_at.is_some() && self.options.n.len() != 1 {
            let advice = "this model has formulas of n: say for which number of servers with --n N";
            return Err(CliError::Usage(advice.into()));
        }
        Ok(())
    }

    /// The model with n servers: its formulas taken there.
    pub fn model_at(&self, n: u64) -> Result<Model, CliError> {
        match self.system.taken_at {
            Some(taken_at) if taken_at != n => {
                Ok(spec::load_at(&self.source, &self.options.set, Some(n))?.model)
            }
            _ => Ok(self.system.model.clone()),
        }
    }

    /// The fluid of each size: one for all, unless the model depends on n.
    pub fn fluids(&self, times: &[f64]) -> Result<Vec<Fluid>, CliError> {
        if self.system.taken_at.is_none() {
            return Ok(vec![self.fluid(Some(times.to_vec()))?]);
        }
        let sizes = self.system.finite.sizes.iter();
        sizes.map(|&n| self.fluid_of(self.model_at(n)?, Some(times.to_vec()))).collect()
    }

    /// The model's parameters and fluid at each n, where `fluids` hold more than one.
    pub fn sizes(&self, fluids: &[Fluid]) -> Vec<SizePart> {
        let several = if fluids.len() > 1 { fluids } else { &[] };
        let part = |(&n, fluid): (&u64, &Fluid)| SizePart {
            n,
            policy: fluid.model.policy.label(),
            arrival_rate: fluid.model.arrival_rate,
            load: fluid.model.load(),
            fluid: fluid.fixed.measures.clone(),
        };
        self.system.finite.sizes.iter().zip(several).map(part).collect()
    }

    /// Of several fluids the one that the document's heading describes.
    pub fn described<'f>(&self, fluids: &'f [Fluid]) -> &'f Fluid {
        let at = self.system.finite.sizes.iter().position(|n| Some(*n) == self.system.taken_at);
        &fluids[at.unwrap_or(0)]
    }

    /// The fluid path at `times` (the model's own points if `None`) and the fixed point.
    pub fn fluid(&self, times: Option<Vec<f64>>) -> Result<Fluid, CliError> {
        self.fluid_of(self.system.model.clone(), times)
    }

    fn fluid_of(&self, model: Model, times: Option<Vec<f64>>) -> Result<Fluid, CliError> {
        let s = &self.system.fluid;
        let plan = Plan {
            initial: s.initial.clone(),
            times: times.unwrap_or_else(|| grid(s.horizon, s.points)),
            tolerance: s.tolerance,
            cut: Top::Reflecting,
        };
        let (path, truncation) = fluid::bracketed(&model, &plan)?;
        let fixed = fluid::fixed_point(&model)?;
        Ok(Fluid { model, path, truncation, fixed })
    }

    /// Simulates each n, with snapshots at `times`; stops early when interrupted. `fluids` as
    /// [`Session::fluids`] gives them.
    pub fn finite(
        &self,
        sample: Sample,
        fluids: &[Fluid],
        times: &[f64],
        all_paths: bool,
    ) -> Result<Vec<Summary>, CliError> {
        const LEVELS: u32 = 1000;
        const PATHS: u32 = 3;
        let s = &self.system.finite;
        catch_interrupts();
        let progress = self.progress(u64::from(s.replications) * s.sizes.len() as u64);
        let workers = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads)
            .build()
            .map_err(|e| CliError::Usage(format!("cannot start {} threads: {e}", self.threads)))?;
        let mut runs = Vec::new();
        for (&n, fluid) in s.sizes.iter().zip(one_each(fluids, s.sizes.len())) {
            let warmup = s.warmup.unwrap_or_else(|| {
                // Long enough to forget the start, as far as the fluid knows; half of the run at most.
                fluid.fixed.relaxation_time().map_or(0.5, |t| (10.0 * t / s.horizon).min(0.5)) * s.horizon
            });
            let settings = Settings {
                n,
                replications: s.replications,
                horizon: s.horizon,
                warmup,
                seed: s.seed,
                initial: self.system.fluid.initial.clone(),
                sample_times: times.iter().copied().filter(|t| *t <= s.horizon).collect(),
                levels: LEVELS,
                paths: if all_paths { s.replications } else { PATHS },
            };
            match workers.install(|| sample(&fluid.model, &settings, &progress)) {
                Ok(run) => runs.push(run),
                Err(FiniteError::Interrupted) if !runs.is_empty() => {}
                Err(e) => return Err(e.into()),
            }
            if INTERRUPTED.load(Ordering::Relaxed) {
                break;
            }
        }
        progress.bar.finish_and_clear();
        Ok(runs)
    }

    fn progress(&self, tasks: u64) -> Progress {
        let shown = !self.options.output.quiet && stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(tasks), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} replications, {eta} left") {
            bar.set_style(style);
        }
        Progress { bar }
    }

    /// A document with the parts every result has.
    pub fn document(&self, random: bool) -> Document {
        let System { model, services, fluid, finite, hash, .. } = &self.system;
        let laws = model.pools.iter().zip(services);
        Document {
            model: ModelPart {
                name: model.name.clone(),
                hash: hash.clone(),
                policy: model.policy.label(),
                arrival_rate: model.arrival_rate,
                capacity: model.capacity(),
                load: model.load(),
                taken_at: self.system.taken_at,
                services: ByPool(laws.map(|(p, s)| (p.name.clone(), service_part(&p.law, s))).collect()),
            },
            run: RunPart {
                version: env!("CARGO_PKG_VERSION").into(),
                command: std::env::args().collect(),
                seed: random.then_some(finite.seed),
                tolerance: fluid.tolerance,
                threads: self.threads,
                interrupted: INTERRUPTED.load(Ordering::Relaxed),
            },
            sizes: Vec::new(),
            fluid: None,
            finite: Vec::new(),
            exact: Vec::new(),
            convergence: None,
            expect: Vec::new(),
        }
    }

    pub fn fluid_part(&self, fluid: &Fluid) -> FluidPart {
        let Fluid { model, path, truncation, fixed } = fluid;
        FluidPart::new(model, path, *truncation, fixed, fluid::job_times(model, fixed))
    }

    pub fn finite_parts(&self, runs: &[Summary]) -> Vec<FinitePart> {
        runs.iter().map(|run| FinitePart::new(&self.system.model, run)).collect()
    }

    /// The model's expectations; none if an override changed the system they were written for.
    pub fn expectations(&self, fluid: &Fluid) -> Vec<run::Checked> {
        let harmless =
            |o: &String| o.trim_start().starts_with("finite.") || o.trim_start().starts_with("expect");
        if !self.options.set.iter().all(harmless) {
            if !self.system.expect.is_empty() {
                self.options
                    .output
                    .note("the expectations of the model file are not checked: --set changed the system");
            }
            return Vec::new();
        }
        run::check(&self.system.model, &fluid.path, &fluid.fixed, &self.system.expect)
    }

    /// Prints or writes the document, draws the figure, and says how it went.
    pub fn deliver(&self, document: &Document, figure: Option<&Figure>) -> Result<ExitCode, CliError> {
        let output = &self.options.output;
        output.print(document, || table::render(document, self.options.verbose), || csv::render(document))?;
        figure.map_or(Ok(()), |figure| output.draw(figure))?;
        if document.run.interrupted {
            self.options.output.note("interrupted: the result holds only what was finished");
            return Ok(ExitCode::from(130));
        }
        let missed = document.expect.iter().any(|e| !e.holds);
        Ok(ExitCode::from(u8::from(missed)))
    }
}

fn service_part(law: &PhaseType, service: &Service) -> ServicePart {
    let (distance, likelihood) = match &service.fit {
        Fit::Exact => (None, None),
        Fit::Distance(distance) => (Some(*distance), None),
        Fit::Data { times, chosen } => {
            let (log_likelihood, bic) = (chosen.log_likelihood, chosen.bic);
            (None, Some(DataLikelihood { times: *times, log_likelihood, bic }))
        }
    };
    ServicePart {
        law: service.label.clone(),
        mean: law.mean(),
        scv: law.scv(),
        phases: law.phases(),
        survival_distance: distance,
        data: likelihood,
    }
}

/// The fluids, one for each of so many runs.
pub(super) fn one_each(fluids: &[Fluid], runs: usize) -> impl Iterator<Item = &Fluid> {
    (0..runs).filter_map(move |i| fluids.get(i.min(fluids.len().saturating_sub(1))))
}

/// Evenly spaced times from 0 to the horizon, both included.
pub(super) fn grid(horizon: f64, points: u32) -> Vec<f64> {
    let steps = points.max(2) - 1;
    (0..=steps).map(|i| horizon * f64::from(i) / f64::from(steps)).collect()
}

/// The bar on standard error, and the interruption.
struct Progress {
    bar: ProgressBar,
}

impl Control for Progress {
    fn finished_replication(&self) {
        self.bar.inc(1);
    }

    fn cancelled(&self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }
}

/// The first Ctrl-C ends the run in good order, the second at once.
fn catch_interrupts() {
    let handler = || {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    // Without a handler Ctrl-C still stops the program; only the finished work is lost.
    let _ = ctrlc::try_set_handler(handler);
}
