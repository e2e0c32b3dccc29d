//! The moments of pairs of numbers, and what is computed from them.

use datafusion::common::{Result, exec_err};

use crate::aggregate::variance::VarianceKind;

/// What is computed from the moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Measure {
    /// Of x.
    Variance(VarianceKind),
    Correlation,
    Covariance {
        is_sample: bool,
    },
    Slope,
    Intercept,
    Determination,
    Moment(Moment),
}

/// One of the moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Moment {
    MeanX,
    MeanY,
    SquaresX,
    SquaresY,
    Products,
}

impl Measure {
    /// The moments of parts from which it is computed, beside their numbers of pairs.
    pub(super) fn part_moments(self) -> &'static [Moment] {
        use Moment::{MeanX, MeanY, Products, SquaresX, SquaresY};
        match self {
            Self::Variance(_) | Self::Moment(SquaresX) => &[MeanX, SquaresX],
            Self::Covariance { .. } | Self::Moment(Products) => &[MeanX, MeanY, Products],
            Self::Slope | Self::Intercept => &[MeanX, MeanY, SquaresX, Products],
            Self::Correlation | Self::Determination => &[MeanX, MeanY, SquaresX, SquaresY, Products],
            Self::Moment(MeanX) => &[MeanX],
            Self::Moment(MeanY) => &[MeanY],
            Self::Moment(SquaresY) => &[MeanY, SquaresY],
        }
    }
}

/// Count, sums, sums of the squared differences from the means, and the sum of their products. The latter three are NaN
/// beside a value that is not finite, and infinite where finite values have overflowed. Computed as in PostgreSQL (by
/// Youngs and Cramer), without a rounded mean.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PairMoments {
    pub(super) count: u64,
    pub(super) sum_x: f64,
    pub(super) squares_x: f64,
    pub(super) sum_y: f64,
    pub(super) squares_y: f64,
    pub(super) products: f64,
    /// The value of all x, or the mean of each part, so that equal values have no variance even if their sum is rounded.
    /// NaN if they differ.
    pub(super) same_x: f64,
    pub(super) same_y: f64,
}

impl PairMoments {
    pub(super) fn from_pair(y: f64, x: f64) -> Self {
        // An infinity has no difference from itself, not even if it is alone.
        let zero = |is_finite: bool| if is_finite { 0.0 } else { f64::NAN };
        Self {
            count: 1,
            sum_x: x,
            squares_x: zero(x.is_finite()),
            sum_y: y,
            squares_y: zero(y.is_finite()),
            products: zero(x.is_finite() && y.is_finite()),
            same_x: x,
            same_y: y,
        }
    }

    /// The moments of a part with `count` pairs, from those that were sent. Without pairs it has no means.
    pub(super) fn from_part(count: u64, sent: impl Fn(Moment) -> Option<f64>) -> Self {
        let mean = |moment| sent(moment).unwrap_or_default();
        let means = Self::from_pair(mean(Moment::MeanY), mean(Moment::MeanX));
        Self {
            count,
            sum_x: means.sum_x * count as f64,
            squares_x: sent(Moment::SquaresX).unwrap_or(means.squares_x),
            sum_y: means.sum_y * count as f64,
            squares_y: sent(Moment::SquaresY).unwrap_or(means.squares_y),
            products: sent(Moment::Products).unwrap_or(means.products),
            ..means
        }
    }

    /// The measure; `None` if there are too few pairs, or it is not defined for them.
    pub(super) fn compute(self, measure: Measure) -> Result<Option<f64>> {
        let Self { sum_x, squares_x, sum_y, squares_y, products, same_x, same_y, .. } = self;
        if [squares_x, squares_y, products].iter().any(|moment| moment.is_infinite()) {
            return exec_err!("value out of range: overflow");
        }
        if self.count == 0 {
            return Ok(None);
        }
        let count = self.count as f64;
        // Equal values have no other mean, so that the means of parts of them are equal, too.
        let mean = |sum: f64, same: f64| if same.is_nan() { sum / count } else { same };
        // NaN differs from zero.
        let (varies_x, varies_y) = (squares_x != 0.0, squares_y != 0.0);
        Ok(match measure {
            Measure::Variance(kind) => kind.of_squares(self.count, squares_x),
            Measure::Correlation => (varies_x && varies_y).then(|| products / (squares_x * squares_y).sqrt()),
            Measure::Covariance { is_sample: true } => (self.count > 1).then(|| products / (count - 1.0)),
            Measure::Covariance { is_sample: false } => Some(products / count),
            Measure::Slope => varies_x.then(|| products / squares_x),
            Measure::Intercept => varies_x.then(|| (sum_y - sum_x * products / squares_x) / count),
            Measure::Determination if varies_x && !varies_y => Some(1.0),
            Measure::Determination => varies_x.then(|| products * products / (squares_x * squares_y)),
            Measure::Moment(Moment::MeanX) => Some(mean(sum_x, same_x)),
            Measure::Moment(Moment::MeanY) => Some(mean(sum_y, same_y)),
            Measure::Moment(Moment::SquaresX) => Some(squares_x),
            Measure::Moment(Moment::SquaresY) => Some(squares_y),
            Measure::Moment(Moment::Products) => Some(products),
        })
    }

    /// The moments of the pairs of both.
    pub(super) fn with(self, other: Self) -> Self {
        let (own, others) = (self.count as f64, other.count as f64);
        let count = own + others;
        let (sum_x, sum_y) = (self.sum_x + other.sum_x, self.sum_y + other.sum_y);
        let (x, y, scale) = match (self.count, other.count) {
            (0, _) => return other,
            (_, 0) => return self,
            (_, 1) => (other.sum_x * count - sum_x, other.sum_y * count - sum_y, 1.0 / (count * own)),
            (1, _) => (self.sum_x * count - sum_x, self.sum_y * count - sum_y, 1.0 / (count * others)),
            _ => {
                let (x, y) = (self.sum_x / own - other.sum_x / others, self.sum_y / own - other.sum_y / others);
                (x, y, own * others / count)
            }
        };
        let same = |own: f64, other: f64| if own - other == 0.0 { own } else { f64::NAN };
        let (same_x, same_y) = (same(self.same_x, other.same_x), same(self.same_y, other.same_y));
        let x = if same_x.is_nan() { x } else { 0.0 };
        let y = if same_y.is_nan() { y } else { 0.0 };
        let add = |moment: f64, added: f64, are_finite: bool| match moment + added {
            _ if moment.is_nan() => moment,
            sum if are_finite && sum.is_finite() => sum,
            _ => f64::INFINITY,
        };
        Self {
            count: self.count + other.count,
            sum_x,
            squares_x: add(self.squares_x + other.squares_x, x * x * scale, sum_x.is_finite()),
            sum_y,
            squares_y: add(self.squares_y + other.squares_y, y * y * scale, sum_y.is_finite()),
            products: add(self.products + other.products, x * y * scale, sum_x.is_finite() && sum_y.is_finite()),
            same_x,
            same_y,
        }
    }
}
