//! Translates the keys of groups to the SQL of a member.

use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable};
use tidegate_sql::{Parameter, SqlDialect};

use super::comparison::ComparisonSemantics;
use super::expression::{ColumnLookup, scalar_text};
use super::translator::Translator;

/// The functions that keys may call. Their arguments in a plan are those of SQL.
const FUNCTIONS: &[&str] = &["date_trunc", "date_bin", "date_part", "lower", "upper"];

impl Translator {
    /// Translates the key of a group. `None` if other rows could be in a group.
    pub(super) fn translate_key(&mut self, key: &Expr, terms: ColumnLookup<'_>, schema: &DFSchema) -> Option<String> {
        if let Expr::Column(column) = key {
            let term = terms(column).filter(|term| self.comparison_semantics(term) >= ComparisonSemantics::Equal)?;
            return Some(term.sql);
        }
        // Only the same engine has the same functions; floats may be equal in one step and different in another.
        let data_type = key.get_type(schema).ok()?;
        if self.dialect() != SqlDialect::DataFusion || data_type.is_floating() || data_type.is_nested() {
            return None;
        }
        self.translate_call(key, terms)
    }

    fn translate_call(&mut self, expr: &Expr, terms: ColumnLookup<'_>) -> Option<String> {
        match expr {
            Expr::Column(column) => Some(terms(column)?.sql),
            Expr::Literal(value, _) => self.translate_constant(value),
            Expr::ScalarFunction(ScalarFunction { func, args }) => match (func.name(), args.as_slice()) {
                ("extract", [Expr::Literal(ScalarValue::Utf8(Some(field)), _), value]) if is_word(field) => {
                    Some(format!("extract({field} FROM {})", self.translate_call(value, terms)?))
                }
                (name, args) if FUNCTIONS.contains(&name) => {
                    let args: Option<Vec<String>> = args.iter().map(|arg| self.translate_call(arg, terms)).collect();
                    Some(format!("{name}({})", args?.join(", ")))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn translate_constant(&mut self, value: &ScalarValue) -> Option<String> {
        match value {
            _ if value.is_null() => None,
            ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
                Some(self.placeholder(Parameter::Text(text.clone())))
            }
            ScalarValue::Int64(Some(value)) => Some(self.placeholder(Parameter::Integer(*value))),
            ScalarValue::TimestampMicrosecond(..) | ScalarValue::TimestampNanosecond(..) | ScalarValue::Date32(_) => {
                let text = self.placeholder(Parameter::Text(scalar_text(value)?));
                Some(format!("arrow_cast({text}, '{}')", value.data_type()))
            }
            ScalarValue::IntervalMonthDayNano(_) => {
                let text = self.placeholder(Parameter::Text(scalar_text(value)?));
                Some(format!("CAST({text} AS INTERVAL)"))
            }
            _ => None,
        }
    }
}

fn is_word(field: &str) -> bool {
    !field.is_empty() && field.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
}
