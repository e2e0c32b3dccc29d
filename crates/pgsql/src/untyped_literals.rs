//! Gives untyped string literals the type of the values beside them: in VALUES, CASE, ARRAY, UNION, `coalesce`, `greatest`,
//! `least`, `nullif` and the like. Numerics beside floating-point numbers become such numbers.
//!
//! The types of the values in a row of VALUES are known only after planning, when DataFusion requires all rows to agree. So a
//! literal becomes a call with the values beside it, of which only the types are used, and so does a numeric that may be
//! beside a floating-point number. The planner takes the type of a CASE from its first branch.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::StringArray;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, exec_err, plan_err};
use datafusion::functions::core::{coalesce, greatest, least, nullif};
use datafusion::functions_nested::make_array::make_array_udf;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    Case, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, Projection, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Union, Volatility,
};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Query, SetExpr, TypedString, UnaryOperator, Value, Values, Visitor,
};

use crate::data_type::{is_text_or_dictionary, postgres_type_name};
use crate::function::FieldFunction;
use crate::list::{dimensions, innermost_type};
use crate::syntax::{call, take, without_parentheses};
use crate::walk::walk;
use crate::{array, cast, number, time};

/// Returns the scalar functions of this module. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let mut functions = choice_functions();
    functions.extend(value_functions());
    functions
}

/// Whether `expression` is an untyped string literal.
fn is_untyped(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(ScalarValue::Utf8(Some(_)), _))
}

/// Converts an untyped literal to the type `data_type`. Other expressions are unchanged.
fn type_literal(literal: Expr, data_type: &DataType) -> Result<Expr> {
    match literal {
        Expr::Literal(ScalarValue::Utf8(Some(text)), metadata) => {
            Ok(Expr::Literal(parse_value(&text, data_type)?, metadata))
        }
        other => Ok(other),
    }
}

/// Converts a value to the common type of the values beside it, if it is an untyped literal, or a numeric beside
/// floating-point numbers. Other expressions are unchanged.
fn type_operand(operand: Expr, common: &DataType, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if is_untyped(&operand) {
        return type_literal(operand, common).map(Transformed::yes);
    }
    if becomes_float(&operand.get_type(schema)?, common) {
        return Ok(Transformed::yes(number::widen_operand(operand, common)));
    }
    Ok(Transformed::no(operand))
}

/// Whether a numeric, or an array of them, is converted to the floating-point type `common`.
fn becomes_float(data_type: &DataType, common: &DataType) -> bool {
    dimensions(data_type) == dimensions(common)
        && innermost_type(data_type).is_decimal()
        && innermost_type(common).is_floating()
}

/// Parses `text` as a value of the type `data_type`. A numeric has the digits that it is written with.
fn parse_value(text: &str, data_type: &DataType) -> Result<ScalarValue> {
    if is_text_or_dictionary(data_type) {
        return Ok(ScalarValue::Utf8(Some(text.to_owned())));
    }
    if data_type.is_decimal() {
        return number::numeric_literal(text).ok_or_else(|| number::invalid_input_error(text, data_type));
    }
    let values = cast::parse_texts(&StringArray::from(vec![text]), data_type)?;
    ScalarValue::try_from_array(&values, 0)
}

/// Returns the type that literals take beside values of `types`; `None` if they remain text.
fn literal_target(construct: &str, types: &[DataType]) -> Result<Option<DataType>> {
    Ok(common_type(construct, types)?.filter(|common| !is_text_or_dictionary(common)))
}

