//! Numbers: integers and decimals with all their digits, floats in their shortest form.

use std::fmt::{Debug, Write as _};

use arrow::array::{Array, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::{BoxedCells, ColumnCells, DisplayCells, FnCells, Quotes};

pub(super) fn number_cells(array: &dyn Array) -> BoxedCells<'_> {
    match array.data_type() {
        DataType::Int8 => integer_cells::<Int8Type>(array),
        DataType::Int16 => integer_cells::<Int16Type>(array),
        DataType::Int32 => integer_cells::<Int32Type>(array),
        DataType::Int64 => integer_cells::<Int64Type>(array),
        DataType::UInt8 => integer_cells::<UInt8Type>(array),
        DataType::UInt16 => integer_cells::<UInt16Type>(array),
        DataType::UInt32 => integer_cells::<UInt32Type>(array),
        DataType::UInt64 => integer_cells::<UInt64Type>(array),
        DataType::Float16 => Box::new(FloatCells(
            array.as_primitive::<Float16Type>(),
            |value: <Float16Type as ArrowPrimitiveType>::Native| value.to_f32(),
        )),
        DataType::Float32 => Box::new(FloatCells(array.as_primitive::<Float32Type>(), |value| value)),
        DataType::Float64 => Box::new(FloatCells(array.as_primitive::<Float64Type>(), |value| value)),
        DataType::Decimal32(..) => decimal_cells::<Decimal32Type>(array),
        DataType::Decimal64(..) => decimal_cells::<Decimal64Type>(array),
        DataType::Decimal128(..) => decimal_cells::<Decimal128Type>(array),
        DataType::Decimal256(..) => decimal_cells::<Decimal256Type>(array),
        _ => Box::new(DisplayCells(array)),
    }
}

fn integer_cells<T: ArrowPrimitiveType<Native: std::fmt::Display>>(array: &dyn Array) -> BoxedCells<'_> {
    let write = |array: &PrimitiveArray<T>, row, out: &mut String| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{}", array.value(row));
    };
    Box::new(FnCells { array: array.as_primitive::<T>(), quotes: Quotes::None, write })
}

fn decimal_cells<T: DecimalType + ArrowPrimitiveType>(array: &dyn Array) -> BoxedCells<'_> {
    let array = array.as_primitive::<T>();
    let (precision, scale) = (array.precision(), array.scale());
    let write = move |array: &PrimitiveArray<T>, row, out: &mut String| {
        out.push_str(&T::format_decimal(array.value(row), precision, scale));
    };
    Box::new(FnCells { array, quotes: Quotes::None, write })
}

/// Floats, and their conversion to a type that the standard library prints.
struct FloatCells<'a, T: ArrowPrimitiveType, F>(&'a PrimitiveArray<T>, F);

impl<T, P, F> FloatCells<'_, T, F>
where
    T: ArrowPrimitiveType,
    P: Debug + Copy + Into<f64>,
    F: Fn(T::Native) -> P + Send + Sync,
{
    /// The value, and its name if it is not finite.
    fn value(&self, row: usize) -> (P, Option<&'static str>) {
        let value = (self.1)(self.0.value(row));
        let name = match value.into() {
            number if number.is_finite() => None,
            number if number.is_nan() => Some("NaN"),
            number if number > 0.0 => Some("Infinity"),
            _ => Some("-Infinity"),
        };
        (value, name)
    }
}

impl<T, P, F> ColumnCells for FloatCells<'_, T, F>
where
    T: ArrowPrimitiveType,
    P: Debug + Copy + Into<f64>,
    F: Fn(T::Native) -> P + Send + Sync,
{
    fn is_null(&self, row: usize) -> bool {
        self.0.is_null(row)
    }

    fn append_json(&self, row: usize, out: &mut String) {
        // JSON has no such numbers, so they are strings.
        let quotes = if self.is_plain_json(row) { "" } else { "\"" };
        out.push_str(quotes);
        self.append_text(row, out);
        out.push_str(quotes);
    }

    fn append_text(&self, row: usize, out: &mut String) {
        match self.value(row) {
            (_, Some(name)) => out.push_str(name),
            // Debug keeps the `.0` that distinguishes a float from an integer, and is valid JSON. Writing to a String
            // cannot fail.
            (value, None) => drop(write!(out, "{value:?}")),
        }
    }

    fn is_plain_json(&self, row: usize) -> bool {
        self.value(row).1.is_none()
    }
}
