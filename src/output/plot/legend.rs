//! The legend: which entries, how large, and drawing it. It stands outside the plot, so it never covers data.

use super::figure::Panel;
use super::font::Fonts;
use super::markup::Rich;
use super::series;
use super::style::{BLACK, Look, TICK};
use super::surface::{Anchor, At, Surface, TextLook};

const SAMPLE: f64 = 32.0;
const GAP: f64 = 8.0;
pub(super) const ROW: f64 = 19.0;
const BETWEEN_COLUMNS: f64 = 26.0;

/// More entries than this are counted instead of listed.
const MOST_ENTRIES: usize = 24;

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    text: String,
    label: Rich,
    /// `None` for the line that counts what is not listed.
    look: Option<Look>,
    interval: bool,
}

/// The entries of one legend.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Legend {
    entries: Vec<Entry>,
}

impl Legend {
    /// One entry for each label and look of a panel.
    pub(super) fn of(panel: &Panel, fonts: &Fonts, widest: f64) -> Self {
        let mut entries: Vec<Entry> = vec![];
        let mut more = 0;
        for series in &panel.series {
            if Rich::parse(&series.label).is_blank() {
                continue;
            }
            let interval = series.points.iter().any(|point| point.half_width.is_some_and(|half| half > 0.0));
            let same = |entry: &&mut Entry| entry.look == Some(series.look) && entry.text == series.label;
            if let Some(entry) = entries.iter_mut().find(same) {
                entry.interval |= interval;
            } else if entries.len() < MOST_ENTRIES {
                let label = fonts.fit(Rich::parse(&series.label), TICK, false, widest - SAMPLE - GAP);
                entries.push(Entry { text: series.label.clone(), label, look: Some(series.look), interval });
            } else {
                more += 1;
            }
        }
        if more > 0 {
            let label = Rich::plain(format!("and {more} more"));
            entries.push(Entry { text: String::new(), label, look: None, interval: false });
        }
        Self { entries }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The width of the widest entry.
    pub(super) fn width(&self, fonts: &Fonts) -> f64 {
        let widths = self.entries.iter().map(|entry| fonts.width(&entry.label, TICK, false));
        SAMPLE + GAP + widths.fold(0.0, f64::max)
    }

    /// How many columns have room side by side.
    pub(super) fn columns(&self, fonts: &Fonts, room: f64) -> usize {
        let each = self.width(fonts) + BETWEEN_COLUMNS;
        (((room + BETWEEN_COLUMNS) / each) as usize).clamp(1, self.len().max(1))
    }

    /// The height in this many columns.
    pub(super) fn height(&self, columns: usize) -> f64 {
        self.len().div_ceil(columns) as f64 * ROW
    }

    /// Draws the entries row by row from the top left corner.
    pub(super) fn draw(&self, page: &mut dyn Surface, fonts: &Fonts, (left, top): At, columns: usize) {
        let each = self.width(fonts) + BETWEEN_COLUMNS;
        for (i, entry) in self.entries.iter().enumerate() {
            let x = left + (i % columns) as f64 * each;
            let middle = top + (i / columns) as f64 * ROW + ROW / 2.0;
            if let Some(look) = entry.look {
                series::sample(page, &look, entry.interval, (x, middle), SAMPLE);
            }
            let text = TextLook::new(TICK, BLACK, Anchor::Start);
            page.text(&entry.label, (x + SAMPLE + GAP, middle + 0.36 * TICK), text);
        }
    }
}