/// Returns the common type of `types`, the branches of `construct`; `None` if all are untyped.
fn common_type(construct: &str, types: &[DataType]) -> Result<Option<DataType>> {
    let types: Vec<DataType> = types.iter().filter(|data_type| !data_type.is_null()).cloned().collect();
    let Some(first) = types.first() else { return Ok(None) };
    if types.iter().all(|data_type| data_type == first) {
        return Ok(Some(first.clone()));
    }
    let is_plain = |data_type: &&DataType| {
        data_type.is_numeric()
            || data_type.is_temporal()
            || matches!(data_type, DataType::Boolean | DataType::Interval(_))
    };
    let unmatched = |left, right, advice| {
        let (left, right) = (postgres_type_name(left), postgres_type_name(right));
        plan_err!("{construct} types {left} and {right} cannot be matched; {advice}")
    };
    if let (Some(text), Some(other)) =
        (types.iter().find(|data_type| is_text_or_dictionary(data_type)), types.iter().find(is_plain))
    {
        let (left, right) = if text == first { (text, other) } else { (other, text) };
        return unmatched(left, right, "cast one side, for instance x::text");
    }
    if let Some((other, advice)) = types.iter().find_map(|other| Some((other, time::number_advice(first, other)?))) {
        return unmatched(first, other, advice);
    }
    Ok(number::common_float(&types).or_else(|| type_union_resolution(&types)))
}

/// Types the literals of `expression` if its operands must have a common type.
pub(crate) fn type_literals(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expression {
        Expr::Case(case) => type_case(case, schema),
        Expr::ScalarFunction(call) => match resolve_value(&call, schema)? {
            Some(value) => Ok(Transformed::yes(value)),
            None => resolve_choice(call, schema),
        },
        other => Ok(Transformed::no(other)),
    }
}

fn type_case(mut case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut is_changed = false;
    if let Some(operand) = &mut case.expr {
        let compared = operand.get_type(schema)?;
        let has_type = !is_untyped(operand) && !compared.is_null() && !is_text_or_dictionary(&compared);
        for (when, _) in case.when_then_expr.iter_mut().filter(|(when, _)| has_type && is_untyped(when)) {
            **when = type_literal(std::mem::take(when.as_mut()), &compared)?;
            is_changed = true;
        }
        let whens = case.when_then_expr.iter().map(|(when, _)| when.get_type(schema));
        let types = std::iter::once(Ok(compared)).chain(whens).collect::<Result<Vec<_>>>()?;
        if let [compared, whens @ ..] = types.as_slice() {
            whens.iter().try_for_each(|when| time::check_comparable(compared, Operator::Eq, when))?;
        }
        if let Some(wide) = number::wide_type(&types) {
            let whens = case.when_then_expr.iter_mut().map(|(when, _)| when);
            for compared in std::iter::once(operand).chain(whens) {
                **compared = number::widen_operand(std::mem::take(compared.as_mut()), &wide);
            }
            is_changed = true;
        }
    }
    let results = || case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
    let types = results().filter(|result| !is_untyped(result)).map(|result| result.get_type(schema));
    let types = types.collect::<Result<Vec<_>>>()?;
    if let Some(common) = literal_target("CASE", &types)? {
        for result in case.when_then_expr.iter_mut().map(|(_, then)| then).chain(&mut case.else_expr) {
            let typed = type_operand(std::mem::take(result.as_mut()), &common, schema)?;
            is_changed |= typed.transformed;
            **result = typed.data;
        }
    }
    Ok(Transformed::new_transformed(Expr::Case(case), is_changed))
}

/// Types the literals among the elements of an array.
pub(crate) fn plan_array(elements: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    check_lengths(&elements)?;
    if !elements.iter().any(is_untyped) && elements.iter().all(|element| matches!(element, Expr::Literal(..))) {
        return Ok(elements);
    }
    let types = elements.iter().filter(|element| !is_untyped(element)).map(|element| element.get_type(schema));
    let Ok(types) = types.collect::<Result<Vec<_>>>() else { return Ok(elements) };
    match literal_target("ARRAY", &types)? {
        Some(common) => {
            let typed = |element| type_operand(element, &common, schema).map(|typed| typed.data);
            elements.into_iter().map(typed).collect()
        }
        None => Ok(elements),
    }
}

/// Fails if array constructors among `elements` have different lengths.
fn check_lengths(elements: &[Expr]) -> Result<()> {
    let mut shapes = elements.iter().map(shape).filter(|shape| !shape.is_empty());
    let first = shapes.next();
    if shapes.any(|other| Some(other) != first) {
        return exec_err!("multidimensional arrays must have array expressions with matching dimensions");
    }
    Ok(())
}

