//! Values between PostgreSQL and Arrow: binary results in, bound parameters out.
//!
//! | PostgreSQL | Arrow |
//! |---|---|
//! | `boolean`, `smallint`, `integer`, `bigint`, `real`, `double precision` | the same |
//! | `oid`, `xid`, `cid`; `xid8` | `UInt32`; `UInt64` |
//! | `numeric(p,s)` with p up to 38, 76 and s from 0 to p | `Decimal128`, `Decimal256` |
//! | any other `numeric` | `Utf8Validator` with all digits, marked as a number |
//! | `text`, `varchar`, `char(n)`, `name`, `"char"`, `citext`, enums, `void` | `Utf8Validator` |
//! | `uuid`, `inet`, `cidr`, `macaddr`, `macaddr8`, `bit`, `varbit` | `Utf8Validator`, as PostgreSQL writes them |
//! | `json`, `jsonb` | `Utf8Validator`, marked as JSON |
//! | `bytea` | `Binary` |
//! | `decode_date`, `decode_time`, `decode_timestamp`, `timestamptz` | `Date32`, `Time64(µs)`, `Timestamp(µs)`, `Timestamp(µs, UTC)` |
//! | `decode_interval` | `Interval(MonthDayNano)` |
//! | arrays of these, of one dimension | `List` |
//! | composites of these | `Struct` |
//! | domains | as the type below them |
//!
//! A type that is not here has no [`ColumnDecoder`] of its own: it is selected as `column::text` and becomes a
//! [`ColumnDecoder::for_text`]. Infinite dates, timestamps and intervals are the least and greatest values of their Arrow
//! types, which formats write as `-infinity` and `infinity`. What Arrow cannot hold is an error that says so, never
//! another value.

mod array;
mod batch;
mod bound_parameter;
mod column;
mod datetime;
mod inet;
mod nested;
mod numeric;
mod raw;
mod text;
mod type_name;
mod value_error;

pub use batch::BatchBuilder;
pub use bound_parameter::BoundParameter;
pub use column::{ColumnDecoder, arrow_schema};
pub(crate) use raw::RawBytes;
pub use type_name::type_name;
