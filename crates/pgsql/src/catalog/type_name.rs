//! The names that the types of columns and expressions have in PostgreSQL, and `pg_typeof`, which returns them.
//!
//! The type of an expression is derived from the plan and not from the values, because some integers are wider here than in
//! PostgreSQL.

use std::cell::Cell;

use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF, WindowFunctionDefinition, lit,
};

use crate::data_type::{is_json_extension, json_kind};
use crate::function::{ColumnarFunction, keep_types, text_type};
use crate::list::item_type;
use crate::number::has_unconstrained_scale;
use crate::plan_walk::{any_part, rewrite_named};

const NAME: &str = "pg_typeof";

/// The maximum number of expressions to visit; an expression that is used twice counts twice.
const STEPS_MAX: u32 = 10_000;

/// The types of numbers. The result of an operator on two of them has the later one.
const NUMBERS: &[&str] = &["smallint", "integer", "bigint", "numeric", "real", "double precision"];

const UNKNOWN: &str = "unknown";

/// Functions that return an `integer` for any argument.
const INTEGER_FUNCTIONS: &str = "\
    array_length array_lower array_ndims array_position array_upper ascii bit_length cardinality char_length \
    character_length date_mi* get_bit get_byte json_array_length jsonb_array_length length levenshtein ntile \
    octet_length position regexp_count regexp_instr strpos width_bucket";

/// Functions that return one of their arguments.
const CHOICE_FUNCTIONS: &[&str] = &["coalesce", "greatest", "least"];

/// Replaces calls of `pg_typeof` with the names of types. It must run before rules that change types.
pub(crate) fn resolve_type_names(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !any_part(&node, |part| pg_typeof_args(part).is_some())? {
        return Ok(Transformed::no(node));
    }
    let inputs: Vec<LogicalPlan> = node.inputs().into_iter().cloned().collect();
    let scope = TypeScope { inputs: inputs.iter().collect(), steps: &Cell::new(0) };
    let rewritten = rewrite_named(node, |expression| {
        expression.transform_up(|expression| {
            let Some(args) = pg_typeof_args(&expression) else { return Ok(Transformed::no(expression)) };
            let name = match args {
                [_, Expr::Literal(ScalarValue::Utf8(Some(declared)), _)] => declared.clone(),
                [argument] => scope.type_name(argument)?,
                _ => return plan_err!("pg_typeof takes one value"),
            };
            Ok(Transformed::yes(lit(name)))
        })
    })?;
    rewritten.map_data(LogicalPlan::recompute_schema)
}

/// Returns the arguments of `expression` if it calls `pg_typeof`.
fn pg_typeof_args(expression: &Expr) -> Option<&[Expr]> {
    match expression {
        Expr::ScalarFunction(call) if call.func.name() == NAME => Some(&call.args),
        _ => None,
    }
}

/// Resolves the columns of an expression.
struct TypeScope<'a, 's> {
    inputs: Vec<&'a LogicalPlan>,
    steps: &'s Cell<u32>,
}

