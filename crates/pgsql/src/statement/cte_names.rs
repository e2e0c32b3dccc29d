//! Renames expressions of an inner WITH that have the name of an expression of an outer WITH.
//!
//! DataFusion refuses such names. `docs/decisions/upstream` has the text to be filed, and says when the module can go.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{ObjectName, Query, Statement, TableAlias, TableFactor, VisitorMut, With};

use super::aliases::hidden_name;
use crate::syntax::{quoted, single_identifier};
use crate::walk::{Stop, walk_mut};

/// Gives each such expression a unique name.
pub(super) fn rename(statement: &mut Statement) {
    // The visitor never breaks.
    let _ = walk_mut(statement, &mut ShadowedCteRenamer { outer: Vec::new(), count: 0 });
}

struct ShadowedCteRenamer {
    /// The names of each enclosing WITH.
    outer: Vec<Vec<String>>,
    count: usize,
}

impl VisitorMut for ShadowedCteRenamer {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Stop> {
        let names = query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| cte.alias.name.value.clone());
        self.outer.push(names.collect());
        ControlFlow::Continue(())
    }

    /// Inner queries are visited first, so that the remaining uses of a name refer to the expression of this WITH.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Stop> {
        let Some(names) = self.outer.pop() else { return ControlFlow::Continue(()) };
        for (index, name) in names.into_iter().enumerate() {
            if !self.outer.iter().flatten().any(|other| *other == name) {
                continue;
            }
            self.count += 1;
            let mut renaming = TableRenamer { to: hidden_name(&name, self.count), from: name };
            let Some(With { cte_tables, recursive, .. }) = &mut query.with else { continue };
            let first = index + usize::from(!*recursive);
            for cte in cte_tables.iter_mut().skip(first) {
                let _ = walk_mut(&mut cte.query, &mut renaming);
            }
            if let Some(cte) = cte_tables.get_mut(index) {
                cte.alias.name = quoted(renaming.to.as_str());
            }
            let _ = walk_mut(&mut query.body, &mut renaming);
            let _ = walk_mut(&mut query.order_by, &mut renaming);
            let _ = walk_mut(&mut query.limit_clause, &mut renaming);
        }
        ControlFlow::Continue(())
    }
}

struct TableRenamer {
    from: String,
    to: String,
}

impl VisitorMut for TableRenamer {
    type Break = Stop;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Stop> {
        if let TableFactor::Table { name, alias, args: None, .. } = factor
            && let Some(table) = single_identifier(name).cloned().filter(|table| table.value == self.from)
        {
            alias.get_or_insert_with(|| TableAlias { name: table, columns: Vec::new(), explicit: true, at: None });
            *name = ObjectName::from(vec![quoted(self.to.as_str())]);
        }
        ControlFlow::Continue(())
    }
}
