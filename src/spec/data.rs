//! Service times from a column of a CSV file, and every fault of it with its place.

use std::ops::Range;

use super::error::{Problem, SpecError, list, nearest, quote};
use super::place::Sources;
use super::source::Source;
use crate::model::Sample;

/// The largest data file that is read, in bytes.
const LARGEST: u64 = 256 << 20;

/// Reads the service times in a column of a CSV file. Lines that open with `#` are skipped.
///
/// `column` is a name of the header, or else a number counted from 1; it may be left out of a file
/// with a single column. A first line whose entry is not a number is the header.
///
/// # Errors
/// If the file cannot be read, has no such column, or holds anything but times: with the line and
/// column of the fault.
pub fn sample(source: &Source, column: Option<&str>) -> Result<Sample, SpecError> {
    let label = source.label();
    let text = source.text(LARGEST, "data")?;
    Table { label: &label, text: &text }.sample(column)
}

struct Table<'a> {
    label: &'a str,
    text: &'a str,
}

/// A line, and where it starts in the text.
struct Row {
    start: usize,
    cells: csv::StringRecord,
}

impl Table<'_> {
    fn sample(&self, column: Option<&str>) -> Result<Sample, SpecError> {
        let mut rows = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .comment(Some(b'#'))
            .from_reader(self.text.trim_start_matches('\u{feff}').as_bytes());
        let skipped = self.text.len() - self.text.trim_start_matches('\u{feff}').len();
        let mut rows = rows.records().map(|row| {
            let cells = row.map_err(|e| self.fail(format!("the file is not CSV: {e}")))?;
            #[allow(clippy::cast_possible_truncation)]
            let start = skipped + cells.position().map_or(0, |p| p.byte() as usize);
            Ok::<Row, SpecError>(Row { start, cells })
        });
        let Some(first) = rows.next().transpose()? else {
            return Err(self.fail("the data file is empty").help("it needs a column of service times"));
        };
        let index = self.index(&first, column)?;
        let mut times = Vec::new();
        if number(first.cells.get(index).unwrap_or_default()).is_some() {
            times.push(self.time(&first, index)?);
        }
        for row in rows {
            times.push(self.time(&row?, index)?);
        }
        if times.is_empty() {
            return Err(self.fail("the data file has a header and no service times"));
        }
        Sample::new(times).map_err(|e| self.fail(e.to_string()))
    }

    /// Which column is meant.
    fn index(&self, first: &Row, column: Option<&str>) -> Result<usize, SpecError> {
        let cells = &first.cells;
        let names = || cells.iter().map(str::trim).take(20);
        let whole = |title: String| self.at(first, 0..cells.len(), title);
        let Some(column) = column else {
            if cells.len() == 1 {
                return Ok(0);
            }
            let error = whole(format!("the file has {} columns", cells.len()));
            return Err(error.allowed("must have one, or `column` must say which").help(format!(
                "the columns are {}; a column is given by name or by number from 1",
                list(names())
            )));
        };
        if let Some(index) = cells.iter().position(|name| name.trim() == column.trim()) {
            return Ok(index);
        }
        if let Ok(number) = column.trim().parse::<usize>()
            && (1..=cells.len()).contains(&number)
        {
            return Ok(number - 1);
        }
        let error = whole(format!("there is no column {}", quote(column)));
        Err(error
            .allowed(format!("the columns are {}, or the numbers 1 to {}", list(names()), cells.len()))
            .suggest(nearest(column, names())))
    }

    /// The service time in a cell.
    fn time(&self, row: &Row, index: usize) -> Result<f64, SpecError> {
        let Some(cell) = row.cells.get(index) else {
            let title = format!("a line has {} columns; column {} is missing", row.cells.len(), index + 1);
            let error = self.at(row, 0..row.cells.len(), title);
            return Err(error.allowed("must have as many columns as the first line"));
        };
        let here = |title: String| self.at(row, index..index + 1, title);
        match number(cell) {
            Some(time) if (0.0..=1e100).contains(&time) => Ok(time + 0.0),
            Some(time) => Err(here(format!("a service time is {time}"))
                .allowed("must be 0 or positive, and finite (at most 1e100)")),
            None if cell.trim().is_empty() => {
                Err(here("a service time is missing".to_owned()).allowed("must be a number"))
            }
            None => Err(here(format!("{} is not a service time", quote(cell)))
                .allowed("must be a number, such as 0.25")),
        }
    }

    /// An error at some cells of a row.
    fn at(&self, row: &Row, cells: Range<usize>, title: impl Into<String>) -> SpecError {
        let span = span(self.text, row.start, &cells);
        let place = Sources::new(self.label, self.text.into()).place(&span);
        SpecError::new(Problem::Data, self.label, title).at(place)
    }

    fn fail(&self, title: impl Into<String>) -> SpecError {
        SpecError::new(Problem::Data, self.label, title)
    }
}

/// A cell as a number.
fn number(cell: &str) -> Option<f64> {
    cell.trim().parse().ok()
}

/// Where cells stand in the text: from the start of their row, past blank lines and comments, and on
/// by commas outside of quotes.
fn span(text: &str, mut start: usize, cells: &Range<usize>) -> Range<usize> {
    loop {
        let rest = text.get(start..).unwrap_or_default();
        let blank = rest.len() - rest.trim_start_matches(['\r', '\n']).len();
        start += blank;
        match rest.get(blank..).unwrap_or_default() {
            comment if comment.starts_with('#') => {
                start += comment.find('\n').map_or(comment.len(), |i| i + 1);
            }
            _ => break,
        }
    }
    let row = text.get(start..).unwrap_or_default();
    let (mut cell, mut quoted, mut from) = (0, false, None);
    let mut end = row.len();
    for (i, c) in row.char_indices() {
        if cell == cells.start && from.is_none() {
            from = Some(i);
        }
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => {
                cell += 1;
                if cell == cells.end {
                    end = i;
                    break;
                }
            }
            '\r' | '\n' if !quoted => {
                end = i;
                break;
            }
            _ => {}
        }
    }
    start + from.unwrap_or(end).min(end)..start + end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_past_comments_quotes_and_blank_lines() {
        let text = "# note\n\na,\"b,c\",d\r\n1,2,3";
        assert_eq!(&text[span(text, 0, &(1..2))], "\"b,c\"");
        assert_eq!(&text[span(text, 0, &(2..3))], "d");
        assert_eq!(&text[span(text, 0, &(0..3))], "a,\"b,c\",d");
        assert_eq!(&text[span(text, 19, &(2..3))], "3");
    }
}
