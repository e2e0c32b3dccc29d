//! SQL text: parsing, statement policy, dialects, parameter templates. No execution, no Arrow, no engine.

mod bounded_dialect;
mod canonical_tokens;
mod dialect;
mod fingerprint;
mod function_policy;
mod mentions;
mod nesting;
mod parameter;
mod parse;
mod point_query;
mod refusal;
mod statement;
mod statement_cache;
mod statement_policy;
mod table_redirect;
mod template;
mod token_policy;
mod transaction;

pub use dialect::SqlDialect;
pub use function_policy::is_deterministic_function;
pub use mentions::{CalledName, Mentions};
pub use parameter::Parameter;
pub use parse::{parse_expression, parse_prepared_expression};
pub use point_query::PointQuery;
pub use statement::{Author, Statement};
pub use statement_cache::StatementCache;
pub use statement_policy::check_expression;
pub use table_redirect::TableLocation;
pub use template::{BoundSql, SqlTemplate, TemplateValue};
pub use transaction::{Isolation, Transaction};
