//! SQL text: parsing, statement policy, dialects, parameter templates. No execution, no Arrow, no engine.

mod bounded_dialect;
mod canonical_tokens;
mod dialect;
mod function_policy;
mod identifier_quote;
mod lookup;
mod mentions;
mod mysql_grammar;
mod parse;
mod refusal;
mod statement;
mod statement_policy;
mod table_redirect;
mod template;

pub use dialect::{SqlDialect, equivalent_function};
pub use function_policy::is_deterministic_function;
pub use lookup::{Comparator, Lookup, LookupCondition, LookupOutput, PointQuery};
pub use mentions::{CalledName, Mentions, may_write};
pub use parse::{parse_expression, parse_prepared_expression};
pub use statement::{Author, CommitRule, Isolation, Parameter, Statement, StatementCache, Transaction};
pub use statement_policy::check_expression;
pub use table_redirect::{TableLocation, TableReplacement};
pub use template::{BoundSql, SqlTemplate, TemplateName, TemplateValue, name_placeholders};