/// Returns the length of each dimension of an array constructor.
fn shape(expression: &Expr) -> Vec<usize> {
    match expression {
        Expr::ScalarFunction(call) if call.func.name() == "make_array" => {
            let inner = call.args.first().map(shape).unwrap_or_default();
            [vec![call.args.len()], inner].concat()
        }
        _ => Vec::new(),
    }
}

/// Types the literals in the columns of a UNION.
pub(crate) fn type_union(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(Union { mut inputs, schema }) = node else { return Ok(Transformed::no(node)) };
    // A UNION within this one may have got other types, and DataFusion's coercion begins with those of the schema.
    let mut is_changed = inputs.first().is_some_and(|first| {
        let mut types = first.schema().fields().iter().zip(schema.fields());
        types.any(|(own, planned)| own.data_type() != planned.data_type())
    });
    for column in 0..schema.fields().len() {
        let typed = inputs.iter().filter(|input| !is_literal(input, column));
        let types: Vec<_> = typed.map(|input| input.schema().field(column).data_type().clone()).collect();
        let Some(common) = literal_target("UNION", &types)? else { continue };
        for input in inputs.iter_mut().filter(|input| becomes_float(input.schema().field(column).data_type(), &common))
        {
            *input = Arc::new(widen_column(input, column, &common)?);
            is_changed = true;
        }
        for input in inputs.iter_mut().filter(|input| is_literal(input, column)) {
            let projection = Arc::unwrap_or_clone(input.clone());
            let LogicalPlan::Projection(Projection { mut expr, input: below, .. }) = projection else { continue };
            let literal = std::mem::take(&mut expr[column]);
            let replaced = literal.transform_up(|part| {
                if is_untyped(&part) {
                    type_literal(part, &common).map(Transformed::yes)
                } else {
                    Ok(Transformed::no(part))
                }
            })?;
            expr[column] = replaced.data;
            *input = Arc::new(LogicalPlan::Projection(Projection::try_new(expr, below)?));
            is_changed = true;
        }
    }
    if !is_changed {
        return Ok(Transformed::no(LogicalPlan::Union(Union { inputs, schema })));
    }
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}

/// Converts a column of numerics to the floating-point type `common`.
fn widen_column(plan: &Arc<LogicalPlan>, column: usize, common: &DataType) -> Result<LogicalPlan> {
    let output = plan.schema().iter().enumerate().map(|(position, (qualifier, field))| {
        let value = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        if position != column {
            return value;
        }
        number::widen_operand(value, common).alias_qualified(qualifier.cloned(), field.name())
    });
    Ok(LogicalPlan::Projection(Projection::try_new(output.collect(), plan.clone())?))
}

/// Whether a column of `plan` is an untyped literal.
fn is_literal(plan: &LogicalPlan, column: usize) -> bool {
    let LogicalPlan::Projection(projection) = plan else { return false };
    let mut expression = projection.expr.get(column);
    while let Some(Expr::Alias(alias)) = expression {
        expression = Some(&alias.expr);
    }
    expression.is_some_and(is_untyped)
}

/// The name of the function for an array literal whose elements are arguments.
pub(crate) const ARRAY: &str = "array*";

fn choice_functions() -> Vec<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    let choices = [coalesce(), greatest(), least(), nullif()].map(|inner| (inner.name().to_owned(), inner));
    let functions = choices.into_iter().chain([(ARRAY.to_owned(), make_array_udf())]);
    let function = |(name, inner)| ChoiceFunction { name, inner, signature: signature.clone() };
    functions.map(|named| ScalarUDF::new_from_impl(function(named))).collect()
}

/// A function of DataFusion whose arguments have one type. [`resolve_choice`] replaces it with DataFusion's function
/// once the literals have their type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ChoiceFunction {
    name: String,
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

