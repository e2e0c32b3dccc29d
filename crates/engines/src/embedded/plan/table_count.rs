//! How many tables a statement means once its common table expressions are put in, wherever they are named.
//!
//! Counted before anything is planned: planning itself goes through all that a name means, again for each name.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Query, Statement, Visit, Visitor};
use tidegate_core::{Error, ErrorKind};

/// Tables that a statement may mean.
const TABLES_MAX: u64 = 1_000;

/// Counts the tables of `statement`.
///
/// # Errors
/// `TooLarge` when there are more than can be planned in a moment.
pub(super) fn check_table_count(statement: &Statement) -> Result<(), Error> {
    let tables = TableCounter::default().count(statement);
    if tables <= TABLES_MAX {
        return Ok(());
    }
    let message = format!(
        "the statement means {tables} tables once the expressions of WITH are put in wherever they are named; \
         {TABLES_MAX} are possible"
    );
    let hint = "What is named more than once counts each time, with all that it names itself.";
    Err(Error::new(ErrorKind::TooLarge, message).with_hint(hint))
}

/// Counts tables of a part of a statement.
#[derive(Default)]
struct TableCounter {
    /// What the names of WITH mean here, the innermost last.
    scopes: Vec<HashMap<String, u64>>,
    /// What was counted of expressions of WITH, which are met again inside of what holds them.
    counted: HashMap<*const Query, u64>,
    tables: u64,
}

impl TableCounter {
    fn count(&mut self, part: &impl Visit) -> u64 {
        let before = std::mem::take(&mut self.tables);
        // The visitor never breaks.
        let _ = part.visit(self);
        std::mem::replace(&mut self.tables, before)
    }

    fn count_cte(&mut self, query: &Query) -> u64 {
        if let Some(tables) = self.counted.get(&std::ptr::from_ref(query)) {
            return *tables;
        }
        let tables = self.count(query);
        self.counted.insert(std::ptr::from_ref(query), tables);
        tables
    }

    /// What `name` means; none of WITH has a name of several parts.
    fn count_of_name(&self, name: &ObjectName) -> u64 {
        let [part] = name.0.as_slice() else { return 1 };
        let Some(name) = part.as_ident().map(cte_key) else { return 1 };
        self.scopes.iter().rev().find_map(|scope| scope.get(&name).copied()).unwrap_or(1)
    }
}

impl Visitor for TableCounter {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.scopes.push(HashMap::new());
        for expression in query.with.iter().flat_map(|with| &with.cte_tables) {
            // One that names itself is not in the scope yet, and means one table there.
            let tables = self.count_cte(&expression.query);
            if let Some(scope) = self.scopes.last_mut() {
                scope.insert(cte_key(&expression.alias.name), tables);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        self.tables = self.tables.saturating_add(self.count_of_name(name));
        ControlFlow::Continue(())
    }
}

/// However it is written: a table that differs from an expression by its case alone may count as one.
fn cte_key(name: &Ident) -> String {
    name.value.to_lowercase()
}
