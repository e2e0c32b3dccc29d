//! Texts as parameters: like untyped literals, they take the type of the values beside them.
//!
//! The type of a placeholder is not known when operators are resolved. A text that is bound after that would be compared with
//! a timestamp in nanoseconds, which reach from 1677 to 2262 only.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Statement, Value, VisitMut, VisitorMut};
use tidegate_sql::Parameter;

/// Replaces the placeholders of texts by literals.
pub(super) fn bind_texts(statement: &mut Statement, parameters: &[Parameter]) {
    if parameters.iter().any(|parameter| matches!(parameter, Parameter::Text(_))) {
        // The visitor never stops early.
        let _ = VisitMut::visit(statement, &mut TextBinder(parameters));
    }
}

struct TextBinder<'a>(&'a [Parameter]);

impl VisitorMut for TextBinder<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Value(value) = expr
            && let Value::Placeholder(name) = &value.value
            && let Some(Parameter::Text(text)) = position(name).and_then(|position| self.0.get(position))
        {
            value.value = Value::SingleQuotedString(text.clone());
        }
        ControlFlow::Continue(())
    }
}

/// The position of the placeholder `$1` is 0.
pub(super) fn position(name: &str) -> Option<usize> {
    name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}
