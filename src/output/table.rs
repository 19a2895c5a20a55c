//! The result document as tables for people.

mod exact;
mod job_times;

use super::document::{Document, EventPart, FinitePart, FluidPart, SizePart};
use crate::fluid::Split;
use crate::model::{Measures, PoolMeasures, Value};
use crate::run::{Checked, Convergence, Curve};
use std::fmt::Write;

/// Columns of text: the first flush left, the others flush right.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    #[must_use]
    pub fn new(header: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { rows: vec![header.into_iter().map(Into::into).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Has it a row beside its headings?
    #[must_use]
    pub fn has_rows(&self) -> bool {
        self.rows.len() > 1
    }

    /// The table as text, two blanks before each line and between columns.
    #[must_use]
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| {
            self.rows.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (c, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[c] - cell.chars().count());
                line += &if c == 0 { format!("  {cell}{pad}") } else { format!("  {pad}{cell}") };
            }
            if !line.trim().is_empty() {
                text += line.trim_end();
                text.push('\n');
            }
        }
        text
    }
}

/// A number for people: enough digits to compare, no more.
#[must_use]
pub fn number(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 {
        "0".into()
    } else if !x.is_finite() {
        "-".into()
    } else if (1e-4..1e6).contains(&size) {
        let digits = 8;
        #[allow(clippy::cast_possible_truncation)]
        let before = size.log10().floor() as i32 + 1;
        let after = usize::try_from((digits - before).clamp(0, digits)).unwrap_or(0);
        let text = format!("{x:.after$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    } else {
        format!("{x:.3e}")
    }
}

/// An estimate with its interval, to the digits that the interval supports; `?` for an unknown one.
#[must_use]
pub fn value(v: Value) -> String {
    match v.half_width {
        None => number(v.value),
        Some(0.0) => format!("{} ± 0", number(v.value)),
        Some(half) if !half.is_finite() => format!("{} ± ?", number(v.value)),
        Some(half) if !(1e-10..1e6).contains(&half) => format!("{:.3e} ± {half:.0e}", v.value),
        Some(half) => {
            #[allow(clippy::cast_possible_truncation)]
            let after = usize::try_from((1 - half.log10().floor() as i32).clamp(0, 12)).unwrap_or(0);
            format!("{:.after$} ± {half:.after$}", v.value)
        }
    }
}

fn optional(v: Option<Value>) -> String {
    v.map_or_else(|| "-".into(), value)
}

/// Renders the whole document.
#[must_use]
pub fn render(document: &Document, verbose: bool) -> String {
    let m = &document.model;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}: {}, arrival rate {} per server, load {} of capacity {}{}",
        m.name,
        m.policy,
        number(m.arrival_rate),
        number(m.load),
        number(m.capacity),
        m.taken_at.map_or_else(String::new, |n| format!("; formulas taken at n = {n}"))
    );
    if !document.sizes.is_empty() {
        text += &sizes_text(&document.sizes);
    }
    if let Some(fluid) = &document.fluid {
        text += &fluid_text(fluid, verbose);
    }
    for run in &document.finite {
        text += &finite_text(run, document.fluid_at(run.n), verbose);
    }
    for part in &document.exact {
        text += &exact::text(part, document.fluid_at(part.n), verbose);
    }
    if let Some(convergence) = &document.convergence {
        text += &convergence_text(convergence);
    }
    if !document.expect.is_empty() {
        text += &expect_text(&document.expect);
    }
    text
}

fn sizes_text(sizes: &[SizePart]) -> String {
    let mut table = Table::new(["n", "policy", "arrival rate", "load"]);
    for size in sizes {
        table.row([size.n.to_string(), size.policy.clone(), number(size.arrival_rate), number(size.load)]);
    }
    format!("\nThe model at each n\n{}", table.render())
}

