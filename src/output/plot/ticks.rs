//! Where an axis is labelled and with what.

use super::figure::Scale;
use super::markup::{Level, Rich};
use super::scale::Span;

/// One labelled tick; `at` runs from 0 to 1 along the axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: Rich,
}

/// The ticks of an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ticks {
    pub(super) major: Vec<Tick>,
    pub(super) minor: Vec<f64>,
    /// A power of ten that all labels are to be multiplied with, such as `×10^{6}`.
    pub(super) factor: Option<Rich>,
}

/// The densest ticks of at most `most` steps that `fits` accepts; the sparsest if it accepts none.
pub(super) fn ticks(span: &Span, most: usize, fits: impl Fn(&Ticks) -> bool) -> Ticks {
    let candidates = match span.scale {
        Scale::Linear => linear_candidates(span, most),
        Scale::Log => log_candidates(span, most),
    };
    let mut last = Ticks::default();
    for candidate in candidates {
        if fits(&candidate) {
            return candidate;
        }
        last = candidate;
    }
    last.major.truncate(1);
    last
}

fn linear_candidates(span: &Span, most: usize) -> Vec<Ticks> {
    (1..=most.max(1)).rev().map(|steps| linear(span, steps)).collect()
}

fn linear(span: &Span, steps: usize) -> Ticks {
    let raw = (span.high - span.low) / steps as f64;
    let raw = if span.whole { raw.max(1.0) } else { raw };
    let (mantissa, exponent) = nice_step(raw);
    let step = mantissa * 10f64.powi(exponent);
    // Ends that are ticks up to rounding count as ticks.
    let first = (span.low / step - 1e-6).ceil();
    let last = (span.high / step + 1e-6).floor();
    // Numbers too long to read get a common power of ten.
    let size = span.low.abs().max(span.high.abs());
    let power = size.log10().floor() as i32;
    let factor = if (-4..6).contains(&power) { 0 } else { power };
    let decimals = (factor - exponent).max(0) as usize;
    let count = (last - first).clamp(0.0, 2.0 * steps as f64 + 2.0) as i64;
    let major = (0..=count).filter_map(|i| {
        // In units of ten to the factor, so that the printed digits are those of a short sum.
        let units = (first + i as f64) * mantissa * 10f64.powi(exponent - factor);
        let at = span.place_inside((first + i as f64) * step)?;
        Some(Tick { at, label: Rich::plain(number(units, decimals)) })
    });
    let label = (factor != 0).then(|| times_power("\u{00D7}", factor));
    Ticks { major: major.collect(), minor: vec![], factor: label }
}

/// The least of 1, 2, 5 times a power of ten that is not below `raw`.
fn nice_step(raw: f64) -> (f64, i32) {
    let exponent = raw.log10().floor() as i32;
    let part = raw / 10f64.powi(exponent);
    for mantissa in [1.0, 2.0, 5.0] {
        if part <= mantissa * (1.0 + 1e-9) {
            return (mantissa, exponent);
        }
    }
    (1.0, exponent + 1)
}

/// Decades between labels, in steps a reader can count.
const STRIDES: [i32; 12] = [1, 2, 3, 5, 10, 20, 30, 50, 100, 150, 200, 300];

fn log_candidates(span: &Span, most: usize) -> Vec<Ticks> {
    let decades = span.decades();
    let mut candidates = vec![];
    if decades < 0.5 {
        return linear_candidates(span, most);
    }
    if decades < 1.0 {
        candidates.push(mantissas(span, &[1, 2, 3, 4, 5, 6, 7, 8, 9]));
    }
    if decades < 2.0 {
        candidates.push(mantissas(span, &[1, 2, 5]));
        candidates.push(mantissas(span, &[1, 3]));
    }
    let whole = decades.ceil() as i32 + 1;
    let strides = STRIDES.iter().filter(|stride| whole / **stride < 40);
    candidates.extend(strides.map(|stride| powers(span, *stride)));
    candidates.retain(|candidate| !candidate.major.is_empty());
    candidates
}

/// The first and the last power of ten on the axis.
fn whole_decades(span: &Span) -> (i32, i32) {
    ((span.low.log10() - 1e-9).ceil() as i32, (span.high.log10() + 1e-9).floor() as i32)
}

fn powers(span: &Span, stride: i32) -> Ticks {
    let (first, last) = whole_decades(span);
    let labelled = |power: &i32| power.rem_euclid(stride) == 0;
    let major = (first..=last).filter(labelled).filter_map(|power| {
        let at = span.place_inside(10f64.powi(power))?;
        Some(Tick { at, label: power_of_ten(power) })
    });
    let minor = if stride == 1 && span.decades() < 4.0 {
        small_ticks(span)
    } else if span.decades() < 60.0 {
        (first..=last)
            .filter(|power| !labelled(power))
            .filter_map(|p| span.place_inside(10f64.powi(p)))
            .collect()
    } else {
        vec![]
    };
    Ticks { major: major.collect(), minor, factor: None }
}