/// Replaces a call of a [`ChoiceFunction`] with a call of DataFusion's function, and types its literals.
fn resolve_choice(call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Some(choice) = call.func.inner().downcast_ref::<ChoiceFunction>() else {
        return Ok(Transformed::no(Expr::ScalarFunction(call)));
    };
    let types = call.args.iter().filter(|arg| !is_untyped(arg)).map(|arg| arg.get_type(schema));
    let types = types.collect::<Result<Vec<_>>>()?;
    let common = choice.literal_target(&types)?;
    let args = match common {
        Some(common) => {
            let typed = |arg| type_operand(arg, &common, schema).map(|typed| typed.data);
            call.args.into_iter().map(typed).collect::<Result<_>>()?
        }
        None => call.args,
    };
    if choice.name == ARRAY {
        check_lengths(&args)?;
        let array = array::plan_nested_array(&args, schema);
        return Ok(Transformed::yes(array.unwrap_or_else(|| choice.inner.call(args))));
    }
    if types.iter().any(|data_type| matches!(data_type, DataType::Interval(_))) {
        return choose_interval(choice, args).map(Transformed::yes);
    }
    Ok(Transformed::yes(choice.inner.call(args)))
}

/// Plans `coalesce` and `nullif` of intervals. DataFusion does not compare intervals by their length.
fn choose_interval(choice: &ChoiceFunction, args: Vec<Expr>) -> Result<Expr> {
    match (choice.name(), args.as_slice()) {
        ("coalesce", _) => Ok(choice.inner.call(args)),
        ("nullif", [left, right]) => {
            let is_equal = left.clone().eq(right.clone());
            let (condition, then) = (Box::new(is_equal), Box::new(Expr::Literal(ScalarValue::Null, None)));
            Ok(Expr::Case(Case::new(None, vec![(condition, then)], Some(Box::new(left.clone())))))
        }
        (name, _) => plan_err!(
            "{name} of intervals is not supported; write CASE WHEN a > b THEN a ELSE b END, or max and min of rows"
        ),
    }
}

impl ChoiceFunction {
    fn literal_target(&self, types: &[DataType]) -> Result<Option<DataType>> {
        let common = literal_target(&self.name.trim_end_matches('*').to_uppercase(), types)?;
        // `nullif` compares its arguments, a numeric and a real as doubles.
        let is_compared = self.name == "nullif" && types.iter().any(DataType::is_decimal);
        Ok(if is_compared && common == Some(DataType::Float32) { Some(DataType::Float64) } else { common })
    }
}

impl ScalarUDFImpl for ChoiceFunction {
    crate::name_and_signature!(.name);

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        plan_err!("the type of {} depends on its arguments", self.name())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let untyped: Vec<bool> =
            args.scalar_arguments.iter().map(|value| matches!(value, Some(ScalarValue::Utf8(Some(_))))).collect();
        let is_literal = |position: usize| untyped.get(position).copied().unwrap_or(false);
        let types = args.arg_fields.iter().enumerate().filter(|(position, _)| !is_literal(*position));
        let types: Vec<DataType> = types.map(|(_, field)| field.data_type().clone()).collect();
        let common = self.literal_target(&types)?;
        let fields = args.arg_fields.iter().enumerate().map(|(position, field)| match &common {
            Some(common) if is_literal(position) || becomes_float(field.data_type(), common) => {
                Arc::new(Field::clone(field).with_data_type(common.clone()))
            }
            _ => field.clone(),
        });
        let fields = fields_with_udf(&fields.collect::<Vec<_>>(), self.inner.as_ref())?;
        self.inner
            .return_field_from_args(ReturnFieldArgs { arg_fields: &fields, scalar_arguments: args.scalar_arguments })
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        plan_err!("{} was not resolved", self.name())
    }
}

/// The name of the function that takes the place of an untyped literal. The `*` keeps callers from writing it.
const NAME: &str = "untyped*";

/// The name of the function that converts a numeric beside a floating-point number to one.
const NUMBER: &str = "number*";

/// The maximum number of values beside a literal or a numeric whose types are examined.
const SIBLINGS_MAX: usize = 16;

