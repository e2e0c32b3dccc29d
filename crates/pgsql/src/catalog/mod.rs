//! PostgreSQL's catalogs, `pg_catalog` and `information_schema`, over what one caller may see.
//!
//! An engine determines what a statement needs of the catalogs ([`find_catalog_needs`]) and lists the tables and
//! columns that its caller may see ([`VisibleObjects`]). From these, this module builds rows ([`catalog_rows`]) and
//! functions ([`catalog_functions`]). Nothing in this module looks up tables itself.

mod function;
mod functions;
mod information_schema;
mod needs;
mod objects;
mod oid;
mod pg_catalog;
mod privilege;
mod reference;
mod relation;
mod settings;
mod syntax;
mod type_name;
mod types;

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::ScalarUDF;

pub use needs::{CatalogNeeds, find_catalog_needs};
pub use objects::{PUBLIC_SCHEMA, VisibleObjects, VisibleTable};
pub use relation::relation_name as catalog_name;
use relation::{INFORMATION_SCHEMA, PG_CATALOG};
pub(crate) use syntax::rewrite_statement;
pub(crate) use type_name::ResolveTypeNames;

/// Returns the catalog functions, over no tables.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let mut all = functions::functions(&Arc::default());
    all.push(type_name::function());
    all
}

/// Returns the catalog functions over `objects`. They replace the functions of the same names, which see no tables.
pub fn catalog_functions(objects: &Arc<VisibleObjects>) -> Vec<ScalarUDF> {
    functions::functions(objects)
}

/// Returns the rows of the catalog with the full name `name` ([`catalog_name`]).
///
/// # Errors
/// `Internal` if there is no such catalog.
pub fn catalog_rows(name: &str, objects: &VisibleObjects) -> Result<RecordBatch> {
    match name.split_once('.') {
        Some((PG_CATALOG, relation)) => pg_catalog::rows(relation, objects),
        Some((INFORMATION_SCHEMA, relation)) => information_schema::rows(relation, objects),
        _ => internal_err!("there is no catalog {name}"),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field};

    use super::*;

    #[test]
    fn every_catalog_has_rows_that_fit_its_columns() {
        let columns = vec![
            Arc::new(Field::new("id", DataType::Int64, false)),
            Arc::new(Field::new("name", DataType::Utf8, true)),
        ];
        let table = VisibleTable {
            schema: PUBLIC_SCHEMA.to_owned(),
            name: "flights".to_owned(),
            rows: Some(3),
            columns,
            ..VisibleTable::default()
        };
        let objects = VisibleObjects::new("db", "ann", vec![table]);
        for name in relation::relation_names() {
            catalog_rows(name, &objects).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        assert_eq!(catalog_rows("information_schema.columns", &objects).unwrap().num_rows(), 2);
        assert_eq!(catalog_rows("pg_catalog.pg_class", &objects).unwrap().num_rows(), 1);
    }
}
