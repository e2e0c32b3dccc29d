//! SQL text: parsing, statement policy, dialects, parameter templates. No execution, no Arrow, no engine.

mod bounded_dialect;
mod canonical_tokens;
mod database_name;
mod dialect;
mod equivalent_function;
mod fingerprint;
mod function_policy;
mod nesting;
mod parameter;
mod parse;
mod point_query;
mod refusal;
mod statement;
mod statement_cache;
mod statement_policy;
mod table_function;
mod table_redirect;
mod template;
mod template_value;
mod token_policy;
mod transaction;
mod writing_statement;

pub use dialect::SqlDialect;
pub use equivalent_function::equivalent_function;
pub use function_policy::is_deterministic_function;
pub use parameter::Parameter;
pub use parse::{parse_expression, parse_prepared_expression};
pub use point_query::PointQuery;
pub use statement::{Author, Statement};
pub use statement_cache::StatementCache;
pub use statement_policy::check_expression;
pub use table_redirect::TableLocation;
pub use template::{BoundSql, SqlTemplate, TemplateName, name_placeholders};
pub use template_value::TemplateValue;
pub use transaction::{CommitRule, Isolation, Transaction};
pub use writing_statement::may_write;