/// Gives the literals and numerics in VALUES of `query` itself the type of the values in other rows.
pub(crate) fn type_values(query: &mut Query) {
    let mut bodies = vec![query.body.as_mut()];
    while let Some(body) = bodies.pop() {
        match body {
            SetExpr::Values(values) => type_rows(values),
            SetExpr::SetOperation { left, right, .. } => bodies.extend([left.as_mut(), right.as_mut()]),
            _ => {}
        }
    }
}

/// Gives the literal of the first branch of a CASE the type of a branch that follows.
pub(crate) fn rewrite_case(expression: &mut ast::Expr) -> Result<()> {
    let ast::Expr::Case { conditions, else_result, .. } = expression else { return Ok(()) };
    let branches = || conditions.iter().map(|branch| &branch.result).chain(else_result.as_deref());
    if !branches().find(|branch| !is_null(branch)).is_some_and(is_string) {
        return Ok(());
    }
    let typed = branches().find(|branch| !is_string(branch) && !is_null(branch)).cloned();
    if let Some(sibling) = typed.filter(|sibling| is_small(sibling, SIBLINGS_MAX))
        && let Some(first) = conditions.iter_mut().map(|branch| &mut branch.result).find(|branch| !is_null(branch))
    {
        *first = call(NAME, vec![take(first), sibling]);
    }
    Ok(())
}

/// Returns the value that replaces `call` if it is a call of [`NAME`] or [`NUMBER`].
fn resolve_value(call: &ScalarFunction, schema: &DFSchema) -> Result<Option<Expr>> {
    if call.func.name() == NUMBER {
        return resolve_number(call, schema);
    }
    if call.func.name() != NAME {
        return Ok(None);
    }
    let types = call.args.iter().skip(1).map(|arg| arg.get_type(schema)).collect::<Result<Vec<_>>>()?;
    Ok(match call.args.first() {
        Some(Expr::Literal(ScalarValue::Utf8(Some(text)), metadata)) => {
            let data_type = literal_type(text, &types)?;
            // All rows of VALUES have one type, including its number of digits.
            let value = parse_value(text, &data_type)?.cast_to(&data_type)?;
            Some(Expr::Literal(value, metadata.clone()))
        }
        _ => None,
    })
}

fn resolve_number(call: &ScalarFunction, schema: &DFSchema) -> Result<Option<Expr>> {
    let types = call.args.iter().map(|arg| arg.get_type(schema)).collect::<Result<Vec<_>>>()?;
    let data_type = number_type(&types)?;
    Ok(call.args.first().cloned().zip(types.first()).map(|(value, own)| match data_type {
        Some(float) if becomes_float(own, &float) => number::widen_operand(value, &float),
        _ => value,
    }))
}

fn type_rows(values: &mut Values) {
    let columns = values.rows.first().map_or(0, |row| row.content.len());
    for column in 0..columns {
        let own = || values.rows.iter().filter_map(|row| row.content.get(column));
        // Of the values as they are written: a call of a literal contains others.
        let floats = floats_beside_numerics(own());
        if own().any(is_string)
            && let Some(siblings) = sibling_values(own()).filter(|siblings| !siblings.is_empty())
        {
            replace_values(values, column, NAME, &siblings, is_string);
        }
        if !floats.is_empty() {
            let may_be_numeric =
                |value: &ast::Expr| matches!(number_kind(value), NumberKind::Numeric | NumberKind::Unknown);
            replace_values(values, column, NUMBER, &floats, |value| {
                may_be_numeric(value) && !is_call_of_literal(value)
            });
        }
    }
}

/// Replaces the values of a column that `is_replaced` selects with calls of `function`, with the values `siblings` beside
/// them.
fn replace_values(
    values: &mut Values,
    column: usize,
    function: &str,
    siblings: &[ast::Expr],
    is_replaced: impl Fn(&ast::Expr) -> bool,
) {
    for row in &mut values.rows {
        if let Some(value) = row.content.get_mut(column).filter(|value| is_replaced(value)) {
            *value = call(function, [vec![take(value)], siblings.to_vec()].concat());
        }
    }
}

