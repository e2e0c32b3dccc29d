//! Numbers: integers and decimals with all their digits, floats in their shortest form.

use std::fmt::{Debug, Write as _};

use arrow::array::{Array, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::{BoxedCell, Cell, Displayed, Plain, Quotes};

pub(super) fn cell(array: &dyn Array) -> BoxedCell<'_> {
    match array.data_type() {
        DataType::Int8 => integer::<Int8Type>(array),
        DataType::Int16 => integer::<Int16Type>(array),
        DataType::Int32 => integer::<Int32Type>(array),
        DataType::Int64 => integer::<Int64Type>(array),
        DataType::UInt8 => integer::<UInt8Type>(array),
        DataType::UInt16 => integer::<UInt16Type>(array),
        DataType::UInt32 => integer::<UInt32Type>(array),
        DataType::UInt64 => integer::<UInt64Type>(array),
        DataType::Float16 => Box::new(Floats(
            array.as_primitive::<Float16Type>(),
            |value: <Float16Type as ArrowPrimitiveType>::Native| value.to_f32(),
        )),
        DataType::Float32 => Box::new(Floats(array.as_primitive::<Float32Type>(), |value| value)),
        DataType::Float64 => Box::new(Floats(array.as_primitive::<Float64Type>(), |value| value)),
        DataType::Decimal32(..) => decimal::<Decimal32Type>(array),
        DataType::Decimal64(..) => decimal::<Decimal64Type>(array),
        DataType::Decimal128(..) => decimal::<Decimal128Type>(array),
        DataType::Decimal256(..) => decimal::<Decimal256Type>(array),
        _ => Box::new(Displayed(array)),
    }
}

fn integer<T: ArrowPrimitiveType<Native: std::fmt::Display>>(array: &dyn Array) -> BoxedCell<'_> {
    let write = |array: &PrimitiveArray<T>, row, out: &mut String| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{}", array.value(row));
    };
    Box::new(Plain { array: array.as_primitive::<T>(), quotes: Quotes::None, write })
}

fn decimal<T: DecimalType + ArrowPrimitiveType>(array: &dyn Array) -> BoxedCell<'_> {
    let array = array.as_primitive::<T>();
    let (precision, scale) = (array.precision(), array.scale());
    let write = move |array: &PrimitiveArray<T>, row, out: &mut String| {
        out.push_str(&T::format_decimal(array.value(row), precision, scale));
    };
    Box::new(Plain { array, quotes: Quotes::None, write })
}

/// Floats, and how they become a type that the standard library prints.
struct Floats<'a, T: ArrowPrimitiveType, F>(&'a PrimitiveArray<T>, F);

/// A float that the standard library prints in its shortest form.
trait Printable: Debug + Copy {
    fn special(self) -> Option<&'static str>;
}

impl Printable for f32 {
    fn special(self) -> Option<&'static str> {
        f64::from(self).special()
    }
}

impl Printable for f64 {
    fn special(self) -> Option<&'static str> {
        if self.is_finite() {
            None
        } else if self.is_nan() {
            Some("NaN")
        } else if self > 0.0 {
            Some("Infinity")
        } else {
            Some("-Infinity")
        }
    }
}

impl<T: ArrowPrimitiveType, P: Printable, F: Fn(T::Native) -> P + Send + Sync> Floats<'_, T, F> {
    fn value(&self, row: usize) -> P {
        (self.1)(self.0.value(row))
    }
}

impl<T: ArrowPrimitiveType, P: Printable, F: Fn(T::Native) -> P + Send + Sync> Cell for Floats<'_, T, F> {
    fn is_null(&self, row: usize) -> bool {
        self.0.is_null(row)
    }

    fn json(&self, row: usize, out: &mut String) {
        // JSON has no numbers for these, so they are strings.
        let quotes = if self.value(row).special().is_some() { "\"" } else { "" };
        out.push_str(quotes);
        self.text(row, out);
        out.push_str(quotes);
    }

    fn text(&self, row: usize, out: &mut String) {
        let value = self.value(row);
        match value.special() {
            Some(name) => out.push_str(name),
            // Debug keeps the `.0` that tells a float from an integer, and is JSON. Writing to a String cannot fail.
            None => drop(write!(out, "{value:?}")),
        }
    }

    fn is_bare(&self, row: usize) -> bool {
        self.value(row).special().is_none()
    }
}
