//! Renders a query spec as an AST: every name is checked, every value is bound.

mod build;
mod condition;
mod groups;
mod scope;

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    Distinct, Expr, FunctionArgExpr, GroupByExpr, OrderByExpr, Query, Select, SelectFlavor, SelectItem, TableWithJoins,
    WildcardAdditionalOptions,
};
use tidegate_core::{Error, Principal, Violation};
use tidegate_sql::{Parameter, SqlDialect, Statement, StatementCache};

use self::build::{
    call_expression, function_call, number, number_text, order_by_expression, order_by_unspecified, select_item,
    without_nulls_order,
};
use self::condition::AliasBindings;
use self::groups::NamedGroup;
use self::scope::TableScope;
use crate::database::Database;
use crate::spec::{AggregateFunction, GroupKey, NamedExpression, QuerySpec, Selection, SortKey};

impl QuerySpec {
    /// Renders the statement for `database`: every name is checked against the tables that `principal` may see, and
    /// every value is bound.
    ///
    /// # Errors
    /// `NotFound` for tables, `InvalidArguments` with the table's columns for columns.
    pub async fn render(&self, database: &dyn Database, principal: &Principal) -> Result<Statement, Error> {
        let (query, parameters) = self.render_query(database, principal).await?;
        Statement::from_query(query, parameters, database.dialect())
    }

    /// As [`QuerySpec::render`], with a statement of `statements` if it has the same one.
    ///
    /// # Errors
    /// As [`QuerySpec::render`].
    pub async fn render_with_cache(
        &self,
        database: &dyn Database,
        principal: &Principal,
        statements: &StatementCache,
    ) -> Result<Statement, Error> {
        let (query, parameters) = self.render_query(database, principal).await?;
        statements.generated(query, parameters, database.dialect())
    }

    async fn render_query(
        &self,
        database: &dyn Database,
        principal: &Principal,
    ) -> Result<(Query, Vec<Parameter>), Error> {
        let (dialect, scope) = (database.dialect(), TableScope::load(self, database, principal).await?);
        let mut renderer = QueryRenderer { dialect, scope, violations: Vec::new(), parameters: Vec::new() };
        let query = renderer.render_query(self);
        if !renderer.violations.is_empty() {
            let error = Error::invalid_arguments("the query does not match the tables:", renderer.violations);
            return Err(error.with_hint(renderer.scope.list_columns()));
        }
        Ok((query, renderer.parameters))
    }
}

impl QueryRenderer {
    fn render_query(&mut self, spec: &QuerySpec) -> Query {
        let group_expressions = self.render_group_expressions(spec);
        let named_groups = named_groups(spec, &group_expressions);
        let outputs = self.render_outputs(spec, &named_groups);
        let names = AliasBindings::from_outputs(&outputs);
        let from = self.render_from(spec);
        let selection =
            spec.filter.as_ref().and_then(|filter| self.render_condition("where", filter, &AliasBindings::empty()));
        let group_by = self.render_group_by(spec, group_expressions, &outputs);
        self.check_groups(spec, &outputs, &group_by);
        let having = spec.having.as_ref().and_then(|having| self.render_condition("having", having, &names));
        let order = spec.order_by.iter().enumerate();
        let mut order_by: Vec<OrderByExpr> =
            order.filter_map(|(index, order)| self.render_order(index, order, &outputs, &named_groups)).collect();
        if spec.distinct {
            self.check_distinct_order(&outputs, &order_by);
        }
        if is_plain_extract(spec) {
            // Returns the first values when the limit cuts the list.
            order_by.extend(outputs.iter().filter_map(|output| Some(order_by_expression(output.expr.clone()?, false))));
        }
        if !self.dialect.has_nulls_order() {
            order_by = order_by.into_iter().flat_map(without_nulls_order).collect();
        }
        let select = Select {
            distinct: (spec.distinct || is_plain_extract(spec)).then_some(Distinct::Distinct),
            projection: outputs.into_iter().map(|output| output.item).collect(),
            from,
            selection,
            group_by: GroupByExpr::Expressions(group_by, Vec::new()),
            having,
            ..empty_select()
        };
        let offset = (spec.offset > 0).then_some(spec.offset);
        let unlimited = offset.filter(|_| self.dialect.offset_needs_limit()).map(|_| i64::MAX.unsigned_abs());
        let limit = statement_limit(spec).or(unlimited);
        build::build_query(select, order_by, limit.map(number), offset.map(number))
    }