fn is_call_of_literal(value: &ast::Expr) -> bool {
    matches!(value, ast::Expr::Function(function) if function.name.to_string() == NAME)
}

/// What is known of the type of a value before planning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NumberKind {
    Float,
    Numeric,
    /// A number of any type, an array of numbers, or another value.
    Unknown,
    Other,
}

fn number_kind(value: &ast::Expr) -> NumberKind {
    match without_parentheses(value) {
        ast::Expr::Value(value) => match &value.value {
            // It is a double if a numeric has too few digits.
            Value::Number(number, _) if number.contains(['e', 'E']) => NumberKind::Unknown,
            Value::Number(number, _) if number.parse::<i64>().is_err() => NumberKind::Numeric,
            _ => NumberKind::Other,
        },
        ast::Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => number_kind(expr),
        ast::Expr::Cast { data_type, .. } | ast::Expr::TypedString(TypedString { data_type, .. }) => match data_type {
            ast::DataType::Numeric(_) | ast::DataType::Decimal(_) | ast::DataType::Dec(_) => NumberKind::Numeric,
            ast::DataType::Real
            | ast::DataType::Float4
            | ast::DataType::Float8
            | ast::DataType::Float(_)
            | ast::DataType::DoublePrecision
            | ast::DataType::Double(_) => NumberKind::Float,
            ast::DataType::Array(_) => NumberKind::Unknown,
            _ => NumberKind::Other,
        },
        ast::Expr::BinaryOp { op, .. } if is_arithmetic(op) => NumberKind::Unknown,
        ast::Expr::UnaryOp { .. }
        | ast::Expr::Array(_)
        | ast::Expr::Function(_)
        | ast::Expr::Case { .. }
        | ast::Expr::Extract { .. }
        | ast::Expr::Ceil { .. }
        | ast::Expr::Floor { .. }
        | ast::Expr::Subquery(_)
        | ast::Expr::Identifier(_)
        | ast::Expr::CompoundIdentifier(_) => NumberKind::Unknown,
        _ => NumberKind::Other,
    }
}

fn is_arithmetic(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Divide, Minus, Modulo, Multiply, PGExp, Plus};
    matches!(op, Plus | Minus | Multiply | Divide | Modulo | PGExp)
}

/// Returns a value of each type in `column` that may be a floating-point number; none if no numeric can be beside one.
fn floats_beside_numerics<'a>(column: impl Iterator<Item = &'a ast::Expr>) -> Vec<ast::Expr> {
    let mut seen = HashSet::new();
    let (mut floats, mut has_numeric) = (Vec::new(), false);
    for value in column {
        let kind = number_kind(value);
        match kind {
            NumberKind::Float | NumberKind::Unknown if is_small(value, usize::MAX) => {
                if seen.insert(type_key(value)) {
                    floats.push((kind, value));
                }
            }
            // A subquery is not repeated for its type.
            NumberKind::Numeric | NumberKind::Unknown => has_numeric = true,
            NumberKind::Float | NumberKind::Other => {}
        }
    }
    let has_unknown = floats.iter().any(|(kind, _)| *kind == NumberKind::Unknown);
    if !(has_numeric || has_unknown && floats.len() > 1) {
        return Vec::new();
    }
    floats.sort_by_key(|(kind, _)| *kind == NumberKind::Unknown);
    floats.into_iter().take(SIBLINGS_MAX).map(|(_, value)| value.clone()).collect()
}

/// Returns a value of each type in `column`; `None` if there may be other types.
fn sibling_values<'a>(column: impl Iterator<Item = &'a ast::Expr>) -> Option<Vec<ast::Expr>> {
    let (mut seen, mut siblings) = (HashSet::new(), Vec::new());
    for value in column.filter(|value| !is_string(value) && !is_null(value)) {
        if seen.insert(type_key(value)) {
            if siblings.len() == SIBLINGS_MAX || !is_small(value, usize::MAX) {
                return None;
            }
            siblings.push(value.clone());
        }
    }
    Some(siblings)
}

