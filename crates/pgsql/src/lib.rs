//! PostgreSQL's SQL on DataFusion: a name that PostgreSQL has means what it means in PostgreSQL, or is refused.
//!
//! DataFusion plans and executes. This crate supplies PostgreSQL's semantics, in seven stages:
//!
//! 1. [`rewrite`] replaces forms of a statement that DataFusion's planner does not support with forms that it supports,
//!    before planning.
//! 2. [`expression_planners`] resolve operators by the types of their operands, as PostgreSQL's operator catalog does.
//! 3. [`scalar_functions`] and its siblings return the functions: one family per module.
//!    DataFusion's own functions stay where PostgreSQL has no function of that name.
//! 4. [`analyzer_rules`] run once all types are known: casts become PostgreSQL's input, output and conversion
//!    functions, and arithmetic is checked for overflow.
//! 5. [`optimizer_rules`] are DataFusion's, which leave plans alone whose answers they would change. Before them,
//!    constants are cast instead of the columns that are compared with them.
//! 6. [`query_planner`] plans `IS TRUE` and its like as columns that are never NULL.
//! 7. [`physical_optimizer_rules`] keep expressions from being computed for rows that a condition excludes.
//!
//! [`catalog_rows`] builds `information_schema`, `pg_tables` and `pg_views` from the objects that a caller may see
//! ([`VisibleObjects`]).
//!
//! `docs/reference/sql.md` lists the remaining differences from PostgreSQL.

mod aggregate;
mod analyzer;
mod array;
mod byte_format;
mod cast;
mod catalog;
mod column_names;
mod correlated;
mod data_type;
mod filter_order;
mod function;
mod implement;
mod in_list;
mod json;
mod list;
mod number;
mod operands;
mod operator;
mod optimizer;
mod outer_join;
mod pg_regex;
mod plan_walk;
mod registry;
mod set_returning;
mod statement;
mod subquery_order;
mod syntax;
mod text;
mod time;
mod truth_test;
mod untyped_literals;
mod walk;

pub use aggregate::{MergedMoments, PART_DIGEST, merged_moments, merged_percentile, part_digest};
pub use analyzer::analyzer_rules;
pub use catalog::{
    CatalogNeeds, PUBLIC_SCHEMA, VisibleObjects, VisibleTable, catalog_functions, catalog_name, catalog_rows,
    find_catalog_needs,
};
pub use data_type::type_planner;
pub use filter_order::physical_optimizer_rules;
pub use number::numeric_literal;
pub use operator::{expression_planners, relation_planners};
pub use optimizer::optimizer_rules;
pub use plan_walk::{for_each_part, rewrite_named};
pub use registry::{aggregate_functions, scalar_functions, table_functions, window_functions};
pub use statement::{ROWS_FROM, TableColumns, output_schema, rewrite};
pub use truth_test::query_planner;