    fn render_outputs(&mut self, spec: &QuerySpec, groups: &[NamedGroup]) -> Vec<OutputColumn> {
        if let Some(column) = spec.extract.as_deref().filter(|_| is_plain_extract(spec)) {
            return self.render_plain_output("extract", column, None).into_iter().collect();
        }
        if !spec.select.is_empty() {
            let items = spec.select.iter().enumerate();
            let mut render = |(index, item): (usize, &Selection)| {
                Some(OutputColumn { index, ..self.render_output(&format!("select[{index}]"), item, groups)? })
            };
            return items.filter_map(&mut render).collect();
        }
        if spec.group_by.is_empty() {
            return vec![wildcard_output()];
        }
        let keys = spec.group_by.iter().enumerate();
        let mut render = |(index, key): (usize, &GroupKey)| match key {
            GroupKey::Column(column) => self.render_plain_output(&format!("group_by[{index}]"), column, None),
            GroupKey::Expression(NamedExpression { alias: Some(alias), .. }) => {
                let group = groups.iter().find(|group| group.name == *alias)?;
                Some(self.expression_output(group.expr.clone(), Some(alias)))
            }
            GroupKey::Expression(expression) => {
                self.render_expression_output(&format!("group_by[{index}]"), expression)
            }
        };
        keys.filter_map(&mut render).collect()
    }

    fn render_output(&mut self, path: &str, selection: &Selection, groups: &[NamedGroup]) -> Option<OutputColumn> {
        match selection {
            Selection::All => Some(wildcard_output()),
            Selection::Column { column, alias } => match groups.iter().find(|group| group.name == *column) {
                Some(group) => {
                    Some(self.expression_output(group.expr.clone(), alias.as_deref().or(Some(column.as_str()))))
                }
                None => self.render_plain_output(path, column, alias.as_deref()),
            },
            Selection::Expression(expression) => self.render_expression_output(path, expression),
            Selection::Aggregate { function, column, distinct, alias } => {
                let argument = match column {
                    Some(column) => Some(self.resolve_column(path, column)?),
                    None => None,
                };
                let name = alias.clone().unwrap_or_else(|| aggregate_name(*function, column.as_deref()));
                let expr = match aggregate_call(*function, argument, *distinct, self.dialect) {
                    Ok(expr) => expr,
                    Err(reason) => {
                        self.add_violation(path, reason);
                        return None;
                    }
                };
                Some(OutputColumn { is_aggregate: true, ..self.expression_output(expr, Some(&name)) })
            }
        }
    }

    fn render_plain_output(&mut self, path: &str, column: &str, alias: Option<&str>) -> Option<OutputColumn> {
        let expr = self.resolve_column(path, column)?;
        Some(self.expression_output(expr, alias))
    }

    fn render_expression_output(&mut self, path: &str, expression: &NamedExpression) -> Option<OutputColumn> {
        let expr = self.render_expression(path, &expression.text, &AliasBindings::empty())?;
        let is_aggregate = groups::has_aggregate(&expr, self.dialect);
        Some(OutputColumn { is_aggregate, ..self.expression_output(expr, expression.alias.as_deref()) })
    }

    fn expression_output(&self, expr: Expr, alias: Option<&str>) -> OutputColumn {
        let item = match alias {
            Some(name) => select_item(expr.clone(), self.dialect.identifier(name)),
            None => SelectItem::UnnamedExpr(expr.clone()),
        };
        let name = alias.map(str::to_owned);
        OutputColumn { item, name, expr: Some(expr), is_aggregate: false, index: 0 }
    }

    fn render_from(&mut self, spec: &QuerySpec) -> Vec<TableWithJoins> {
        let relation = build::table(&spec.table, None, self.dialect);
        let joins = spec.joins.iter().enumerate().filter_map(|(index, join)| {
            let constraint = self.render_join_condition(index, join)?;
            let relation = build::table(&join.table, join.alias.as_deref(), self.dialect);
            Some(build::join(relation, join.kind, constraint))
        });
        let joins = joins.collect();
        vec![TableWithJoins { relation, joins }]
    }

