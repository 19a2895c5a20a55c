//! Pull and its routers.

use toml::Spanned;

use super::super::error::{Problem, SpecError, nearest, quote};
use super::super::file::PullFile;
use super::super::number::Number;
use super::super::place::Span;
use super::super::routers::RoutersFile;
use super::Check;
use super::pools::{SUM_MENDED, rounded};
use crate::model::{Initial, Message, Model, Policy, Pool, Routers};

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
            let error = |e: SpecError| match &file.routers {
                Some(list) => e.also(self.sources.place(&list.span()), "the routers are given here"),
                None => e.help("for example `routers = 2`"),
            };
            routers.messages = self.by_router(messages, "`messages`", routers.len(), error)?;
        }
        if let Some(rule) = &file.message {
            routers.message = self.rule(rule, routers.len())?;
        }
        let several = file.routers.as_ref().filter(|_| routers.len() > 1);
        if let Some(given) = several {
            self.routers_can(given, &routers, pools)?;
        }
        if pools.iter().any(|p| p.slots > 1) {
            return Ok(Policy::pull_with_slots(pools.iter().map(|p| p.slots).collect()));
        }
        Ok(Policy::pull_by(routers))
    }

    /// Refuses pools that several routers cannot have.
    fn routers_can(
        &self,
        given: &Spanned<RoutersFile>,
        routers: &Routers,
        pools: &[Pool],
    ) -> Result<(), SpecError> {
        if pools.iter().any(|p| p.slots > 1) {
            let error = self.fail(Problem::Unsupported, &given.span(), "several routers with several slots");
            return Err(error.allowed("must be 1, or left out, unless every pool has one slot"));
        }
        if !routers.is_balanced() && !pools.iter().all(Pool::is_plain) {
            let title = "unequal routers with service that is not exponential at one speed are not supported";
            let error = self.fail(Problem::Unsupported, &given.span(), title);
            return Err(error
                .allowed("must give each router as large a share of the jobs as `messages` gives it of these")
                .help("their limit is known for exponential service only"));
        }
        Ok(())
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

    /// The start `initial` of a system with several routers, with the messages of its idle servers split
    /// over the routers as given.
    pub(super) fn start_messages(
        &self,
        given: &Spanned<Vec<Spanned<Number>>>,
        model: &Model,
        initial: &Initial,
    ) -> Result<Initial, SpecError> {
        let routers = model.policy.routers.as_ref().map_or(1, Routers::len);
        let help = |e: SpecError| e.help("`fluid.messages` says where messages are at time 0");
        let shares = self.by_router(given, "`fluid.messages`", routers, help)?;
        let tails: Vec<Vec<f64>> = (0..model.pools.len()).map(|j| initial.tails(model, j)).collect();
        let idle = model.pools.iter().zip(&tails).map(|(pool, tails)| {
            let idle = pool.share - tails.first().copied().unwrap_or(0.0);
            shares.iter().map(|x| x * idle).collect()
        });
        let alike = model.policy.routers.iter().all(|r| same(&r.messages, &shares));
        if !alike && !model.pools.iter().all(Pool::is_plain) {
            let title = "routers that start unequal, with service that is not exponential at one speed, \
                         are not supported";
            let error = self.fail(Problem::Unsupported, &given.span(), title);
            return Err(error.allowed("must be left out, or what `messages` of the policy says"));
        }
        Ok(if routers > 1 { Initial::Messages { idle: idle.collect(), tails } } else { initial.clone() })
    }

    /// One probability for each router.
    fn by_router(
        &self,
        given: &Spanned<Vec<Spanned<Number>>>,
        what: &str,
        routers: usize,
        explain: impl Fn(SpecError) -> SpecError,
    ) -> Result<Vec<f64>, SpecError> {
        let shares = given.get_ref();
        if shares.len() != routers {
            let (entries, routers) = (of(shares.len(), "entry", "entries"), of(routers, "router", "routers"));
            let error = self.value(&given.span(), format!("{what} has {entries} for {routers}"));
            return Err(explain(error.allowed("must list one probability for each router")));
        }
        self.distribution(shares, &given.span(), what, "the probabilities must sum to 1")
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

/// The same shares, but for what rounding does when they are made to sum to 1.
fn same(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12)
}

/// "1 entry", "2 entries".
fn of(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}
