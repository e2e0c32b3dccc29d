//! `information_schema`, and `pg_tables` and `pg_views` of PostgreSQL's `pg_catalog`, over what one caller may see.
//!
//! An engine determines what a statement needs of the catalogs ([`find_catalog_needs`]) and lists the tables and
//! columns that its caller may see ([`VisibleObjects`]). From these, this module builds rows ([`catalog_rows`]) and
//! functions ([`catalog_functions`]). Nothing in this module looks up tables itself.

mod functions;
mod needs;
mod objects;
mod relation;
mod rows;
mod settings;
mod syntax;
mod type_name;
mod types;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

pub use needs::{CatalogNeeds, find_catalog_needs};
pub use objects::{PUBLIC_SCHEMA, VisibleObjects, VisibleTable};
pub use relation::relation_name as catalog_name;
pub use rows::catalog_rows;
pub(crate) use syntax::rewrite_statement;
pub(crate) use type_name::resolve_type_names;

/// Returns the functions of the session, over no tables, and `pg_typeof`.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let mut all = functions::functions(&Arc::default());
    all.push(type_name::function());
    all
}

/// Returns the functions of the session over `objects`. They replace the functions of the same names, which see no
/// tables.
pub fn catalog_functions(objects: &Arc<VisibleObjects>) -> Vec<ScalarUDF> {
    functions::functions(objects)
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
        let table = VisibleTable { schema: PUBLIC_SCHEMA.to_owned(), name: "flights".to_owned(), columns };
        let objects = VisibleObjects::new("db", "ann", vec![table]);
        for name in relation::relation_names() {
            catalog_rows(name, &objects).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        assert_eq!(catalog_rows("information_schema.columns", &objects).unwrap().num_rows(), 2);
        assert_eq!(catalog_rows("pg_catalog.pg_tables", &objects).unwrap().num_rows(), 1);
    }
}
