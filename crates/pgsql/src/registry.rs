//! The functions that a statement may call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::catalog::{TableFunction, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, plan_err};
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::{AggregateUDF, Expr, ScalarUDF, WindowUDF};

use crate::set_returning::SET_RETURNING;
use crate::{aggregate, array, cast, catalog, in_list, json, number, statement, text, time, untyped_literals};

/// DataFusion functions that are not offered: PostgreSQL has the name with another meaning, or no query needs them.
const EXCLUDED_FUNCTIONS: &str = "\
    array_resize arrow_field arrow_metadata arrow_try_cast cast_to_type current_time file_row_index try_cast_to_type \
    union_extract union_tag with_metadata";

/// Returns the scalar functions: PostgreSQL's, and DataFusion's that have no PostgreSQL counterpart.
pub fn scalar_functions() -> Vec<Arc<ScalarUDF>> {
    let ours = [time::functions(), text::functions(), json::functions(), array::functions(), number::functions()];
    let ours = ours.into_iter().flatten().chain(cast::functions()).chain(statement::functions());
    let ours = ours.chain(untyped_literals::functions()).chain(catalog::functions());
    let ours = ours.chain([aggregate::named_cast_function(), in_list::function()]);
    let ours = ours.map(Arc::new);
    merge_functions(SessionStateDefaults::default_scalar_functions(), ours, |function| {
        (function.name().to_owned(), function.aliases().to_vec())
    })
}

/// Returns the aggregate functions.
pub fn aggregate_functions() -> Vec<Arc<AggregateUDF>> {
    let ours = aggregate::functions().into_iter().map(Arc::new);
    merge_functions(SessionStateDefaults::default_aggregate_functions(), ours, |function| {
        (function.name().to_owned(), function.aliases().to_vec())
    })
}

/// Returns the window functions.
pub fn window_functions() -> Vec<Arc<WindowUDF>> {
    merge_functions(SessionStateDefaults::default_window_functions(), std::iter::empty(), |function| {
        (function.name().to_owned(), function.aliases().to_vec())
    })
}

/// Returns the functions that may be used in FROM, by name.
pub fn table_functions() -> std::collections::HashMap<String, Arc<TableFunction>> {
    let functions = SessionStateDefaults::default_table_functions();
    let named = functions.into_iter().map(|function| (function.name().to_owned(), function));
    let lists = SET_RETURNING.iter().map(|function| {
        let table_function = TableFunction::new(function.name.to_owned(), Arc::new(SetReturningPlaceholder));
        (function.name.to_owned(), Arc::new(table_function))
    });
    lists.chain(named).collect()
}

/// Registers the name of a set-returning function as a table function. Its rows come from its list function.
#[derive(Debug)]
struct SetReturningPlaceholder;

impl TableFunctionImpl for SetReturningPlaceholder {
    fn call(&self, _: &[Expr]) -> Result<Arc<dyn TableProvider>> {
        plan_err!("a set-returning function must be planned through its list function")
    }
}

/// Merges `base`, without excluded and replaced functions and sorted by name, with `ours`. A later function replaces an
/// earlier one of the same name or alias.
fn merge_functions<F>(
    base: Vec<F>,
    ours: impl Iterator<Item = F>,
    names: impl Fn(&F) -> (String, Vec<String>),
) -> Vec<F> {
    let ours: Vec<F> = ours.collect();
    let replaced: BTreeSet<String> = ours.iter().map(|function| names(function).0).collect();
    let mut ordered = BTreeMap::new();
    for function in base {
        ordered.insert(names(&function).0, function);
    }
    let mut merged: Vec<F> = Vec::new();
    for (name, function) in ordered {
        if !EXCLUDED_FUNCTIONS.split(' ').any(|excluded| excluded == name) && !replaced.contains(&name) {
            merged.push(function);
        }
    }
    merged.extend(ours);
    merged
}
