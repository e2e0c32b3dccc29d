//! Changes the tables of a statement: redirects them to other tables, removes the name of the database before them, and wraps
//! the arguments of table functions.

use std::collections::HashSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, Select,
    SelectItem, SelectItemQualifiedWildcardKind, TableAlias, TableFactor, VisitMut, VisitorMut,
};
use tidegate_core::{Error, ErrorKind};

use crate::dialect::SqlDialect;
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

impl Statement {
    /// The statement with `orders` for `shop.orders`, where `shop` is `database`: its server does not know the name that
    /// callers use for it. `None` when no table is named so, or the statement was not parsed.
    ///
    /// # Errors
    /// As [`Statement::parse`], and `InvalidArguments` where the remaining name would mean something else, or the AST
    /// lacks clauses.
    pub fn without_database_name(&self, database: &str) -> Result<Option<Self>, Error> {
        let Some(mut ast) = self.ast().cloned() else { return Ok(None) };
        let mut tables =
            TableNames { dialect: self.dialect(), database, stripped: Vec::new(), expressions: HashSet::new() };
        // The visitors never break.
        let _: ControlFlow<()> = ast.visit(&mut tables);
        if tables.stripped.is_empty() {
            return Ok(None);
        }
        parse::check_complete_ast(self.text(), self.dialect())?;
        let names_expression =
            |table: &&Vec<String>| matches!(table.as_slice(), [only] if tables.expressions.contains(only));
        if let Some(table) = tables.stripped.iter().find(names_expression) {
            let table = table.join(".");
            let message = format!("{table} is a table of {database} and a name in WITH");
            return Err(
                Error::new(ErrorKind::InvalidArguments, message).with_hint("Give the name in WITH another one.")
            );
        }
        let _: ControlFlow<()> = ast.visit(&mut ColumnNames(&tables));
        let statement = Self::from_ast(ast, self.dialect(), |ast| parse::print_checked(ast, self.dialect()))?;
        Ok(Some(statement.with_parameters(self.parameters().to_vec())?.in_transaction(self.transaction().clone())))
    }
}

/// Strips the tables in FROM.
struct TableNames<'a> {
    dialect: SqlDialect,
    database: &'a str,
    /// The remaining parts of each name, folded.
    stripped: Vec<Vec<String>>,
    /// The names of all common table expressions, folded.
    expressions: HashSet<String>,
}

impl TableNames<'_> {
    fn is_database(&self, part: &Ident) -> bool {
        part.value.eq_ignore_ascii_case(self.database)
    }

    fn fold(&self, parts: &[Ident]) -> Vec<String> {
        parts.iter().map(|part| self.dialect.fold_identifier(part)).collect()
    }
}

impl VisitorMut for TableNames<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let expressions = query.with.iter().flat_map(|with| &with.cte_tables);
        self.expressions.extend(expressions.map(|cte| self.dialect.fold_identifier(&cte.alias.name)));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: None, .. } = factor
            && let Some([database, table @ ..]) = identifiers(name).as_deref()
            && !table.is_empty()
            && self.is_database(database)
        {
            self.stripped.push(self.fold(table));
            *name = ObjectName::from(table.to_vec());
        }
        ControlFlow::Continue(())
    }
}

/// Strips the columns of the stripped tables.
struct ColumnNames<'a>(&'a TableNames<'a>);

impl ColumnNames<'_> {
    /// Whether `parts` begin with the database and one of its tables, and have at least `further` parts after it.
    fn is_qualified(&self, parts: &[Ident], further: usize) -> bool {
        let Some((database, rest)) = parts.split_first() else { return false };
        let rest = self.0.fold(rest);
        let names_table = |table: &Vec<String>| rest.starts_with(table) && rest.len() >= table.len() + further;
        self.0.is_database(database) && self.0.stripped.iter().any(names_table)
    }
}

impl VisitorMut for ColumnNames<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && self.is_qualified(parts, 1)
        {
            parts.remove(0);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let Some(parts) = identifiers(name).filter(|parts| self.is_qualified(parts, 0))
            {
                *name = ObjectName(parts.into_iter().skip(1).map(ObjectNamePart::Identifier).collect());
            }
        }
        ControlFlow::Continue(())
    }
}

fn identifiers(name: &ObjectName) -> Option<Vec<Ident>> {
    name.0.iter().map(|part| part.as_ident().cloned()).collect()
}

