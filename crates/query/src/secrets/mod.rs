//! Secrets in answers: found by rule, and masked before rows take any form.

mod batches;
mod rules;

pub(crate) use batches::screened;
pub use rules::{BUILT_IN_RULES, SecretRule, SecretRules, WrongRule};
