//! What a question is: query spec, statement, database trait, executor, formats.
//!
//! An engine implements [`Database`]; a tool makes a [`Statement`] from SQL or from a
//! [`QuerySpec`], and the [`Executor`] streams the rows of its plan into a reply in the caller's
//! format. Knows no engine and no protocol.

mod answer;
mod body;
mod bounded_dialect;
mod cache;
mod database;
mod dialect;
mod distinct;
mod executor;
mod fingerprint;
mod format;
mod freshness;
mod functions;
mod handover;
mod lasting;
mod lookup;
mod moved;
mod nesting;
mod parameter;
mod parse;
mod policy;
mod refusal;
mod render;
mod row_policy;
mod secrets;
mod spec;
mod spelling;
mod stamp;
mod statement;
mod store;
mod structured;
mod template;
mod transaction;
mod uses;
mod words;

pub use body::BodyWriter;
pub use cache::StatementCache;
pub use database::{Catalog, Column, Database, Databases, Plan, Rows, TableEntry, TableStatus};
pub use executor::{Delivery, Executor, Mode, Page, Presentation, Question, Rest, question_of};
pub use format::{Format, Meaning, Texts, declared_type_name, field_type_name, type_name, with_type_name};
pub use freshness::{Freshness, names_moment};
pub use handover::{BatchSender, handover};
pub use lasting::LastingStamp;
pub use lookup::Lookup;
pub use moved::Moved;
pub use row_policy::{
    Comparator, HashKey, Mask, PolicyColumn, PolicyPart, PolicyProblem, PolicyTable, RowCondition, RowFilter,
    RowPolicies, RowPolicy, RowValue, TableView, ValueKind,
};
pub use secrets::{BUILT_IN_RULES, SecretRule, SecretRules, WrongRule};
pub use spec::{
    Comparison, Condition, Function, Join, JoinKind, JoinOn, LIMIT_DEFAULT, Operand, Operator, Order, QuerySpec,
    Selection,
};
pub use stamp::{Stamps, stamp_of_shape};
pub use statement::{Author, Parameter, SqlDialect, Statement};
pub use store::{
    Asked, Block, BlockFacts, Cursor, END_OF_STREAM, End, FILE_PIECE_BYTES, Head, ResultId, ResultStore, ResultWriter,
    Stage, StoreLimits, StoredFile, StoredResult, Written, file_rows,
};
pub use structured::output_schema;
pub use template::{FilledSql, Filling, SqlTemplate};
pub use transaction::{Isolation, Transaction};
pub use uses::{Ranks, Uses};
