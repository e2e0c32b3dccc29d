//! A table as a principal sees it, whom row policies keep some of it from: its rows filtered, its columns masked, and above
//! both a barrier.
//!
//! What a caller writes runs above the barrier and meets nothing but rows that the caller may see, so that an error, a
//! plan or a count cannot tell of others. Below it are a plan of its own, of which nothing is shown, the policy's filter
//! and of the caller's conditions those that cannot fail.

mod conditions;
mod exec;
mod mask;
mod policy_view;
mod provider;
mod rebatch;
mod row_bytes;

pub(crate) use policy_view::{PrincipalPolicies, check_policies};
pub(crate) use provider::RowPolicyTable;
