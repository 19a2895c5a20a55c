//! `check`: read a model and say what it is.

use super::args::Common;
use super::error::CliError;
use super::output::Format;
use super::session::Session;
use crate::output::table::{Table, number};
use std::process::ExitCode;

pub(super) fn run(options: &Common) -> Result<ExitCode, CliError> {
    let session = Session::open(options)?;
    let document = session.document(false);
    if options.output.format != Format::Table {
        return session.deliver(&document, None);
    }
    let system = &session.system;
    let (model, m) = (&system.model, &document.model);
    let mut text = format!("{} is a valid model (hash {})\n", m.name, m.hash);
    if !model.description.is_empty() {
        text += &format!("{}\n", model.description);
    }
    text += &format!(
        "\nPolicy {}; arrival rate {} per server, load {} of capacity {}\n",
        m.policy,
        number(m.arrival_rate),
        number(m.load),
        number(m.capacity)
    );
    let mut table = Table::new(["pool", "share", "buffer", "mean service", "SCV", "phases"]);
    for (p, (_, s)) in model.pools.iter().zip(&m.services.0) {
        let buffer = p.buffer.map_or_else(|| "infinite".to_owned(), |b| b.to_string());
        let (mean, scv) = (number(s.mean), number(s.scv));
        table.row([p.name.clone(), number(p.share), buffer, mean, scv, s.phases.to_string()]);
    }
    text += &table.render();
    text += "\nService\n";
    for (pool, s) in &m.services.0 {
        text += &format!("  {pool}: {}", s.law);
        if let Some(distance) = s.survival_distance {
            text += &format!(", survival functions at most {distance:.1e} apart, means equal");
        }
        if let Some(d) = &s.data {
            text += &format!(", {} times, log-likelihood {:.3}, BIC {:.3}", d.times, d.log_likelihood, d.bic);
        }
        text.push('\n');
    }
    text += &format!(
        "\nFluid: horizon {}, tolerance {:e}. Finite: n = {:?}, {} replications to time {}, seed {}.\n",
        system.fluid.horizon,
        system.fluid.tolerance,
        system.finite.sizes,
        system.finite.replications,
        system.finite.horizon,
        system.finite.seed
    );
    options.output.print_text(&text)?;
    Ok(ExitCode::SUCCESS)
}
