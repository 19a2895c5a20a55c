//! Formulas of the number of servers n, such as `1 - n^-0.3`: how they are read and what they are worth.
//!
//! The usual precedence: `^` binds tightest, from the right, then a sign, then `*` and `/`, then `+` and
//! `-`; so -2^2 is -4 and 2^3^2 is 512.

use winnow::ascii::{digit0, digit1, multispace0};
use winnow::combinator::{Infix, Prefix, alt, cut_err, delimited, expression, opt, preceded, separated};
use winnow::prelude::*;
use winnow::stream::LocatingSlice;
use winnow::token::{one_of, take_while};

/// Longer ones are refused: they nest without end.
const LONGEST: usize = 200;

/// What a formula may name.
pub(super) const NAMES: &str = "`n`, `pi`, and the functions `sqrt`, `ln`, `log2`, `log10`, `exp`, `abs`, `ceil`, `floor`, `round`, `min`, `max`";

/// A formula.
#[derive(Debug, Clone, PartialEq)]
enum Formula {
    Number(f64),
    /// A name and where it stands.
    Name(String, usize),
    Negative(Box<Formula>),
    Binary(char, Box<Formula>, Box<Formula>),
    /// A function, where its name stands, and its arguments.
    Call(String, usize, Vec<Formula>),
}

/// What is wrong with a formula, and at which byte of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FormulaError {
    pub(super) at: usize,
    pub(super) what: String,
}

/// The value of the formula in `text` at this n.
///
/// # Errors
/// If it is not a formula, names something unknown, or has no finite value.
pub(super) fn value(text: &str, n: u64) -> Result<f64, FormulaError> {
    if text.len() > LONGEST {
        return Err(FormulaError { at: 0, what: format!("it is longer than {LONGEST} characters") });
    }
    let formula = sum.parse(LocatingSlice::new(text)).map_err(|e| FormulaError {
        at: e.offset(),
        what: match text[e.offset()..].chars().next() {
            Some(c) => format!("{c:?} is not expected here"),
            None => "it ends too early".into(),
        },
    })?;
    #[allow(clippy::cast_precision_loss)]
    let x = formula.value(n as f64)?;
    if !x.is_finite() {
        return Err(FormulaError { at: 0, what: format!("its value at n = {n} is {x}") });
    }
    Ok(x)
}

type Input<'i> = LocatingSlice<&'i str>;

fn binary(operator: char, a: Formula, b: Formula) -> ModalResult<Formula> {
    Ok(Formula::Binary(operator, Box::new(a), Box::new(b)))
}

