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
//! A type that is not here has no [`Column`] of its own: it is selected as `column::text` and becomes a
//! [`Column::text_of`]. Infinite dates, timestamps and intervals are the least and greatest values of their Arrow
//! types, which formats write as `-infinity` and `infinity`. What Arrow cannot hold is an error that says so, never
//! another value.

mod address;
mod array;
mod batch;
mod bound;
mod column;
mod moment;
mod nested;
mod number;
mod raw;
mod refusal;
mod text;
mod type_name;

pub use batch::BatchBuilder;
pub use bound::Bound;
pub use column::{Column, schema_of};
pub use type_name::type_name;
