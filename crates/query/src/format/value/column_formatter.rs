//! Formats single values as text, outside of an answer.

use arrow::array::Array;
use arrow::datatypes::Field;

use super::{BoxedCells, field_cells};

/// Formats the values of one column as the text formats do.
pub struct ColumnFormatter<'a>(BoxedCells<'a>);

impl<'a> ColumnFormatter<'a> {
    /// The values of `array`, which are those of `field`.
    pub fn new(field: &Field, array: &'a dyn Array) -> Self {
        Self(field_cells(field, array))
    }

    /// The value in `row`; `None` if it is null.
    ///
    /// # Panics
    /// If the array has no such row.
    pub fn format_value(&self, row: usize) -> Option<String> {
        (!self.0.is_null(row)).then(|| {
            let mut text = String::new();
            self.0.append_text(row, &mut text);
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, BinaryArray, Int64Array, UnionArray};
    use arrow::datatypes::{DataType, UnionFields};

    use super::*;

    #[test]
    fn values_of_unions_are_those_of_their_members() {
        let members = [("integer", DataType::Int64), ("blob", DataType::Binary)];
        let fields: UnionFields =
            (0_i8..).zip(members.map(|(name, kind)| Arc::new(Field::new(name, kind, true)))).collect();
        let integers: ArrayRef = Arc::new(Int64Array::from(vec![10]));
        let blobs: ArrayRef = Arc::new(BinaryArray::from_opt_vec(vec![None, Some(b"ab")]));
        let union =
            UnionArray::try_new(fields, vec![0, 1, 1].into(), Some(vec![0, 0, 1].into()), vec![integers, blobs])
                .unwrap();
        let field = Field::new("any", union.data_type().clone(), true);
        let texts = ColumnFormatter::new(&field, &union);
        assert_eq!(
            [0, 1, 2].map(|row| texts.format_value(row)),
            [Some("10".to_owned()), None, Some("YWI=".to_owned())]
        );
    }
}
