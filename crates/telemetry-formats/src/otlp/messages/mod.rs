//! The messages of OTLP, version 1 of `opentelemetry-proto`, for Protocol Buffers and JSON.
//!
//! Where the standard has a choice between fields (`oneof`), there are optional fields with the same numbers, so that a
//! record that sets two of them is noticed; `AnyValue` is the exception, for its size. Enumerations are their numbers, so
//! that a number without a name is kept.
//!
//! The types of the crate `opentelemetry-proto` are not used: their JSON has no bound of memory, and of two fields of a
//! choice they keep one without an error.

pub(crate) mod common;
pub(crate) mod logs;
pub(crate) mod metrics;
pub(crate) mod services;
pub(crate) mod traces;
