//! Tables as functions: the check of a request against a description, its application to rows, and what to answer when
//! the rows are too large.

mod nearest;
mod oversized;
mod pattern;
mod request;
mod selector;
mod validation;
mod violation;

pub(crate) use nearest::{alternatives, nearest_advice};
pub use oversized::{FilterAdvice, OversizedAnswer};
pub use request::{FunctionCondition, FunctionRequest, FunctionSort, LIMIT_DEFAULT, LIMIT_MAX};
pub use selector::{RowSelector, SelectedRows};
pub use violation::{RequestViolation, RequestViolations};