impl<'s> TypeScope<'_, 's> {
    fn with_input<'b>(&self, input: &'b LogicalPlan) -> TypeScope<'b, 's> {
        TypeScope { inputs: vec![input], steps: self.steps }
    }

    fn type_name(&self, expression: &Expr) -> Result<String> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > STEPS_MAX {
            return plan_err!("the expression is too large for pg_typeof; apply it to a part of the expression");
        }
        match expression {
            Expr::Alias(alias) => self.type_name(&alias.expr),
            Expr::Negative(operand) => self.type_name(operand),
            Expr::Literal(ScalarValue::Null | ScalarValue::Utf8(_), _) => Ok(UNKNOWN.to_owned()),
            Expr::Column(column) => {
                for input in &self.inputs {
                    if let Some(index) = input.schema().maybe_index_of_column(column) {
                        return self.output_column(input, index);
                    }
                }
                self.arrow_name(expression)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.is_numerical_operators() => {
                let (left, right) = (self.type_name(left)?, self.type_name(right)?);
                if *op == Operator::Minus && left == "date" && right == "date" {
                    return Ok("integer".to_owned());
                }
                operator_result(&left, &right).map_or_else(|| self.arrow_name(expression), Ok)
            }
            Expr::Case(case) => {
                let results = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
                self.union(results.map(AsRef::as_ref), expression)
            }
            Expr::ScalarSubquery(subquery) => self.output_column(&subquery.subquery, 0),
            Expr::ScalarFunction(call) => self.function_result(call.func.name(), &call.args, expression),
            Expr::AggregateFunction(call) => self.aggregate_result(call.func.name(), &call.params.args, expression),
            Expr::WindowFunction(call) => match &call.fun {
                WindowFunctionDefinition::AggregateUDF(function) => {
                    self.aggregate_result(function.name(), &call.params.args, expression)
                }
                WindowFunctionDefinition::WindowUDF(function) => match (function.name(), call.params.args.first()) {
                    ("lag" | "lead" | "first_value" | "last_value" | "nth_value", Some(value)) => self.type_name(value),
                    (name, _) => self.function_result(name, &[], expression),
                },
            },
            _ => self.arrow_name(expression),
        }
    }

    fn function_result(&self, name: &str, args: &[Expr], expression: &Expr) -> Result<String> {
        // The function that makes a cast's name unique returns its first argument.
        if name == "named_cast_function*"
            && let Some(cast) = args.first()
        {
            return self.type_name(cast);
        }
        if INTEGER_FUNCTIONS.split(' ').any(|function| function == name) {
            return Ok("integer".to_owned());
        }
        if name == "make_array" && !args.is_empty() {
            let types = args.iter().map(|arg| self.type_name(arg)).collect::<Result<Vec<_>>>()?;
            let of_arrays = types.iter().any(|of| of.ends_with("[]"));
            return match common_type_name(&types) {
                Some(element) if of_arrays => Ok(element),
                Some(element) => Ok(format!("{element}[]")),
                None => self.arrow_name(expression),
            };
        }
        if CHOICE_FUNCTIONS.contains(&name) {
            return self.union(args.iter(), expression);
        }
        // A function of integers returns the widest of their types.
        let arrow = self.arrow_name(expression)?;
        if arrow == "bigint" && !args.is_empty() {
            let types = args.iter().map(|arg| self.type_name(arg)).collect::<Result<Vec<_>>>()?;
            let widest = types.iter().map(|of| rank(of)).max().flatten();
            if let Some(widest) = widest.filter(|_| types.iter().all(|of| is_integer(of))) {
                return Ok(NUMBERS[widest].to_owned());
            }
        }
        Ok(arrow)
    }

    fn aggregate_result(&self, name: &str, args: &[Expr], expression: &Expr) -> Result<String> {
        let Some(arg) = args.first() else { return self.arrow_name(expression) };
        let of = match name {
            "sum" | "avg" | "min" | "max" => self.type_name(arg)?,
            _ => return self.arrow_name(expression),
        };
        let result = match (name, of.as_str()) {
            ("sum", "smallint" | "integer") => "bigint",
            ("sum" | "avg", "bigint" | "numeric") | ("avg", "smallint" | "integer") => "numeric",
            ("avg", "real") => "double precision",
            ("min" | "max", UNKNOWN) => "text",
            (_, of) => of,
        };
        Ok(result.to_owned())
    }

    /// Returns the common type of several expressions in one column.
    fn union<'e>(&self, expressions: impl Iterator<Item = &'e Expr>, whole: &Expr) -> Result<String> {
        let types = expressions.map(|one| self.type_name(one)).collect::<Result<Vec<_>>>()?;
        common_type_name(&types).map_or_else(|| self.arrow_name(whole), Ok)
    }

    fn arrow_name(&self, expression: &Expr) -> Result<String> {
        let (_, field) = expression.to_field(&merge_schema(&self.inputs))?;
        Ok(column_type(&field).sql_name())
    }

    /// Returns the type of a column of `plan`.
    fn output_column(&self, plan: &LogicalPlan, index: usize) -> Result<String> {
        self.steps.set(self.steps.get() + 1);
        let of_schema = || Ok(column_type(plan.schema().field(index)).sql_name());
        match plan {
            LogicalPlan::Projection(projection) if projection.expr.len() > index => {
                unknown_as_text(self.with_input(&projection.input).type_name(&projection.expr[index])?)
            }
            LogicalPlan::SubqueryAlias(alias) => self.output_column(&alias.input, index),
            LogicalPlan::Filter(filter) => self.output_column(&filter.input, index),
            LogicalPlan::Sort(sort) => self.output_column(&sort.input, index),
            LogicalPlan::Limit(limit) => self.output_column(&limit.input, index),
            LogicalPlan::Distinct(Distinct::All(input)) => self.output_column(input, index),
            LogicalPlan::Aggregate(aggregate) => {
                let expressions = aggregate.group_expr.iter().chain(&aggregate.aggr_expr);
                let has_sets = aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_)));
                match expressions.into_iter().nth(index).filter(|_| !has_sets) {
                    Some(expression) => unknown_as_text(self.with_input(&aggregate.input).type_name(expression)?),
                    None => of_schema(),
                }
            }
            LogicalPlan::Window(window) => {
                let columns = window.input.schema().fields().len();
                match index.checked_sub(columns).and_then(|index| window.window_expr.get(index)) {
                    Some(expression) => self.with_input(&window.input).type_name(expression),
                    None => self.output_column(&window.input, index),
                }
            }
            LogicalPlan::Join(join) if join.schema.fields().len() > join.left.schema().fields().len() => {
                match index.checked_sub(join.left.schema().fields().len()) {
                    Some(index) => self.output_column(&join.right, index),
                    None => self.output_column(&join.left, index),
                }
            }
            LogicalPlan::Values(values) => {
                let nothing = TypeScope { inputs: Vec::new(), steps: self.steps };
                let cells = values.values.iter().filter_map(|row| row.get(index));
                let types = cells.map(|cell| nothing.type_name(cell)).collect::<Result<Vec<_>>>()?;
                common_type_name(&types).map_or_else(of_schema, Ok)
            }
            LogicalPlan::Union(union) => {
                let types =
                    union.inputs.iter().map(|input| self.output_column(input, index)).collect::<Result<Vec<_>>>()?;
                common_type_name(&types).map_or_else(of_schema, Ok)
            }
            _ => of_schema(),
        }
    }
}