    /// PostgreSQL rejects such an order, with another message; SQLite would choose an arbitrary row.
    fn check_distinct_order(&mut self, outputs: &[OutputColumn], order_by: &[OrderByExpr]) {
        for (index, order) in order_by.iter().enumerate() {
            let is_selected = outputs.iter().any(|output| match (&output.expr, &order.expr) {
                (None, _) => true,
                (Some(_), Expr::Identifier(name)) if output.name.as_ref() == Some(&name.value) => true,
                (Some(expr), order) => expr == order,
            });
            if !is_selected {
                let message = "with distinct, only selected columns can be ordered by; add it to select";
                self.add_violation(&format!("order_by[{index}]"), message);
            }
        }
    }

    fn render_order(
        &mut self,
        index: usize,
        order: &SortKey,
        outputs: &[OutputColumn],
        groups: &[NamedGroup],
    ) -> Option<OrderByExpr> {
        let path = format!("order_by[{index}]");
        let find = |name: &str| -> Option<Expr> {
            let output = outputs.iter().find(|output| output.name.as_deref() == Some(name));
            let alias = output.map(|_| Expr::Identifier(self.dialect.identifier(name)));
            let group = || groups.iter().find(|group| group.name == name).map(|group| group.expr.clone());
            let column = || Some(self.scope.column_expression(self.scope.resolve(name).ok()?, self.dialect));
            alias.or_else(group).or_else(column)
        };
        let (text, fixed) = (order.column.as_str(), order.descending);
        if let Some(expr) = find(text) {
            return Some(order_by_expression(expr, fixed.unwrap_or(false)));
        }
        if fixed.is_none() {
            let (name, descending) = split_direction(text);
            if let Some(expr) = find(name) {
                return Some(order_by_expression(expr, descending));
            }
        }
        let expected = if fixed.is_some() { text } else { split_direction(text).0 };
        let aliases: Vec<&str> = outputs.iter().filter_map(|output| output.name.as_deref()).collect();
        let reason = self.scope.column_problem(expected, &aliases);
        self.add_violation(&path, reason);
        None
    }
}

/// The expressions of `group_by` that have an alias.
fn named_groups(spec: &QuerySpec, expressions: &[Option<Expr>]) -> Vec<NamedGroup> {
    let named = |(key, expr): (&GroupKey, &Option<Expr>)| match key {
        GroupKey::Expression(NamedExpression { alias: Some(alias), .. }) => {
            Some(NamedGroup { name: alias.clone(), expr: expr.clone()? })
        }
        _ => None,
    };
    spec.group_by.iter().zip(expressions).filter_map(named).collect()
}

/// Whether `extract` alone determines the column.
fn is_plain_extract(spec: &QuerySpec) -> bool {
    spec.extract.is_some() && spec.select.is_empty() && spec.group_by.is_empty() && spec.order_by.is_empty()
}

/// The LIMIT of the statement: one more than requested, to detect whether more rows exist.
///
/// With `extract` over rows, an explicit limit applies to the rows and the default limit to the values.
fn statement_limit(spec: &QuerySpec) -> Option<u64> {
    match (&spec.extract, spec.has_explicit_limit) {
        (Some(_), true) if !is_plain_extract(spec) => Some(spec.limit),
        (Some(_), false) if !is_plain_extract(spec) => None,
        _ if spec.limit == QuerySpec::UNLIMITED => None,
        _ => Some(spec.limit.saturating_add(1)),
    }
}

/// Splits `-column`, `column desc` and `column asc`.
fn split_direction(text: &str) -> (&str, bool) {
    if let Some(column) = text.strip_prefix('-') {
        return (column.trim(), true);
    }
    if let Some(column) = text.strip_prefix('+') {
        return (column.trim(), false);
    }
    match text.trim().rsplit_once(char::is_whitespace) {
        Some((column, direction)) if direction.eq_ignore_ascii_case("desc") => (column.trim(), true),
        Some((column, direction)) if direction.eq_ignore_ascii_case("asc") => (column.trim(), false),
        _ => (text, false),
    }
}