fn fluid_text(fluid: &FluidPart, verbose: bool) -> String {
    let mut text = String::new();
    let s = &fluid.statistics;
    if fluid.stable {
        let relaxation =
            s.relaxation_time.map_or_else(String::new, |t| format!(", relaxation time {}", number(t)));
        let _ = writeln!(text, "\nFixed point (largest drift {:.0e}{relaxation})", s.residual);
    } else {
        let pools = fluid.measures.pools.iter().zip(&fluid.tails.0).filter(|(_, (_, x))| x.is_empty());
        let growing: Vec<String> = pools
            .map(|(p, _)| match p.growth.map_or(0.0, |g| g.value) {
                0.0 => format!("{} slower than linearly (its load is exactly critical)", p.name),
                g => format!("{} by {} jobs per server and unit of time", p.name, number(g)),
            })
            .collect();
        let _ = writeln!(text, "\nNo fixed point: queues grow without bound in {}.", growing.join(", "));
        text += "In the limit (pools that do not grow settle; the others are always busy)\n";
    }
    text += &measures_table(&fluid.measures).render();
    text += "\nTails: fraction of all servers in the pool with at least k jobs\n";
    let mut table =
        Table::new(std::iter::once("k".to_owned()).chain(fluid.tails.0.iter().map(|t| t.0.clone())));
    let most = if verbose { usize::MAX } else { 12 };
    let levels =
        fluid.tails.0.iter().map(|(_, x)| x.iter().take_while(|x| **x >= 1e-12).count()).max().unwrap_or(0);
    for k in 0..levels.clamp(1, most) {
        let cells = fluid.tails.0.iter().map(|(_, x)| match x.get(k) {
            Some(x) => number(*x),
            None if x.is_empty() => "grows".into(),
            None => "0".into(),
        });
        table.row(std::iter::once((k + 1).to_string()).chain(cells));
    }
    text += &table.render();
    if levels > most {
        let _ = writeln!(text, "  ... {} more levels (-v shows them)", levels - most);
    }
    if let Some(times) = &fluid.job_times {
        text += &job_times::text(times);
    }
    if let Some(split) = &fluid.split {
        text += &split_text(split);
    }
    if !fluid.events.is_empty() {
        text += "\nEvents on the way\n";
        text += &events_table(&fluid.events, verbose).render();
        if !verbose && fluid.events.len() > MOST_EVENTS {
            let _ = writeln!(text, "  ... {} more events (-v shows them)", fluid.events.len() - MOST_EVENTS);
        }
    }
    if let Some(last) = fluid.trajectory.last() {
        let tails = last
            .tails
            .0
            .iter()
            .map(|(name, x)| format!("x_1 {name} {}", number(x.first().copied().unwrap_or(0.0))));
        let _ = writeln!(
            text,
            "\nAt the horizon, t = {}: {}; mean jobs {}",
            number(last.time),
            tails.collect::<Vec<_>>().join(", "),
            number(last.mean_jobs)
        );
    }
    if verbose {
        text += "\nStatistics\n";
        let mut table = Table::new(["", ""]);
        table.row(["method", &format!("{:?}", s.method).to_lowercase()]);
        table.row(["spectral abscissa", &s.spectral_abscissa.map_or_else(|| "-".into(), number)]);
        table.row(["truncation bound, fixed point", &format!("{:.1e}", s.truncation_fixed_point)]);
        table.row(["truncation bound, path", &format!("{:.1e}", s.truncation_path)]);
        table.row(["explicit steps", &s.steps.explicit_steps.to_string()]);
        table.row(["implicit steps", &s.steps.implicit_steps.to_string()]);
        table.row(["rejected steps", &s.steps.rejected.to_string()]);
        table.row(["drift evaluations", &s.steps.evaluations.to_string()]);
        table.row(["factorisations", &s.steps.factorisations.to_string()]);
        table.row(["time spent sliding", &number(s.sliding_time)]);
        table.row(["most negative entry", &format!("{:.1e}", s.lowest_entry)]);
        table.row(["most negative, set to zero", &format!("{:.1e}", s.clipped)]);
        table.row(["mass defect", &format!("{:.1e}", s.mass_defect)]);
        text += &table.render();
    }
    text
}

/// Events that are shown unless more is asked for: with many routers there are many.
const MOST_EVENTS: usize = 20;

fn events_table(events: &[EventPart], verbose: bool) -> Table {
    let mut table = Table::new(["time", "what"]);
    for e in events.iter().take(if verbose { usize::MAX } else { MOST_EVENTS }) {
        table.row([number(e.event.time), e.what.clone()]);
    }
    table
}

/// What each router holds at the fixed point.
fn split_text(split: &Split) -> String {
    match split {
        Split::Neutral { total } => format!(
            "\nMessages: {} of all servers. Any split of them over the routers is at rest; which one is reached \
             depends on the start,\nand at finite n it wanders.\n",
            number(*total)
        ),
        Split::Unique { messages } => messages_text(messages),
    }
}

/// The messages at each router.
fn messages_text(messages: &[f64]) -> String {
    const MOST_ROUTERS: usize = 12;
    let mut text = String::from("\nMessages at each router, as fractions of all servers\n");
    let mut table = Table::new(["router", "messages"]);
    for (r, z) in messages.iter().enumerate().take(MOST_ROUTERS) {
        table.row([(r + 1).to_string(), if *z > 0.0 { number(*z) } else { "none".into() }]);
    }
    text += &table.render();
    if messages.len() > MOST_ROUTERS {
        let _ = writeln!(text, "  ... {} more routers", messages.len() - MOST_ROUTERS);
    }
    text
}

