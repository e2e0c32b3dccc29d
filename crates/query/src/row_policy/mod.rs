//! Row policies: which rows and columns of a table a principal may see.
//!
//! A policy is parsed once from the configuration ([`RowCondition`]), and resolved for the columns of a table and a
//! principal into a [`TableView`], which contains only literals. Engines apply only this view. A policy that cannot be
//! applied hides the table.

mod condition;
mod filter;
mod mask;
mod parse;
mod policies;
mod resolve;
mod validation;

pub use condition::RowCondition;
pub use filter::{PolicyColumn, RowFilter, RowValue, ValueKind};
pub use mask::{HashKey, Mask};
pub use policies::{RowPolicies, RowPolicy, TableView, UNFIT_POLICY_HINT};
pub use validation::{PolicyPart, PolicyProblem, PolicyTable};
