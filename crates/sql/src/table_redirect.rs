//! Redirects the tables of a statement to other tables.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Select, SelectItem, SelectItemQualifiedWildcardKind, TableAlias,
    TableFactor, VisitMut, VisitorMut,
};
use tidegate_core::Error;

use crate::parse;
use crate::statement::Statement;

/// The new location of a table: schema and name.
pub type TableLocation = (String, String);

type Locate<'a> = &'a dyn Fn(Option<&str>, &str) -> Option<TableLocation>;

impl Statement {
    /// Redirects each table that is qualified with a schema as `locate` says, with its original name as the alias.
    /// Unqualified tables stay. `None` when nothing changes or the statement was not parsed.
    ///
    /// # Errors
    /// `InvalidArguments` when the changed statement cannot be printed so that it means the same.
    pub fn with_tables_redirected(
        &self,
        locate: &dyn Fn(&str, &str) -> Option<TableLocation>,
    ) -> Result<Option<Self>, Error> {
        self.with_redirects(&|schema, table| locate(schema?, table))
    }

    /// Redirects the only table of a point query to `target`, with its original name as the alias. `None` for other
    /// statements.
    ///
    /// # Errors
    /// As [`Statement::with_tables_redirected`].
    pub fn with_only_table_redirected(&self, target: &TableLocation) -> Result<Option<Self>, Error> {
        if self.point_query().is_none() {
            return Ok(None);
        }
        self.with_redirects(&|_, _| Some(target.clone()))
    }

    fn with_redirects(&self, locate: Locate<'_>) -> Result<Option<Self>, Error> {
        if !self.dialect().has_complete_ast() {
            return Err(Error::internal("the AST of PostgreSQL's SQL may lack clauses, so it cannot be rewritten"));
        }
        let Some(mut ast) = self.ast().cloned() else { return Ok(None) };
        let mut redirector = TableRedirector { locate, quote: self.dialect().identifier_quote(), count: 0 };
        // The visitor never breaks.
        let _: ControlFlow<()> = ast.visit(&mut redirector);
        if redirector.count == 0 {
            return Ok(None);
        }
        let text = parse::print_checked(&ast, self.dialect())?;
        Ok(Some(self.with_ast(ast, text)))
    }
}

struct TableRedirector<'a> {
    locate: Locate<'a>,
    quote: char,
    count: usize,
}

impl TableRedirector<'_> {
    /// The new location of the table, and whether it has another name.
    fn redirected(&self, schema: Option<&Ident>, table: &Ident) -> Option<(TableLocation, bool)> {
        let location = (self.locate)(schema.map(|schema| schema.value.as_str()), &table.value)?;
        let is_renamed = !location.1.eq_ignore_ascii_case(&table.value);
        Some((location, is_renamed))
    }

    fn redirect_column(&mut self, parts: &[Ident]) -> Option<Vec<Ident>> {
        let [schema, table, ..] = parts else { return None };
        let ((schema, _), is_renamed) = self.redirected(Some(schema), table)?;
        self.count += 1;
        Some(match is_renamed {
            // The table now has an alias, which has no schema.
            true => parts[1..].to_vec(),
            false => [vec![Ident::with_quote(self.quote, schema)], parts[1..].to_vec()].concat(),
        })
    }
}

fn name_identifiers(name: &ObjectName) -> Option<Vec<Ident>> {
    name.0.iter().map(|part| part.as_ident().cloned()).collect()
}

impl VisitorMut for TableRedirector<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return ControlFlow::Continue(()) };
        let (of, only) = match name_identifiers(name).as_deref() {
            Some([table]) => (None, table.clone()),
            Some([schema, table]) => (Some(schema.clone()), table.clone()),
            _ => return ControlFlow::Continue(()),
        };
        let redirected = self.redirected(of.as_ref(), &only);
        let Some(((schema, table), is_renamed)) = redirected else { return ControlFlow::Continue(()) };
        self.count += 1;
        if is_renamed && alias.is_none() {
            *alias = Some(TableAlias { explicit: true, name: only, columns: Vec::new(), at: None });
        }
        let parts = [schema, table].map(|part| ObjectNamePart::Identifier(Ident::with_quote(self.quote, part)));
        *name = ObjectName(parts.to_vec());
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && parts.len() == 3
            && let Some(idents) = self.redirect_column(parts)
        {
            *parts = idents;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let Some(parts) = name_identifiers(name).filter(|parts| parts.len() == 2)
                && let Some(idents) = self.redirect_column(&parts)
            {
                *name = ObjectName(idents.into_iter().map(ObjectNamePart::Identifier).collect());
            }
        }
        ControlFlow::Continue(())
    }
}
