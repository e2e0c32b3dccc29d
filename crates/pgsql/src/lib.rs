//! PostgreSQL's SQL on DataFusion: a name that PostgreSQL has means what PostgreSQL means, or is refused.
//!
//! DataFusion plans and runs; this crate gives it PostgreSQL's vocabulary, in five places that follow each other:
//!
//! 1. [`rewrite`] turns forms of a statement that DataFusion's planner lacks into forms that it has,
//!    before anything is planned.
//! 2. [`expression_planners`] resolve operators by the types of their operands, as PostgreSQL's operator catalog does.
//! 3. [`scalar_functions`] and its siblings are the functions, one family a module and one function a file. Functions
//!    that PostgreSQL does not have stay DataFusion's.
//! 4. [`analyzer_rules`] run once all types are known: casts become PostgreSQL's input, output and conversion
//!    functions, and arithmetic is checked for overflow.
//! 5. [`physical_optimizer_rules`] see to it that rows which a condition excludes are not computed.
//!
//! The catalogs of PostgreSQL, which tell of tables, are made by [`catalog_rows`] of what a caller may see ([`VisibleObjects`]).
//!
//! What differs from PostgreSQL all the same is listed in `docs/sql.md`.

mod aggregate;
mod analyzer;
mod array;
mod cast;
mod catalog;
mod correlated;
mod filter_order;
mod json;
mod number;
mod operator;
mod optimizer;
mod outer_join;
mod registry;
mod statement;
mod syntax;
mod text;
mod time;
mod types;
mod untyped_literals;

pub use analyzer::analyzer_rules;
pub use catalog::{
    CatalogNeeds, PUBLIC_SCHEMA, VisibleObjects, VisibleTable, catalog_functions, catalog_name, catalog_rows,
    find_catalog_needs,
};
pub use filter_order::physical_optimizer_rules;
pub use operator::{expression_planners, relation_planners};
pub use optimizer::optimizer_rules;
pub use registry::{aggregate_functions, scalar_functions, table_functions, window_functions};
pub use statement::{ROWS_FROM, TableColumns, output_schema, rewrite};
pub use types::type_planner;
