//! Changes the tables of a statement: redirects them to other tables, replaces them by queries, removes the name of the database
//! before them, and wraps the arguments of table functions.

use std::collections::HashSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, Select,
    SelectItem, SelectItemQualifiedWildcardKind, TableAlias, TableFactor, VisitMut, VisitorMut,
};
use tidegate_core::{Error, ErrorKind};

use crate::dialect::SqlDialect;
use crate::statement::Statement;
use crate::{parse, statement_policy};

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

/// Returns the SQL in place of a table, of which the schema, if it is given, and the name are known.
pub type TableReplacement<'a> = &'a mut dyn FnMut(Option<&str>, &str) -> Result<String, Error>;

/// What the names begin with that stand for replaced tables, until their SQL is inserted.
const REPLACED_NAME: &str = "tidegate_table_";

impl Statement {
    /// The text with `replacement` in place of each table, which may be a query in parentheses; with `?` for each placeholder,
    /// and the number of each, as of [`Statement::text_with_plain_placeholders`]. The names of tables become aliases.
    ///
    /// # Errors
    /// Those of `replacement`, and `InvalidArguments` for tables in a form that cannot be replaced, for functions of a
    /// database, whose tables are unknown, and when the changed statement cannot be printed so that it means the same.
    pub fn text_with_tables_replaced(&self, replacement: TableReplacement<'_>) -> Result<(String, Vec<usize>), Error> {
        let Some(mut ast) = self.ast().cloned() else {
            return Err(Error::internal("a statement that was not parsed has tables that are not known"));
        };
        if self.text().contains(REPLACED_NAME) {
            return Err(irreplaceable_error(&format!("a name with {REPLACED_NAME}"), "Choose another name."));
        }
        let dialect = self.dialect();
        let mut replacer =
            TableReplacer { dialect, replacement, texts: Vec::new(), names: HashSet::new(), scopes: Vec::new() };
        if let ControlFlow::Break(error) = ast.visit(&mut replacer) {
            return Err(error);
        }
        let TableReplacer { texts, names, .. } = replacer;
        // The visitor never breaks.
        let _: ControlFlow<()> = ast.visit(&mut SchemaRemover(&names));
        // The visitor has no hook for some forms of tables. The policy knows all of them.
        let read = statement_policy::check(&ast, dialect)?.tables;
        if let Some(table) = read.iter().find(|table| !table.starts_with(REPLACED_NAME)) {
            return Err(irreplaceable_error(
                &format!("reading {table} in this form"),
                "Write SELECT … FROM the table.",
            ));
        }
        let text = parse::print_checked(&ast, dialect)?;
        let (text, numbers) = self.with_ast(ast, text).text_with_plain_placeholders()?;
        Ok((insert_texts(&text, dialect.identifier_quote(), &texts)?, numbers))
    }
}

fn irreplaceable_error(part: &str, instead: &str) -> Error {
    let message = format!("{part} is not supported where row policies apply");
    Error::new(ErrorKind::InvalidArguments, message).with_hint(instead)
}

/// `text` with `texts` in place of the names that stand for them.
fn insert_texts(text: &str, quote: char, texts: &[String]) -> Result<String, Error> {
    let start = format!("{quote}{REPLACED_NAME}");
    let mut parts = text.split(start.as_str());
    let mut inserted = parts.next().unwrap_or_default().to_owned();
    let mut count = 0;
    for part in parts {
        let replaced = part.split_once(quote).and_then(|(number, rest)| {
            let number: usize = number.parse().ok()?;
            Some((texts.get(number)?, rest))
        });
        let Some((replaced, rest)) = replaced else { break };
        inserted.push_str(replaced);
        inserted.push_str(rest);
        count += 1;
    }
    // A text literal may have such a name after its escapes are resolved.
    match count == texts.len() && text.matches(start.as_str()).count() == count {
        true => Ok(inserted),
        false => Err(irreplaceable_error(&format!("a text with {REPLACED_NAME}"), "Pass the text as a parameter.")),
    }
}

