//! Row policies: a principal sees a table with filtered rows and masked columns, behind a security barrier.
//!
//! The caller's expressions run above the barrier and receive only rows that the caller may see. So no error, plan or
//! count reveals hidden rows. Below the barrier runs a separate plan that is never displayed, with the policy's filter
//! and those conditions of the caller that cannot fail.

mod conditions;
mod exec;
mod mask;
mod policy_view;
mod provider;
mod rebatch;

pub(crate) use policy_view::{PolicyTableColumns, PrincipalPolicies, check_policies, check_table_policies};
pub(crate) use provider::RowPolicyTable;