/// Replaces the unknown type with text.
fn unknown_as_text(name: String) -> Result<String> {
    Ok(if name == UNKNOWN { "text".to_owned() } else { name })
}

fn rank(name: &str) -> Option<usize> {
    NUMBERS.iter().position(|typed| *typed == name)
}

fn is_integer(name: &str) -> bool {
    matches!(name, "smallint" | "integer" | "bigint")
}

/// Returns the type of an operator on numbers of two types.
fn operator_result(left: &str, right: &str) -> Option<String> {
    match (left, right) {
        (UNKNOWN, number) | (number, UNKNOWN) if rank(number).is_some() => return Some(number.to_owned()),
        ("real", other) | (other, "real") if other != "real" && rank(other).is_some() => {
            return Some("double precision".to_owned());
        }
        _ => {}
    }
    let widest = rank(left)?.max(rank(right)?);
    Some(NUMBERS[widest].to_owned())
}

/// Returns the common type of a column, if all `types` are numbers or are equal.
fn common_type_name(types: &[String]) -> Option<String> {
    let mut typed = types.iter().filter(|of| *of != UNKNOWN);
    let Some(first) = typed.next() else { return Some("text".to_owned()) };
    typed.try_fold(first.clone(), |all, next| match (rank(&all), rank(next)) {
        (Some(left), Some(right)) => Some(NUMBERS[left.max(right)].to_owned()),
        _ if all == *next => Some(all),
        _ => None,
    })
}

/// Returns a placeholder, which [`resolve_type_names`] replaces.
pub(super) fn function() -> ScalarUDF {
    ColumnarFunction::new(
        NAME,
        |types| match types.len() {
            1 | 2 => keep_types(types),
            _ => plan_err!("pg_typeof takes one value"),
        },
        text_type,
        |call| ScalarValue::from(column_type(&call.fields[0]).sql_name()).to_array_of_size(call.rows),
    )
}

/// The types that a column or a cast can have: PostgreSQL's own name, and the name in SQL.
const TYPES: &[(&str, &str)] = &[
    ("bool", "boolean"),
    ("int2", "smallint"),
    ("int4", "integer"),
    ("int8", "bigint"),
    ("numeric", "numeric"),
    ("float4", "real"),
    ("float8", "double precision"),
    ("text", "text"),
    ("varchar", "character varying"),
    ("bpchar", "character"),
    ("name", "name"),
    ("bytea", "bytea"),
    ("date", "date"),
    ("time", "time without time zone"),
    ("timestamp", "timestamp without time zone"),
    ("timestamptz", "timestamp with time zone"),
    ("interval", "interval"),
    ("uuid", "uuid"),
    ("json", "json"),
    ("jsonb", "jsonb"),
    ("record", "record"),
];

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColumnType {
    /// PostgreSQL's own name of the type, or of the type of the elements.
    pub(super) name: &'static str,
    pub(super) is_array: bool,
    /// The number of digits of a `numeric`, and of those after the point.
    pub(super) digits: Option<(u8, i8)>,
}