struct TableReplacer<'a> {
    dialect: SqlDialect,
    replacement: TableReplacement<'a>,
    /// The SQL in place of the tables, in the order of their numbers.
    texts: Vec<String>,
    /// The names of the replaced tables, in lower case.
    names: HashSet<String>,
    scopes: Vec<CteScope>,
}

/// The common table expressions of a query that is being visited.
struct CteScope {
    names: Vec<String>,
    is_recursive: bool,
    /// The number of those whose bodies were visited.
    visited: usize,
}

impl CteScope {
    /// Those that a table may name here. A body sees the ones before it, and itself if it is recursive.
    fn visible(&self) -> &[String] {
        let count = self.visited + usize::from(self.is_recursive);
        &self.names[..count.min(self.names.len())]
    }
}

impl TableReplacer<'_> {
    fn is_common_table_expression(&self, table: &Ident) -> bool {
        let name = self.dialect.fold_identifier(table);
        self.scopes.iter().any(|scope| scope.visible().contains(&name))
    }

    /// Whether some servers would read a common table expression in place of `table`, whose name differs only in case.
    fn may_be_common_table_expression(&self, table: &Ident) -> bool {
        let name = table.value.to_lowercase();
        self.scopes.iter().flat_map(CteScope::visible).any(|expression| expression.to_lowercase() == name)
    }

    fn replace(&mut self, schema: Option<&Ident>, table: &Ident) -> Result<ObjectName, Error> {
        let name = format!("{REPLACED_NAME}{}", self.texts.len());
        self.texts.push((self.replacement)(schema.map(|schema| schema.value.as_str()), &table.value)?);
        self.names.insert(table.value.to_lowercase());
        Ok(ObjectName(vec![ObjectNamePart::Identifier(self.dialect.identifier(&name))]))
    }
}

