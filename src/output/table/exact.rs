//! An exact solution, for people.

use super::{Table, messages_text, number, optional};
use crate::model::{Measures, PoolMeasures};
use crate::output::document::ExactPart;
use std::fmt::Write;

pub(super) fn text(part: &ExactPart, fluid: Option<&Measures>, verbose: bool) -> String {
    let sizes: Vec<String> = part.pool_sizes.0.iter().map(|(name, n)| format!("{name} {n}")).collect();
    let (s, size) = (&part.statistics, &part.statistics.size);
    let mut text = format!(
        "\nn = {} ({}): exact, {} states, residual {:.0e}\n",
        part.n,
        sizes.join(", "),
        size.states,
        s.residual
    );
    if s.cut_mass > 0.0 {
        let levels = size.levels.iter().max().copied().unwrap_or(0);
        let _ = writeln!(
            text,
            "long buffers cut at level {levels}, where a server stands with probability {:.0e}",
            s.cut_mass
        );
    }
    let fluid_column = fluid.map(|_| "fluid".to_owned());
    let header = ["".to_owned(), "exact".to_owned()].into_iter().chain(fluid_column);
    let mut table = Table::new(header.chain(part.measures.pools.iter().map(|p| p.name.clone())));
    for name in Measures::NAMES {
        let Some(all) = part.measures.get(name) else { continue };
        let mut cells = vec![name.to_owned(), number(all.value)];
        cells.extend(fluid.map(|fluid| optional(fluid.get(name))));
        let blank = !PoolMeasures::NAMES.contains(&name);
        let pools = part.measures.pools.iter();
        cells.extend(pools.map(|p| if blank { String::new() } else { optional(p.get(name)) }));
        table.row(cells);
    }
    text += &table.render();
    let tails = &part.tails.0;
    let mut table = Table::new(std::iter::once("x_k").chain(tails.iter().map(|t| t.0.as_str())));
    let most = if verbose { usize::MAX } else { 5 };
    for k in 0..tails.iter().map(|(_, x)| x.len()).max().unwrap_or(0).min(most) {
        let cells = tails.iter().map(|(_, x)| x.get(k).map_or_else(|| "0".into(), |x| number(*x)));
        table.row(std::iter::once((k + 1).to_string()).chain(cells));
    }
    if table.has_rows() {
        text.push('\n');
        text += &table.render();
    }
    if !part.messages.is_empty() {
        text += &messages_text(&part.messages);
    }
    if verbose {
        let _ = writeln!(
            text,
            "  {} transitions, {} MiB, {:?}, {} sweeps, {} steps of uniformisation",
            size.transitions, size.mebibytes, s.method, s.sweeps, s.uniformisation_steps
        );
    }
    text
}
