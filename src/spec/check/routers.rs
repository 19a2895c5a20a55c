//! Pull and its routers.

use toml::Spanned;

use super::super::error::{Problem, SpecError, nearest, quote};
use super::super::file::PullFile;
use super::super::number::Number;
use super::super::place::Span;
use super::super::routers::RoutersFile;
use super::Check;
use super::pools::{SUM_MENDED, rounded};
use crate::model::{Message, Policy, Pool, Routers};

/// More routers than any use of the program has.
const MOST_ROUTERS: usize = 10_000;
/// What can become of a message that is out of date.
const RULES: [&str; 2] = ["withdraw", "keep"];

impl Check<'_> {
    pub(super) fn pull(&self, file: &PullFile, pools: &[Pool]) -> Result<Policy, SpecError> {
        let mut routers = match &file.routers {
            None => Routers::equal(1),
            Some(given) => self.routers(given)?,
        };
        if let Some(messages) = &file.messages {
            routers.messages = self.shares_of_messages(messages, routers.len(), file)?;
        }
        if let Some(rule) = &file.message {
            routers.message = self.rule(rule, routers.len())?;
        }
        let several = file.routers.as_ref().filter(|_| routers.len() > 1);
        if let (Some(given), true) = (several, pools.iter().any(|p| p.law.phases() > 1)) {
            let title = "several routers with service that is not exponential are not yet supported";
            let error = self.fail(Problem::Unsupported, &given.span(), title);
            return Err(error.allowed("must be 1, or left out, unless every pool serves exponentially"));
        }
        Ok(Policy::pull_by(routers))
    }

    fn routers(&self, given: &Spanned<RoutersFile>) -> Result<Routers, SpecError> {
        match given.get_ref() {
            RoutersFile::Count(count) => {
                let count = Spanned::new(given.span(), *count);
                Ok(Routers::equal(self.whole(&count, "`routers`", 1..=MOST_ROUTERS as i128)?))
            }
            RoutersFile::Streams(shares) => {
                if shares.is_empty() {
                    let error = self.value(&given.span(), "`routers` is an empty list");
                    return Err(error.allowed("must list one share of the jobs for each router"));
                }
                if shares.len() > MOST_ROUTERS {
                    let error = self.value(&given.span(), format!("there are {} routers", shares.len()));
                    return Err(error.allowed(format!("must be at most {MOST_ROUTERS}")));
                }
                let one = "the shares of the jobs must sum to 1";
                Ok(Routers::with_streams(self.distribution(shares, &given.span(), "`routers`", one)?))
            }
        }
    }

    fn shares_of_messages(
        &self,
        given: &Spanned<Vec<Spanned<Number>>>,
        routers: usize,
        file: &PullFile,
    ) -> Result<Vec<f64>, SpecError> {
        let shares = given.get_ref();
        if shares.len() != routers {
            let title = format!("`messages` has {} for {routers}", of(shares.len(), "entry", "entries"));
            let error = self.value(&given.span(), title + if routers == 1 { " router" } else { " routers" });
            let error = error.allowed("must list one probability for each router");
            return Err(match &file.routers {
                Some(list) => error.also(self.sources.place(&list.span()), "the routers are given here"),
                None => error.help("for example `routers = 2`"),
            });
        }
        self.distribution(shares, &given.span(), "`messages`", "the probabilities must sum to 1")
    }

    /// Numbers from 0 to 1 that sum to 1; what is off by the digits they were written with is mended.
    fn distribution(
        &self,
        given: &[Spanned<Number>],
        span: &Span,
        what: &str,
        must: &str,
    ) -> Result<Vec<f64>, SpecError> {
        let one = |x: &Spanned<Number>| {
            let range = |x| (0.0..=1.0).contains(&x);
            self.real(x, &format!("an entry of {what}"), "must be from 0 to 1", range)
        };
        let shares = given.iter().map(one).collect::<Result<Vec<f64>, _>>()?;
        let sum: f64 = shares.iter().sum();
        if (sum - 1.0).abs() > SUM_MENDED {
            return Err(self.value(span, format!("{what} sums to {}", rounded(sum))).allowed(must));
        }
        Ok(shares.iter().map(|x| x / sum).collect())
    }

    fn rule(&self, rule: &Spanned<String>, routers: usize) -> Result<Message, SpecError> {
        match rule.get_ref().as_str() {
            "withdraw" => Ok(Message::Withdraw),
            "keep" if routers > 1 => Ok(Message::Keep),
            "keep" => {
                let title = "one router has no messages that are out of date, to keep or not";
                let error = self.value(&rule.span(), title);
                Err(error.allowed("must be left out with one router").help("for example `routers = 2`"))
            }
            other => Err(self
                .value(&rule.span(), format!("`message` is {}", quote(other)))
                .allowed("must be \"withdraw\" or \"keep\"")
                .suggest(nearest(other, RULES))),
        }
    }
}

/// "1 entry", "2 entries".
fn of(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}
