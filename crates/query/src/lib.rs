//! Queries: query specs, statements, the database trait, the executor and the output formats.
//!
//! An engine implements [`Database`]. A tool builds a [`Statement`](tidegate_sql::Statement) from SQL or from a
//! [`QuerySpec`], and the [`Executor`] streams the rows of its plan into a reply in the requested format. This crate
//! depends on no engine and no protocol.

mod answer;
mod body;
mod calendar;
mod counted_target;
mod database;
mod database_identity;
mod declared_type;
mod distinct;
mod executor;
mod format;
mod ingest;
mod knowledge;
mod login_check;
mod named_enum;
mod network;
mod node_memory;
mod progress;
mod render;
mod request;
mod result_table;
mod row_policy;
mod secrets;
mod spec;
mod spec_json;
mod stable_hash;
mod structured;
mod usage;

pub use body::{RowEncoder, stored_columns};
pub use calendar::{date_from_days, days_from_date, write_date};
pub use counted_target::CountedTarget;
pub use database::{
    BatchSender, Catalog, ColumnEntry, Connections, Database, DatabaseKind, Databases, Freshness, Plan, QueryRows,
    RoleFinding, TableEntry, TableStatus, TableStorage, batch_channel, compute_schema_version_tag,
    mentions_current_time,
};
pub use database_identity::{ClaimSettings, RunAs, identity_fingerprint, user_and_tenant};
pub use declared_type::DeclaredType;
pub use distinct::check_extract;
pub use executor::{Executor, FirstRows, changed_rows_batch, changed_rows_schema, compute_query_id, result_manifest};
pub use format::{
    ColumnFormatter, ExtensionType, MISSING_NODES_KEY, ROWS_ON_ALL_NODES_KEY, as_foreign_text, declared_type_name,
    field_type_name, is_foreign_text, missing_nodes_of_schema, type_name, with_type_name, without_type_name,
};
pub use ingest::{
    ColumnStamp, DeclaredTable, DeclaredTables, IngestMaintenance, IngestStatus, IngestTable, IngestVerification,
    REJECTS_SUFFIX, RowTransform, RowWriter, StepWriter, StoredColumn, TableWrite, TargetColumn, WriteMode, WritePlan,
    WriteReceipt, WriteRequest, WriteStart, WriteStep, WriteSteps, WriteTarget, is_rejects_table, rejected_rows_schema,
};
pub use knowledge::{
    ColumnKnowledge, ColumnPath, DatabaseKnowledge, ExampleQuestion, ExternalKnowledge, Knowledge, KnowledgeLayers,
    Measure, Relationship, TableKnowledge,
};
pub use login_check::LoginCheck;
pub use network::{
    MissingNode, MissingNodes, Network, NodeCheck, NodeDatabase, NodeObservation, NodeTable, NodeTables, NodeWrite,
    PartRange, TablePart, is_node_failure,
};
pub use node_memory::{MemoryShare, NodeMemory, NodeReservation};
pub use request::{AnswerMode, Delivery, OutputOptions, OverflowPolicy, QueryRequest, TableOptions};
pub use result_table::{RESULTS_DATABASE, RESULTS_KIND, ResultTable, ResultTables, missing_result_table};
pub use row_policy::{
    HashKey, Mask, PolicyColumn, PolicyPart, PolicyProblem, PolicyTable, RowCondition, RowFilter, RowPolicies,
    RowPolicy, RowValue, TableView, UNFIT_POLICY_HINT, ValueKind,
};
pub use secrets::{BUILT_IN_RULES, SecretRule, SecretRuleError, SecretRules};
pub use spec::{
    AggregateFunction, BoundExpression, Comparison, ComparisonOperator, GroupKey, JoinKind, JoinOn, LIMIT_DEFAULT,
    NamedExpression, Operand, QueryCondition, QueryJoin, QuerySpec, Selection, SortKey,
};
pub use stable_hash::StableHasher;
pub use structured::output_schema;
pub use tidegate_results::{array_bytes, batch_bytes};
pub use usage::{UsageRanks, UsageTracker};