impl ColumnType {
    const fn new(name: &'static str) -> Self {
        Self { name, is_array: false, digits: None }
    }

    const fn numeric(precision: u8, scale: i8) -> Self {
        Self { name: "numeric", is_array: false, digits: Some((precision, scale)) }
    }

    /// Returns PostgreSQL's own name: `_int4` for an array of integers.
    pub(super) fn own_name(self) -> String {
        if self.is_array { format!("_{}", self.name) } else { self.name.to_owned() }
    }

    /// Returns the name in SQL: `integer[]` for an array of integers.
    pub(super) fn sql_name(self) -> String {
        let name = find_sql_name(self.name).unwrap_or(self.name);
        if self.is_array { format!("{name}[]") } else { name.to_owned() }
    }
}

/// Returns the type of a column.
pub(super) fn column_type(field: &Field) -> ColumnType {
    if is_json_extension(field) { ColumnType::new("json") } else { of_data_type(field.data_type()) }
}

fn of_data_type(data_type: &DataType) -> ColumnType {
    if let Some(kind) = json_kind(data_type) {
        return ColumnType::new(kind.name());
    }
    let name = match data_type {
        DataType::Boolean => "bool",
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => "int2",
        DataType::UInt16 | DataType::Int32 => "int4",
        DataType::UInt32 | DataType::Int64 => "int8",
        DataType::UInt64 => return ColumnType::numeric(20, 0),
        DataType::Float16 | DataType::Float32 => "float4",
        DataType::Float64 => "float8",
        DataType::Decimal128(..) if has_unconstrained_scale(data_type) => "numeric",
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => return ColumnType::numeric(*precision, *scale),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => "bytea",
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Time32(_) | DataType::Time64(_) => "time",
        DataType::Timestamp(_, None) => "timestamp",
        DataType::Timestamp(_, Some(_)) => "timestamptz",
        DataType::Duration(_) | DataType::Interval(_) => "interval",
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => "record",
        DataType::Dictionary(_, values) => return of_data_type(values),
        DataType::RunEndEncoded(_, values) => return of_data_type(values.data_type()),
        other => match item_type(other) {
            // An array of arrays has the same type as an array of their elements.
            Some(item) => return ColumnType { is_array: true, digits: None, ..of_data_type(item) },
            None => "text",
        },
    };
    ColumnType::new(name)
}

fn find_sql_name(name: &str) -> Option<&'static str> {
    TYPES.iter().find(|(own, sql)| *own == name || *sql == name).map(|(_, sql)| *sql)
}

/// Returns the name in SQL of the type that `text` names in any way. `None` if no column can have it.
pub(super) fn sql_name_of(text: &str) -> Option<String> {
    let name = text.trim().to_lowercase();
    let (name, is_array) = match name.strip_suffix("[]").or_else(|| name.strip_prefix('_')) {
        Some(element) => (element, true),
        None => (name.as_str(), false),
    };
    let found = find_sql_name(match name {
        "int" => "integer",
        "decimal" | "dec" => "numeric",
        "float" => "double precision",
        "char" => "character",
        other => other,
    })?;
    Some(if is_array { format!("{found}[]") } else { found.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_wider_type() {
        assert_eq!(operator_result("integer", "bigint").unwrap(), "bigint");
        assert_eq!(operator_result("real", "integer").unwrap(), "double precision");
        assert_eq!(operator_result("real", "real").unwrap(), "real");
        assert_eq!(operator_result("date", "integer"), None);
        assert_eq!(common_type_name(&["integer".to_owned(), UNKNOWN.to_owned()]).unwrap(), "integer");
    }

    #[test]
    fn types_are_found_by_any_of_their_names() {
        let names = [
            ("INT4", "integer"),
            ("int[]", "integer[]"),
            ("_text", "text[]"),
            ("timestamptz", "timestamp with time zone"),
        ];
        for (name, found) in names {
            assert_eq!(sql_name_of(name).unwrap(), found, "{name}");
        }
        assert_eq!(sql_name_of("nothing"), None);
    }

    #[test]
    fn columns_have_the_types_of_postgresql() {
        let digits = column_type(&Field::new("a", DataType::Decimal128(12, 2), true));
        assert_eq!(digits, ColumnType::numeric(12, 2));
        let integers = DataType::new_list(DataType::new_list(DataType::Int32, true), true);
        let integers = column_type(&Field::new("a", integers, true));
        assert_eq!((integers.own_name(), integers.sql_name()), ("_int4".to_owned(), "integer[]".to_owned()));
    }
}
