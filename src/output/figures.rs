//! stub
use crate::{
    finite::Summary,
    fluid::{FixedPoint, Path},
    model::Model,
    output::plot::Figure,
    run::Convergence,
};
pub fn default_tails(_m: &Model, _p: &Path) -> Vec<()> {
    vec![]
}
pub fn trajectory(m: &Model, _p: &Path, _f: Option<&FixedPoint>, _r: &[Summary], _t: &[()]) -> Figure {
    Figure::new(m.name.clone())
}
pub fn levels(m: &Model, _p: &Path, _f: &FixedPoint, _r: &[Summary]) -> Figure {
    Figure::new(m.name.clone())
}
pub fn convergence(_c: &Convergence, m: &Model) -> Figure {
    Figure::new(m.name.clone())
}
