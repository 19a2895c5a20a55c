//! Waiting and response times of single jobs, for people.

use super::{Table, optional};
use crate::model::{Durations, JobTimes};
use std::fmt::Write;

pub(super) fn text(times: &JobTimes) -> String {
    let mut text = String::new();
    let _ = match times.jobs {
        Some(jobs) => writeln!(
            text,
            "\nTimes of {jobs} single jobs that came after the warm-up, each followed to its end"
        ),
        None => writeln!(text, "\nTimes of a job that comes in the long run"),
    };
    let mut table = Table::new(std::iter::once("").chain(Durations::NAMES));
    let mut add = |name: String, durations: &Durations| {
        table.row(std::iter::once(name).chain(Durations::NAMES.map(|name| optional(durations.get(name)))));
    };
    add("waiting_time".into(), &times.waiting_time);
    add("response_time".into(), &times.response_time);
    if times.pools.len() > 1 {
        for pool in &times.pools {
            add(format!("waiting_time {}", pool.name), &pool.waiting_time);
            add(format!("response_time {}", pool.name), &pool.response_time);
        }
    }
    text += &table.render();
    text
}