fn sum(input: &mut Input<'_>) -> ModalResult<Formula> {
    let minus = preceded(multispace0, '-');
    expression(delimited(multispace0, operand, multispace0))
        .prefix(minus.map(|_| Prefix(8, |_: &mut Input<'_>, a| Ok(Formula::Negative(Box::new(a))))))
        .infix(alt((
            '+'.map(|_| Infix::Left(5, |_: &mut Input<'_>, a, b| binary('+', a, b))),
            '-'.map(|_| Infix::Left(5, |_: &mut Input<'_>, a, b| binary('-', a, b))),
            '*'.map(|_| Infix::Left(7, |_: &mut Input<'_>, a, b| binary('*', a, b))),
            '/'.map(|_| Infix::Left(7, |_: &mut Input<'_>, a, b| binary('/', a, b))),
            '^'.map(|_| Infix::Right(9, |_: &mut Input<'_>, a, b| binary('^', a, b))),
        )))
        .parse_next(input)
}

fn operand(input: &mut Input<'_>) -> ModalResult<Formula> {
    let arguments = delimited((multispace0, '('), cut_err(separated(1.., sum, ',')), cut_err(')'));
    alt((
        number.map(Formula::Number),
        delimited('(', cut_err(sum), cut_err(')')),
        (name.with_span(), opt(arguments)).map(|((name, span), arguments): ((&str, _), Option<Vec<_>>)| {
            match arguments {
                Some(arguments) => Formula::Call(name.to_owned(), span.start, arguments),
                None => Formula::Name(name.to_owned(), span.start),
            }
        }),
    ))
    .parse_next(input)
}

fn number(input: &mut Input<'_>) -> ModalResult<f64> {
    let exponent = (one_of(['e', 'E']), opt(one_of(['+', '-'])), digit1);
    (digit1, opt(('.', digit0)), opt(exponent)).take().parse_to().parse_next(input)
}

fn name<'i>(input: &mut Input<'i>) -> ModalResult<&'i str> {
    (one_of(('a'..='z', 'A'..='Z')), take_while(0.., ('a'..='z', 'A'..='Z', '0'..='9', '_')))
        .take()
        .parse_next(input)
}

impl Formula {
    fn value(&self, n: f64) -> Result<f64, FormulaError> {
        Ok(match self {
            Self::Number(x) => *x,
            Self::Name(name, at) => match name.as_str() {
                "n" => n,
                "pi" => std::f64::consts::PI,
                _ => return Err(FormulaError { at: *at, what: format!("`{name}` is not known") }),
            },
            Self::Negative(a) => -a.value(n)?,
            Self::Binary(operator, a, b) => {
                let (a, b) = (a.value(n)?, b.value(n)?);
                match operator {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    '/' => a / b,
                    _ => a.powf(b),
                }
            }
            Self::Call(name, at, arguments) => {
                let x = arguments.iter().map(|a| a.value(n)).collect::<Result<Vec<f64>, _>>()?;
                call(name, &x).map_err(|what| FormulaError { at: *at, what })?
            }
        })
    }
}

fn call(name: &str, x: &[f64]) -> Result<f64, String> {
    let of_one: fn(f64) -> f64 = match name {
        "sqrt" => f64::sqrt,
        "ln" => f64::ln,
        "log2" => f64::log2,
        "log10" => f64::log10,
        "exp" => f64::exp,
        "abs" => f64::abs,
        "ceil" => f64::ceil,
        "floor" => f64::floor,
        "round" => f64::round,
        "min" => return Ok(x.iter().copied().fold(f64::INFINITY, f64::min)),
        "max" => return Ok(x.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        "log" => return Err("`log` could mean several things: write `ln`, `log2` or `log10`".into()),
        _ => return Err(format!("`{name}` is not a function that is known")),
    };
    match x {
        [x] => Ok(of_one(*x)),
        _ => Err(format!("`{name}` takes one argument, not {}", x.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence_is_the_usual_one() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("-2^2", -4.0),
            ("2^3^2", 512.0),
            ("2^-1", 0.5),
            ("1 - 1 - 1", -1.0),
            ("8 / 2 / 2", 2.0),
            ("-(1 + 2) * 3", -9.0),
            ("1 - n^-0.5", 0.9),
            ("ceil(n^0.3 * ln(n)^2)", 85.0),
            ("min(3, max(1, 2), 5)", 2.0),
            ("  sqrt( n )/2 ", 5.0),
            ("1e2 + .5e1", f64::NAN),
            ("2 * pi", std::f64::consts::TAU),
        ] {
            match value(text, 100) {
                Ok(x) => assert!((x - expected).abs() < 1e-12, "{text}: {x}"),
                Err(e) => assert!(expected.is_nan(), "{text}: {e:?}"),
            }
        }
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, at) in [
            ("1 +", 3),
            ("1 + * 2", 4),
            ("(1 + 2", 6),
            ("1 + m", 4),
            ("1 + log(n)", 4),
            ("sin(1)", 0),
            ("sqrt(1, 2)", 0),
            ("2 3", 2),
            ("n!", 1),
            ("1 / (n - 100)", 0),
            ("", 0),
        ] {
            let error = value(text, 100).unwrap_err();
            assert_eq!(error.at, at, "{text}: {error:?}");
        }
        assert!(value(&"(".repeat(5000), 1).is_err() && value(&"(".repeat(200), 1).is_err());
        assert!(value(&"-".repeat(199), 1).is_err());
    }
}
