//! The result document as tidy CSV: one number a row.

use super::document::{Document, EventPart, ExactPart};
use crate::fluid::Split;
use crate::model::{Durations, JobTimes, Measures, PoolMeasures, Value};

/// Columns: which reading, n (empty for the fluid), time (empty for the long run), pool (empty for the
/// whole system), level (of a tail; the router of messages; a number of servers or jobs for their
/// probabilities), what, its value, the half-width of its 95 % interval.
const HEADER: [&str; 8] = ["reading", "n", "time", "pool", "level", "quantity", "value", "half_width"];

/// Renders the document.
///
/// # Errors
/// If a record cannot be written to memory, which does not happen.
pub fn render(document: &Document) -> Result<String, csv::Error> {
    let mut rows = Rows { writer: csv::Writer::from_writer(Vec::new()) };
    rows.writer.write_record(HEADER)?;
    if let Some(fluid) = &document.fluid {
        rows.measures("fluid", "", &fluid.measures)?;
        for (pool, tails) in &fluid.tails.0 {
            rows.tails("fluid", "", "", pool, tails.iter().map(|&x| Value::from(x)))?;
        }
        if let Some(times) = &fluid.job_times {
            rows.job_times("fluid", "", times)?;
        }
        if let Some(Split::Unique { messages }) = &fluid.split {
            rows.messages("fluid", "", "", messages.iter().map(|&z| z.into()))?;
        }
        for point in &fluid.trajectory {
            let time = point.time.to_string();
            rows.messages("fluid", "", &time, point.messages.iter().map(|&z| z.into()))?;
            for (name, value) in [
                ("p_idle", point.p_idle),
                ("p_wait", point.p_wait),
                ("p_block", point.p_block),
                ("mean_jobs", point.mean_jobs),
            ] {
                rows.row(["fluid", "", &time, "", "", name], value.into())?;
            }
            for (pool, tails) in &point.tails.0 {
                rows.tails("fluid", "", &time, pool, tails.iter().map(|&x| Value::from(x)))?;
            }
        }
        for EventPart { event, .. } in &fluid.events {
            let name = format!("{:?}", event.kind).to_lowercase();
            let which = event.router.unwrap_or(event.tier).to_string();
            rows.row(["fluid", "", "", "", &which, &name], event.time.into())?;
        }
    }
    for size in &document.sizes {
        let n = size.n.to_string();
        rows.row(["model", &n, "", "", "", "arrival_rate"], size.arrival_rate.into())?;
        rows.measures("fluid", &n, &size.fluid)?;
    }
    for run in &document.finite {
        let n = run.n.to_string();
        rows.measures("finite", &n, &run.measures)?;
        for (pool, tails) in &run.tails.0 {
            rows.tails("finite", &n, "", pool, tails.iter().copied())?;
        }
        if let Some(times) = &run.job_times {
            rows.job_times("finite", &n, times)?;
        }
        for point in &run.trajectory {
            let time = point.time.to_string();
            rows.row(["finite", &n, &time, "", "", "mean_jobs"], point.mean_jobs)?;
            rows.messages("finite", &n, &time, point.messages.iter().copied())?;
            for (pool, tails) in &point.tails.0 {
                rows.tails("finite", &n, &time, pool, tails.iter().copied())?;
            }
        }
    }
    for part in &document.exact {
        rows.exact(part)?;
    }
    if let Some(convergence) = &document.convergence {
        for curve in std::iter::once(&convergence.path).chain(&convergence.bias) {
            let name = format!("error of {}", curve.name);
            for &(n, value, half_width) in &curve.points {
                let value = Value { value, half_width: Some(half_width) };
                rows.row(["convergence", &n.to_string(), "", "", "", &name], value)?;
            }
            if let Some(slope) = curve.slope {
                let value = Value { value: slope.value, half_width: Some(slope.half_width) };
                rows.row(["convergence", "", "", "", "", &format!("slope of {}", curve.name)], value)?;
            }
        }
    }
    let bytes = rows.writer.into_inner().map_err(|e| e.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

struct Rows {
    writer: csv::Writer<Vec<u8>>,
}

impl Rows {
    fn row(&mut self, key: [&str; 6], value: Value) -> Result<(), csv::Error> {
        let number = |x: f64| if x.is_finite() { x.to_string() } else { String::new() };
        let values = [number(value.value), value.half_width.map(number).unwrap_or_default()];
        self.writer.write_record(key.into_iter().chain(values.iter().map(String::as_str)))
    }

    fn measures(&mut self, reading: &str, n: &str, measures: &Measures) -> Result<(), csv::Error> {
        for name in Measures::NAMES {
            if let Some(value) = measures.get(name) {
                self.row([reading, n, "", "", "", name], value)?;
            }
        }
        for pool in &measures.pools {
            for name in PoolMeasures::NAMES {
                if let Some(value) = pool.get(name) {
                    self.row([reading, n, "", &pool.name, "", name], value)?;
                }
            }
        }
        Ok(())
    }

    fn job_times(&mut self, reading: &str, n: &str, times: &JobTimes) -> Result<(), csv::Error> {
        let all = ("", &times.waiting_time, &times.response_time);
        let pools = times.pools.iter().map(|p| (p.name.as_str(), &p.waiting_time, &p.response_time));
        for (pool, waiting, response) in std::iter::once(all).chain(pools) {
            for (what, durations) in [("waiting_time", waiting), ("response_time", response)] {
                for name in Durations::NAMES {
                    if let Some(value) = durations.get(name) {
                        self.row([reading, n, "", pool, "", &format!("{what}.{name}")], value)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn exact(&mut self, part: &ExactPart) -> Result<(), csv::Error> {
        let n = part.n.to_string();
        self.measures("exact", &n, &part.measures)?;
        for (pool, tails) in &part.tails.0 {
            self.tails("exact", &n, "", pool, tails.iter().map(|&x| Value::from(x)))?;
        }
        self.messages("exact", &n, "", part.messages.iter().map(|&z| z.into()))?;
        for (name, law) in [("p_idle_servers", &part.idle_servers), ("p_jobs", &part.jobs)] {
            for (k, &p) in law.iter().enumerate() {
                self.row(["exact", &n, "", "", &k.to_string(), name], p.into())?;
            }
        }
        for point in &part.trajectory {
            let time = point.time.to_string();
            for (name, value) in [
                ("p_idle", point.p_idle),
                ("p_wait", point.p_wait),
                ("p_block", point.p_block),
                ("mean_jobs", point.mean_jobs),
            ] {
                self.row(["exact", &n, &time, "", "", name], value.into())?;
            }
            self.messages("exact", &n, &time, point.messages.iter().map(|&z| z.into()))?;
            for (pool, tails) in &point.tails.0 {
                self.tails("exact", &n, &time, pool, tails.iter().map(|&x| Value::from(x)))?;
            }
        }
        Ok(())
    }

    /// What each router holds; the router, counted from 1, stands in place of the level.
    fn messages(
        &mut self,
        reading: &str,
        n: &str,
        time: &str,
        messages: impl Iterator<Item = Value>,
    ) -> Result<(), csv::Error> {
        for (r, value) in messages.enumerate() {
            self.row([reading, n, time, "", &(r + 1).to_string(), "messages"], value)?;
        }
        Ok(())
    }

    fn tails(
        &mut self,
        reading: &str,
        n: &str,
        time: &str,
        pool: &str,
        tails: impl Iterator<Item = Value>,
    ) -> Result<(), csv::Error> {
        for (k, value) in tails.enumerate() {
            self.row([reading, n, time, pool, &(k + 1).to_string(), "x"], value)?;
        }
        Ok(())
    }
}