/// Two to nine times each power of ten.
fn small_ticks(span: &Span) -> Vec<f64> {
    let (first, last) = whole_decades(span);
    let values = (first - 1..=last).flat_map(|power| (2..10).map(move |m| f64::from(m) * 10f64.powi(power)));
    values.filter_map(|value| span.place_inside(value)).collect()
}

fn mantissas(span: &Span, wanted: &[i32]) -> Ticks {
    let (first, last) = whole_decades(span);
    let plain = span.low >= 1e-4 && span.high < 1e6;
    let values = (first - 1..=last).flat_map(|power| wanted.iter().map(move |m| (*m, power)));
    let major = values.filter_map(|(m, power)| {
        let at = span.place_inside(f64::from(m) * 10f64.powi(power))?;
        let label = if plain {
            Rich::plain(number(f64::from(m) * 10f64.powi(power), (-power).max(0) as usize))
        } else if m == 1 {
            power_of_ten(power)
        } else {
            times_power(&format!("{m}\u{00D7}"), power)
        };
        Some(Tick { at, label })
    });
    Ticks { major: major.collect(), minor: small_ticks(span), factor: None }
}

fn power_of_ten(power: i32) -> Rich {
    times_power("", power)
}

fn times_power(before: &str, power: i32) -> Rich {
    let mut label = Rich::plain(format!("{before}10"));
    label.push(Level::Sup, &number(f64::from(power), 0));
    label
}

/// A number with a true minus sign and no negative zero.
fn number(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let digits = text.trim_start_matches('-');
    let zero = digits.chars().all(|c| c == '0' || c == '.');
    if text.len() > digits.len() && !zero { format!("\u{2212}{digits}") } else { digits.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, scale: Scale, most: usize) -> Vec<String> {
        labels_of(&Span { low, high, scale, whole: false }, most)
    }

    fn labels_of(span: &Span, most: usize) -> Vec<String> {
        let ticks = ticks(span, most, |ticks| ticks.major.len() <= most + 1);
        ticks.major.iter().map(|tick| tick.label.bare()).chain(ticks.factor.map(|f| f.bare())).collect()
    }

    #[test]
    fn linear_labels_are_short() {
        let cases: &[(f64, f64, &[&str])] = &[
            (0.0, 1.0, &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
            (-1.0, 1.0, &["\u{2212}1.0", "\u{2212}0.5", "0.0", "0.5", "1.0"]),
            (0.0, 50.0, &["0", "10", "20", "30", "40", "50"]),
            (0.0, 3e7, &["0", "1", "2", "3", "\u{00D7}107"]),
            (0.0, 1e-5, &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0", "\u{00D7}10\u{2212}5"]),
            (0.0, 1e305, &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0", "\u{00D7}10305"]),
        ];
        for (low, high, expected) in cases {
            assert_eq!(labels(*low, *high, Scale::Linear, 5), *expected);
        }
    }

    #[test]
    fn log_labels_follow_the_length_of_the_axis() {
        let cases: &[(f64, f64, &[&str])] = &[
            (1e-3, 1.0, &["10\u{2212}3", "10\u{2212}2", "10\u{2212}1", "100"]),
            (0.5, 6.0, &["0.5", "1", "2", "5"]),
            (2.0, 7.0, &["2", "3", "4", "5", "6", "7"]),
            (1.0, 2.0, &["1.0", "1.2", "1.4", "1.6", "1.8", "2.0"]),
            (1e-300, 1e300, &["10\u{2212}300", "10\u{2212}150", "100", "10150", "10300"]),
        ];
        for (low, high, expected) in cases {
            assert_eq!(labels(*low, *high, Scale::Log, 5), *expected);
        }
    }

    #[test]
    fn counts_are_labelled_at_whole_numbers() {
        let cases: &[(f64, f64, Scale, &[&str])] = &[
            (-0.1, 2.2, Scale::Linear, &["0", "1", "2"]),
            (0.4, 1.6, Scale::Linear, &["1"]),
            (2.0, 4.0, Scale::Log, &["2", "3", "4"]),
            (0.0, 50.0, Scale::Linear, &["0", "10", "20", "30", "40", "50"]),
        ];
        for &(low, high, scale, expected) in cases {
            assert_eq!(labels_of(&Span { low, high, scale, whole: true }, 5), expected);
        }
    }

    #[test]
    fn every_axis_gets_ticks_in_order() {
        for scale in [Scale::Linear, Scale::Log] {
            for (low, high) in
                [(1e-306, 1e306), (1e-300, 2e-300), (1e300, 1e306), (5.0, 5.000_001), (0.99, 1.01)]
            {
                let ticks = ticks(&Span { low, high, scale, whole: false }, 6, |ticks| ticks.major.len() < 9);
                assert!(ticks.major.len() >= 2, "{low} {high} {scale:?} {ticks:?}");
                assert!(ticks.major.windows(2).all(|pair| pair[0].at < pair[1].at), "{ticks:?}");
            }
        }
    }
}