impl Statement {
    /// Passes the arguments of the table function `name` through the function `wrapper`, which is called once for each
    /// of `count` new arguments: `name(a, b)` becomes `name(wrapper(0, a, b), wrapper(1, a, b), …)`. `None` when nothing
    /// changes or the statement was not parsed.
    ///
    /// # Errors
    /// `InvalidArguments` when the changed statement cannot be printed so that it means the same.
    pub fn with_wrapped_arguments(&self, name: &str, wrapper: &str, count: usize) -> Result<Option<Self>, Error> {
        let Some(mut ast) = self.ast().cloned() else { return Ok(None) };
        let calls = (0..count).map(|index| parse::parse_expression(&format!("{wrapper}({index})"), self.dialect()));
        let mut visitor = ArgumentWrapper { name, calls: calls.collect::<Result<_, _>>()?, has_changed: false };
        // The visitor never breaks.
        let _: ControlFlow<()> = ast.visit(&mut visitor);
        if !visitor.has_changed {
            return Ok(None);
        }
        let text = parse::print_checked(&ast, self.dialect())?;
        Ok(Some(self.with_ast(ast, text)))
    }
}

struct ArgumentWrapper<'a> {
    name: &'a str,
    /// The calls of the wrapper, each with its number as the only argument so far.
    calls: Vec<Expr>,
    has_changed: bool,
}

impl VisitorMut for ArgumentWrapper<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, args: Some(arguments), .. } = factor else { return ControlFlow::Continue(()) };
        let is_meant = |part: &sqlparser::ast::Ident| part.value.eq_ignore_ascii_case(self.name);
        if !name.0.last().and_then(|part| part.as_ident()).is_some_and(is_meant) {
            return ControlFlow::Continue(());
        }
        let wrapped = self.calls.iter().cloned().map(|mut call| {
            if let Expr::Function(function) = &mut call
                && let FunctionArguments::List(list) = &mut function.args
            {
                list.args.extend(arguments.args.iter().cloned());
            }
            FunctionArg::Unnamed(FunctionArgExpr::Expr(call))
        });
        arguments.args = wrapped.collect();
        self.has_changed = true;
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sql: &str, expected: &str) {
        for dialect in [SqlDialect::Postgres, SqlDialect::Sqlite, SqlDialect::DataFusion] {
            let statement = Statement::parse(sql, dialect).unwrap();
            let stripped = statement.without_database_name("shop").unwrap().unwrap_or(statement);
            assert_eq!(stripped.text().replace('`', "\""), Statement::parse(expected, dialect).unwrap().text());
        }
    }

    #[test]
    fn removes_the_name_before_tables_and_their_columns() {
        check(
            "SELECT shop.orders.id, o.*, shop.lines.* FROM shop.orders JOIN Shop.lines ON shop.orders.id = lines.id, other.o",
            "SELECT orders.id, o.*, lines.* FROM orders JOIN lines ON orders.id = lines.id, other.o",
        );
        check("SELECT id FROM orders WHERE x = 'shop.orders'", "SELECT id FROM orders WHERE x = 'shop.orders'");
        check(
            "WITH a AS (SELECT * FROM shop.b.c) SELECT shop.d FROM a shop",
            "WITH a AS (SELECT * FROM b.c) SELECT shop.d FROM a shop",
        );
    }

    #[test]
    fn refuses_what_would_mean_something_else() {
        for sql in [
            "WITH orders AS (SELECT * FROM shop.orders) SELECT count(*) FROM shop.orders",
            "WITH RECURSIVE orders AS (SELECT * FROM shop.orders) SELECT count(*) FROM orders",
        ] {
            for dialect in [SqlDialect::Postgres, SqlDialect::Sqlite, SqlDialect::DataFusion] {
                let refused = Statement::parse(sql, dialect).unwrap().without_database_name("shop");
                assert!(refused.unwrap_err().message().contains("a name in WITH"), "{sql}");
            }
        }
        for sql in [
            "SELECT total FROM shop.orders ORDER BY total USING >",
            "SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) FROM shop.t",
            "SELECT (t).* FROM shop.t",
            "SELECT * FROM ONLY shop.t",
        ] {
            let refused = Statement::parse(sql, SqlDialect::Postgres).unwrap().without_database_name("shop");
            assert!(refused.is_err(), "{sql}");
        }
        for expression in ["(array_agg(total ORDER BY total USING >))[1]", "(c).*"] {
            assert!(parse::parse_expression(expression, SqlDialect::Postgres).is_err(), "{expression}");
        }
    }
}