/// Returns a key that is equal for values of the same type.
fn type_key(value: &ast::Expr) -> String {
    match without_parentheses(value) {
        ast::Expr::Cast { data_type, .. } => format!("::{data_type}"),
        ast::Expr::TypedString(typed) => format!("::{}", typed.data_type),
        ast::Expr::Value(value) => match &value.value {
            Value::Number(number, _) if number.parse::<i32>().is_err() => number.clone(),
            Value::Number(..) => "integer".to_owned(),
            Value::Boolean(_) => "boolean".to_owned(),
            other => other.to_string(),
        },
        other => other.to_string(),
    }
}

fn is_string(value: &ast::Expr) -> bool {
    match without_parentheses(value) {
        ast::Expr::Value(value) => matches!(
            value.value,
            Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_) | Value::DollarQuotedString(_)
        ),
        _ => false,
    }
}

fn is_null(value: &ast::Expr) -> bool {
    matches!(value, ast::Expr::Value(value) if value.value == Value::Null)
}

/// Whether `value` contains no query, and at most `expressions_max` expressions.
fn is_small(value: &ast::Expr, expressions_max: usize) -> bool {
    walk(value, &mut SizeCheck { remaining: expressions_max }).is_continue()
}

struct SizeCheck {
    remaining: usize,
}

impl Visitor for SizeCheck {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, _: &ast::Expr) -> ControlFlow<()> {
        match self.remaining.checked_sub(1) {
            Some(remaining) => {
                self.remaining = remaining;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }
}

/// Returns the type of the literal `text` beside values of the types `siblings`. A numeric type also has room for the
/// literal's digits.
fn literal_type(text: &str, siblings: &[DataType]) -> Result<DataType> {
    let common = common_type("VALUES", siblings)?.unwrap_or(DataType::Utf8);
    if !common.is_decimal() {
        return Ok(common);
    }
    let own = parse_value(text, &common)?.data_type();
    Ok(type_union_resolution(&[common.clone(), own]).unwrap_or(common))
}

/// Returns the type of a column with values of `types` if it is that of a floating-point number, or of arrays of them.
fn number_type(types: &[DataType]) -> Result<Option<DataType>> {
    Ok(common_type("VALUES", types)?.filter(|common| innermost_type(common).is_floating()))
}

fn value_functions() -> [ScalarUDF; 2] {
    let signature = Signature::variadic_any(Volatility::Immutable);
    [
        FieldFunction::new(NAME, signature.clone(), literal_field, invoke_literal),
        FieldFunction::new(NUMBER, signature, number_field, |_| plan_err!("{NUMBER} was not resolved")),
    ]
}

/// Returns the field of a text that is parsed as a value of the type of the other arguments.
fn literal_field(args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    let Some(Some(ScalarValue::Utf8(Some(text)))) = args.scalar_arguments.first() else {
        return plan_err!("an untyped literal must be text");
    };
    let siblings: Vec<DataType> = args.arg_fields.iter().skip(1).map(|field| field.data_type().clone()).collect();
    Ok(Arc::new(Field::new(NAME, literal_type(text, &siblings)?, true)))
}

fn invoke_literal(args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let Some(ColumnarValue::Scalar(ScalarValue::Utf8(Some(text)))) = args.args.first() else {
        return plan_err!("an untyped literal must be text");
    };
    let value = parse_value(text, args.return_field.data_type())?;
    Ok(ColumnarValue::Scalar(value.cast_to(args.return_field.data_type())?))
}

/// Returns the field of a number: a numeric is converted to the floating-point type of the other arguments.
/// [`resolve_value`] replaces the call.
fn number_field(args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
    let Some(own) = args.arg_fields.first() else { return plan_err!("{NUMBER} has no argument") };
    Ok(match number_type(&types)? {
        Some(float) if becomes_float(own.data_type(), &float) => Arc::new(Field::clone(own).with_data_type(float)),
        _ => own.clone(),
    })
}