fn aggregate_name(function: AggregateFunction, column: Option<&str>) -> String {
    match column {
        None => function.name().to_owned(),
        // For a qualified column, its last part.
        Some(column) => {
            let column = column.rsplit_once('.').map_or(column, |(_, last)| last);
            let plain: String = column.chars().filter(|c| !c.is_control() && *c != '"' && *c != '\\').collect();
            format!("{}_{plain}", function.name())
        }
    }
}

fn wildcard_output() -> OutputColumn {
    let item = SelectItem::Wildcard(WildcardAdditionalOptions::default());
    OutputColumn { item, name: None, expr: None, is_aggregate: false, index: 0 }
}

fn empty_select() -> Select {
    Select {
        select_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection: Vec::new(),
        exclude: None,
        into: None,
        from: Vec::new(),
        lateral_views: Vec::new(),
        prewhere: None,
        selection: None,
        connect_by: Vec::new(),
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    }
}

struct QueryRenderer {
    dialect: SqlDialect,
    scope: TableScope,
    violations: Vec<Violation>,
    parameters: Vec<Parameter>,
}

struct OutputColumn {
    item: SelectItem,
    name: Option<String>,
    expr: Option<Expr>,
    is_aggregate: bool,
    /// The position in `select`.
    index: usize,
}

impl QueryRenderer {
    /// The column that `name` refers to; adds a violation when there is none.
    fn resolve_column(&mut self, path: &str, name: &str) -> Option<Expr> {
        match self.scope.resolve(name) {
            Ok(position) => Some(self.scope.column_expression(position, self.dialect)),
            Err(reason) => {
                self.add_violation(path, reason);
                None
            }
        }
    }

    fn add_violation(&mut self, path: &str, message: impl Into<String>) {
        let violation = Violation { path: path.to_owned(), message: message.into() };
        if !self.violations.contains(&violation) {
            self.violations.push(violation);
        }
    }
}

/// The call of an aggregate function; without an argument it counts rows.
fn aggregate_call(
    function: AggregateFunction,
    argument: Option<Expr>,
    distinct: bool,
    dialect: SqlDialect,
) -> Result<Expr, String> {
    let distinct = distinct || function == AggregateFunction::CountDistinct;
    let name = match (function, dialect) {
        (AggregateFunction::Count | AggregateFunction::CountDistinct, _) => "count",
        (AggregateFunction::Sum, _) => "sum",
        (AggregateFunction::Avg, _) => "avg",
        (AggregateFunction::Min, _) => "min",
        (AggregateFunction::Max, _) => "max",
        (AggregateFunction::Median | AggregateFunction::Stddev | AggregateFunction::Variance, SqlDialect::Sqlite) => {
            let name = function.name();
            return Err(format!("SQLite has no {name}; it has count, count_distinct, sum, avg, min and max"));
        }
        (AggregateFunction::Median, SqlDialect::MySql) => {
            return Err(
                "MySQL has no median; it has count, count_distinct, sum, avg, min, max, stddev and variance".to_owned()
            );
        }
        (AggregateFunction::Median, SqlDialect::Postgres) => return median(argument, distinct),
        (AggregateFunction::Median, SqlDialect::DataFusion) => "median",
        (AggregateFunction::Stddev, _) => "stddev_samp",
        (AggregateFunction::Variance, _) => "var_samp",
    };
    let argument = argument.map_or(FunctionArgExpr::Wildcard, FunctionArgExpr::Expr);
    Ok(call_expression(name, vec![argument], distinct))
}

/// PostgreSQL's median is a percentile of the ordered values.
fn median(argument: Option<Expr>, distinct: bool) -> Result<Expr, String> {
    if distinct {
        return Err("PostgreSQL has no median of distinct values; leave out \"distinct\"".to_owned());
    }
    let half = FunctionArgExpr::Expr(number_text("0.5"));
    let mut call = function_call("percentile_cont", vec![half], false);
    call.within_group = argument.into_iter().map(order_by_unspecified).collect();
    Ok(Expr::Function(call))
}
