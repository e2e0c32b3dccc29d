//! Values between PostgreSQL and Arrow: binary results in, bound parameters out.
//!
//! | PostgreSQL | Arrow |
//! |---|---|
//! | `boolean`, `smallint`, `integer`, `bigint`, `real`, `double precision` | the same |
//! | `oid`, `xid`, `cid`; `xid8` | `UInt32`; `UInt64` |
//! | `numeric(p,s)` with p up to 38, 76 and s from 0 to p | `Decimal128`, `Decimal256` |
//! | any other `numeric` | `Utf8` with all digits, marked as a number |
//! | `text`, `varchar`, `char(n)`, `name`, `"char"`, `citext`, enums, `void` | `Utf8` |
//! | `uuid`, `inet`, `cidr`, `macaddr`, `macaddr8`, `bit`, `varbit` | `Utf8`, as PostgreSQL writes them |
//! | `json`, `jsonb` | `Utf8`, marked as JSON |
//! | `bytea` | `Binary` |
//! | `date`, `time`, `timestamp`, `timestamptz` | `Date32`, `Time64(µs)`, `Timestamp(µs)`, `Timestamp(µs, UTC)` |
//! | `interval` | `Interval(MonthDayNano)` |
//! | arrays of these, of one dimension | `List` |
//! | composites of these | `Struct` |
//! | domains | as the type below them |
//!
//! Columns of other types are selected as `column::text` and decoded by [`ColumnDecoder::for_text`]. Infinite dates,
//! timestamps and intervals are the minimum and maximum values of their Arrow types, which formats write as `-infinity`
//! and `infinity`. A value that Arrow cannot represent is an error, never another value.

mod array;
mod batch;
mod bound_parameter;
mod column;
mod datetime;
mod numeric;
mod raw;
mod text;

pub use batch::BatchBuilder;
pub use bound_parameter::BoundParameter;
pub(crate) use column::numeric_modifier;
pub use column::{ColumnDecoder, arrow_schema, type_name};
pub(crate) use datetime::{DAYS_TO_EPOCH, MICROSECONDS_OF_DAY, MICROSECONDS_TO_EPOCH};
pub(crate) use raw::RawBytes;

/// The text of a `numeric` in its binary form.
#[cfg(test)]
pub(crate) fn write_numeric_text(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    numeric::write_numeric(bytes, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}