fn measures_table(m: &Measures) -> Table {
    let header = ["", "all"].map(str::to_owned).into_iter().chain(m.pools.iter().map(|p| p.name.clone()));
    let mut table = Table::new(header);
    for name in Measures::NAMES {
        let all = m.get(name);
        let pools: Vec<Option<Value>> = m.pools.iter().map(|p| p.get(name)).collect();
        if all.is_none() && pools.iter().all(Option::is_none) {
            continue;
        }
        let blank = !PoolMeasures::NAMES.contains(&name);
        let pools = pools.into_iter().map(|v| if blank { String::new() } else { optional(v) });
        table.row([name.to_owned(), optional(all)].into_iter().chain(pools));
    }
    table
}

fn finite_text(run: &FinitePart, fluid: Option<&Measures>, verbose: bool) -> String {
    let sizes: Vec<String> = run.pool_sizes.0.iter().map(|(name, n)| format!("{name} {n}")).collect();
    let mut text = format!(
        "\nn = {} ({}): {} replications, averages over ({}, {}]\n",
        run.n,
        sizes.join(", "),
        run.replications,
        number(run.warmup),
        number(run.horizon)
    );
    let mut header = vec![String::new(), "simulated".into()];
    if fluid.is_some() {
        header.push("fluid".into());
    }
    header.extend(run.measures.pools.iter().map(|p| p.name.clone()));
    let mut table = Table::new(header);
    for name in Measures::NAMES {
        let Some(all) = run.measures.get(name) else { continue };
        let mut cells = vec![name.to_owned(), value(all)];
        if let Some(fluid) = fluid {
            cells.push(optional(fluid.get(name)));
        }
        let blank = !PoolMeasures::NAMES.contains(&name);
        cells.extend(
            run.measures.pools.iter().map(|p| if blank { String::new() } else { optional(p.get(name)) }),
        );
        table.row(cells);
    }
    text += &table.render();
    let mut table =
        Table::new(std::iter::once("x_k".to_owned()).chain(run.tails.0.iter().map(|t| t.0.clone())));
    let most = if verbose { 200 } else { 5 };
    for k in 0..run.tails.0.iter().map(|(_, x)| x.len()).max().unwrap_or(0).min(most) {
        let cells = run.tails.0.iter().map(|(_, x)| x.get(k).map_or_else(|| "0".into(), |v| value(*v)));
        table.row(std::iter::once((k + 1).to_string()).chain(cells));
    }
    if table.has_rows() {
        text.push('\n');
        text += &table.render();
    }
    if let Some(times) = &run.job_times {
        text += &job_times::text(times);
    }
    if verbose {
        let s = &run.statistics;
        let _ = writeln!(
            text,
            "  {} events, {} arrivals, highest level {}",
            s.events, s.arrivals, s.highest_level
        );
    }
    text
}

fn convergence_text(c: &Convergence) -> String {
    let mut text = String::from("\nErrors of the fluid against n, with 95 % intervals\n");
    let sizes = c.path.points.iter().map(|p| format!("n = {}", p.0));
    let header = ["", "fluid"].map(str::to_owned).into_iter().chain(sizes).chain(["slope".to_owned()]);
    let mut table = Table::new(header);
    let mut add = |curve: &Curve| {
        let mut row = vec![curve.name.clone(), number(curve.fluid)];
        row.extend(
            curve
                .points
                .iter()
                .map(|&(_, value_, half)| value(Value { value: value_, half_width: Some(half) })),
        );
        row.push(curve.slope.map_or_else(
            || "not resolved".into(),
            |s| value(Value { value: s.value, half_width: Some(s.half_width) }),
        ));
        table.row(row);
    };
    add(&c.path);
    c.bias.iter().for_each(&mut add);
    text += &table.render();
    text
}

fn expect_text(expect: &[Checked]) -> String {
    let mut text = String::from("\nExpectations of the model file\n");
    let mut table = Table::new(["", "expected", "found", "tolerance", ""]);
    for e in expect {
        let found = e.found.map_or_else(|| "-".into(), number);
        let verdict = if e.holds { "holds" } else { "MISSED" };
        table.row([
            e.name.clone(),
            number(e.expected),
            found,
            format!("{:.0e}", e.tolerance),
            verdict.into(),
        ]);
    }
    text += &table.render();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_error_is_no_certainty() {
        let shown = |half: f64| value(Value { value: 0.25, half_width: Some(half) });
        assert_eq!(shown(0.0), "0.25 ± 0");
        assert_eq!(shown(0.0123), "0.250 ± 0.012");
        assert_eq!(shown(2e-11), "2.500e-1 ± 2e-11");
        assert_eq!(shown(3e6), "2.500e-1 ± 3e6");
        for half in [f64::NAN, f64::INFINITY] {
            assert_eq!(shown(half), "0.25 ± ?");
        }
    }
}