impl VisitorMut for TableReplacer<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let expressions = query.with.iter().flat_map(|with| &with.cte_tables);
        self.scopes.push(CteScope {
            names: expressions.map(|cte| self.dialect.fold_identifier(&cte.alias.name)).collect(),
            is_recursive: query.with.as_ref().is_some_and(|with| with.recursive),
            visited: 0,
        });
        ControlFlow::Continue(())
    }

    /// The bodies of common table expressions are visited before the rest of their query.
    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Error> {
        self.scopes.pop();
        if let Some(outer) = self.scopes.last_mut() {
            outer.visited = (outer.visited + 1).min(outer.names.len());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } = factor
        else {
            return ControlFlow::Continue(());
        };
        let identifiers = identifiers(name).unwrap_or_default();
        let (schema, table) = match identifiers.as_slice() {
            [table] if self.is_common_table_expression(table) => return ControlFlow::Continue(()),
            [table] if self.may_be_common_table_expression(table) => {
                let part = format!("{table}, which differs from a name in WITH only in case,");
                return ControlFlow::Break(irreplaceable_error(&part, "Give the name in WITH another one."));
            }
            [table] => (None, table),
            [schema, table] => (Some(schema), table),
            _ => return ControlFlow::Break(irreplaceable_error(&format!("the name {name}"), "Write SCHEMA.TABLE.")),
        };
        let has_more = *with_ordinality || version.is_some() || json_path.is_some() || sample.is_some();
        if has_more || !with_hints.is_empty() || !partitions.is_empty() {
            let part = format!("a partition, a version or a sample of {name}");
            return ControlFlow::Break(irreplaceable_error(&part, "Write a condition instead."));
        }
        match self.replace(schema, table) {
            Ok(replaced) => *name = replaced,
            Err(error) => return ControlFlow::Break(error),
        }
        // They are advice for the optimizer, and a query has no index.
        index_hints.clear();
        if alias.is_none() {
            *alias = Some(TableAlias { explicit: true, name: table.clone(), columns: Vec::new(), at: None });
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        match expr {
            Expr::Function(function) if function.name.0.len() > 1 => {
                let part = format!("the function {}", function.name);
                ControlFlow::Break(irreplaceable_error(
                    &part,
                    "Functions of a database may read hidden rows; leave it out.",
                ))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Removes the schema before the replaced tables of columns: an alias has none.
struct SchemaRemover<'a>(&'a HashSet<String>);

impl SchemaRemover<'_> {
    /// Whether `parts` are a schema, a replaced table and `further` parts.
    fn has_schema(&self, parts: &[Ident], further: usize) -> bool {
        parts.len() == 2 + further && self.0.contains(&parts[1].value.to_lowercase())
    }
}

impl VisitorMut for SchemaRemover<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && self.has_schema(parts, 1)
        {
            parts.remove(0);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let Some(parts) = identifiers(name).filter(|parts| self.has_schema(parts, 0))
            {
                *name = ObjectName::from(parts[1..].to_vec());
            }
        }
        ControlFlow::Continue(())
    }
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

    /// The statement with a query in place of each table.
    fn replaced(sql: &str) -> Result<String, Error> {
        let mut replacement = |schema: Option<&str>, table: &str| {
            let schema = schema.unwrap_or("main");
            if table == "hidden" {
                return Err(Error::new(ErrorKind::Forbidden, "hidden"));
            }
            Ok(format!("(SELECT * FROM `{schema}`.`{table}` LIMIT 9)"))
        };
        let statement = Statement::parse(sql, SqlDialect::MySql)?;
        Ok(statement.text_with_tables_replaced(&mut replacement)?.0)
    }

    #[test]
    fn tables_are_replaced_by_queries() {
        for (sql, expected) in [
            (
                "SELECT shop.a.id, shop.a.*, b.x FROM shop.a JOIN c AS b USING (id) WHERE shop.a.id > ?",
                "SELECT a.id, a.*, b.x FROM (SELECT * FROM `shop`.`a` LIMIT 9) AS a JOIN \
                 (SELECT * FROM `main`.`c` LIMIT 9) AS b USING(id) WHERE a.id > ?",
            ),
            (
                "WITH a AS (SELECT * FROM a) SELECT * FROM a WHERE x IN (SELECT y FROM b USE INDEX (i))",
                "WITH a AS (SELECT * FROM (SELECT * FROM `main`.`a` LIMIT 9) AS a) SELECT * FROM a WHERE x IN \
                 (SELECT y FROM (SELECT * FROM `main`.`b` LIMIT 9) AS b)",
            ),
            (
                "SELECT * FROM (WITH a AS (SELECT 1) SELECT 2) AS x, a",
                "SELECT * FROM (WITH a AS (SELECT 1) SELECT 2) AS x, (SELECT * FROM `main`.`a` LIMIT 9) AS a",
            ),
            (
                "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT i FROM n, m",
                "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT i FROM n, \
                 (SELECT * FROM `main`.`m` LIMIT 9) AS m",
            ),
        ] {
            let normalize = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace(" (", "(");
            assert_eq!(normalize(&replaced(sql).unwrap()), normalize(expected), "{sql}");
        }
    }

    #[test]
    fn what_cannot_be_replaced_is_refused() {
        for sql in [
            "SELECT * FROM a UNION SELECT 1 FROM (SELECT 1 FROM hidden) x",
            "SELECT shop.secret_of(1)",
            "SELECT * FROM a PARTITION (p0)",
            "SELECT tidegate_table_0 FROM a",
            "WITH A AS (SELECT 1) SELECT * FROM a",
            "SELECT '`tide\\gate_table_0`' FROM a",
            "SELECT 1 UNION TABLE a",
            "TABLE a",
        ] {
            let outcome = replaced(sql);
            assert!(outcome.is_err(), "{sql}: {outcome:?}");
        }
    }
}
