//! The moments of pairs as an accumulator has them: from rows, and from states.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, UInt64Array};
use arrow::datatypes::{Float64Type, UInt64Type};
use datafusion::common::{Result, exec_err};

use super::moments::{Measure, PairMoments};
use crate::aggregate::moments::Moments;

impl Moments for PairMoments {
    type Measure = Measure;

    fn of_rows(values: &[ArrayRef]) -> Result<impl Iterator<Item = Result<Option<Self>>>> {
        let [y, x] = values else { return exec_err!("a regression has two arguments") };
        let pairs = y.as_primitive::<Float64Type>().iter().zip(x.as_primitive::<Float64Type>().iter());
        Ok(pairs.map(|(y, x)| Ok(y.zip(x).map(|(y, x)| Self::from_pair(y, x)))))
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        *self = self.with(*other);
        Ok(())
    }

    fn read_states(states: &[ArrayRef]) -> Result<impl Iterator<Item = Self>> {
        let [counts, sums_x, squares_x, sums_y, squares_y, products, same_x, same_y] = states else {
            return exec_err!("a regression has eight states");
        };
        let counts = counts.as_primitive::<UInt64Type>();
        let sums = [sums_x, squares_x, sums_y, squares_y, products, same_x, same_y];
        let [sums_x, squares_x, sums_y, squares_y, products, same_x, same_y] =
            sums.map(|column| column.as_primitive::<Float64Type>());
        Ok((0..counts.len()).map(move |row| Self {
            count: counts.value(row),
            sum_x: sums_x.value(row),
            squares_x: squares_x.value(row),
            sum_y: sums_y.value(row),
            squares_y: squares_y.value(row),
            products: products.value(row),
            same_x: same_x.value(row),
            same_y: same_y.value(row),
        }))
    }

    fn write_states(moments: &[Self]) -> Result<Vec<ArrayRef>> {
        let counts: UInt64Array = moments.iter().map(|moments| Some(moments.count)).collect();
        let column = |value: fn(&Self) -> f64| -> ArrayRef {
            Arc::new(moments.iter().map(|moments| Some(value(moments))).collect::<Float64Array>())
        };
        Ok(vec![
            Arc::new(counts),
            column(|moments| moments.sum_x),
            column(|moments| moments.squares_x),
            column(|moments| moments.sum_y),
            column(|moments| moments.squares_y),
            column(|moments| moments.products),
            column(|moments| moments.same_x),
            column(|moments| moments.same_y),
        ])
    }

    fn evaluate(moments: &[Self], measure: &Measure) -> Result<ArrayRef> {
        let measures = moments.iter().map(|moments| moments.compute(*measure));
        Ok(Arc::new(measures.collect::<Result<Float64Array>>()?))
    }
}
