//! The number of tables that a statement reads after its common table expressions are expanded.
//!
//! This is checked before planning, because planning expands each use of a name again.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Query, Statement, Visit, Visitor};
use tidegate_core::{Error, ErrorKind};

const TABLES_MAX: u64 = 1_000;

pub(super) fn check_table_count(statement: &Statement) -> Result<(), Error> {
    let tables = TableCounter::default().count(statement);
    if tables <= TABLES_MAX {
        return Ok(());
    }
    let message = format!("the statement reads {tables} tables after expanding WITH; the limit is {TABLES_MAX}");
    let hint = "Each use of a WITH name counts again, with every table that it reads.";
    Err(Error::new(ErrorKind::TooLarge, message).with_hint(hint))
}

#[derive(Default)]
struct TableCounter {
    /// The number of tables of each WITH name in scope, the innermost scope last.
    scopes: Vec<HashMap<String, u64>>,
    /// The counts of common table expressions, which the visitor reaches again within their query.
    counted: HashMap<*const Query, u64>,
    tables: u64,
}

impl TableCounter {
    fn count(&mut self, part: &impl Visit) -> u64 {
        let before = std::mem::take(&mut self.tables);
        // The visitor never stops early.
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

    /// The number of tables of `name`. WITH names have only one part.
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
            // A recursive expression is not in scope yet. It counts as one table there.
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

/// Lower case, so that a table whose name differs from an expression only in case may count as one.
fn cte_key(name: &Ident) -> String {
    name.value.to_lowercase()
}
