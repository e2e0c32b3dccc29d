//! DataFusion's grammar with a bound on the parser's work.
//!
//! sqlparser tries the special forms of `CASE`, `CAST`, `POSITION` and the like first and parses
//! them again as plain names when that fails. Nested, each failure doubles the work, so that a
//! hundred bytes could keep it busy for hours. This grammar counts the expressions that are begun
//! and fails all of them once there are too many.

use std::any::TypeId;
use std::cell::Cell;

use sqlparser::ast::Expr;
use sqlparser::dialect::{Dialect, GenericDialect};
use sqlparser::parser::{Parser, ParserError};

/// Expressions begun for each token; honest SQL begins no more than one or two.
const BEGUN_PER_TOKEN_MAX: usize = 8;
/// Expressions begun whatever the number of tokens.
const BEGUN_MIN: usize = 10_000;

/// The generic grammar for one text, which fails when it takes too much work.
#[derive(Debug)]
pub(crate) struct BoundedDialect {
    grammar: GenericDialect,
    left: Cell<usize>,
}

impl BoundedDialect {
    /// A grammar for a text of `tokens` tokens.
    pub(crate) fn new(tokens: usize) -> Self {
        let left = tokens.saturating_mul(BEGUN_PER_TOKEN_MAX).saturating_add(BEGUN_MIN);
        Self { grammar: GenericDialect {}, left: Cell::new(left) }
    }

    /// Whether the bound was reached; then whatever the parser says is about that.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.left.get() == 0
    }
}

/// Hands on what the grammar says of itself; all else has defaults, in [`GenericDialect`] too.
macro_rules! as_the_grammar_says {
    ($($question:ident),+ $(,)?) => {
        $(fn $question(&self) -> bool {
            self.grammar.$question()
        })+
    };
}

impl Dialect for BoundedDialect {
    fn dialect(&self) -> TypeId {
        self.grammar.dialect()
    }

    fn parse_prefix(&self, _parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let left = self.left.get();
        if left == 0 {
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        self.left.set(left - 1);
        None
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        self.grammar.is_delimited_identifier_start(character)
    }

    fn is_identifier_start(&self, character: char) -> bool {
        self.grammar.is_identifier_start(character)
    }

    fn is_identifier_part(&self, character: char) -> bool {
        self.grammar.is_identifier_part(character)
    }

    as_the_grammar_says!(
        allow_extract_custom,
        allow_extract_single_quotes,
        support_map_literal_syntax,
        supports_array_join_syntax,
        supports_array_typedef_with_brackets,
        supports_bitwise_shift_operators,
        supports_comma_separated_trim,
        supports_comment_optimizer_hint,
        supports_connect_by,
        supports_cte_without_as,
        supports_data_type_signed_suffix,
        supports_dictionary_syntax,
        supports_empty_projections,
        supports_explain_with_utility_options,
        supports_extract_comma_syntax,
        supports_filter_during_aggregation,
        supports_from_first_select,
        supports_group_by_expr,
        supports_group_by_with_modifier,
        supports_interpolate,
        supports_interval_options,
        supports_left_associative_joins_without_parens,
        supports_limit_by,
        supports_limit_comma,
        supports_match_against,
        supports_match_recognize,
        supports_multiline_comment_hints,
        supports_named_fn_args_with_assignment_operator,
        supports_nested_comments,
        supports_parens_around_table_factor,
        supports_partition_by_after_order_by,
        supports_pipe_operator,
        supports_prewhere,
        supports_projection_trailing_commas,
        supports_quote_delimited_string,
        supports_select_format,
        supports_select_item_multi_column_alias,
        supports_select_wildcard_except,
        supports_select_wildcard_exclude,
        supports_select_wildcard_ilike,
        supports_select_wildcard_rename,
        supports_select_wildcard_replace,
        supports_settings,
        supports_string_escape_constant,
        supports_struct_literal,
        supports_try_convert,
        supports_unicode_string_literal,
        supports_values_as_table_factor,
        supports_window_clause_named_window_reference,
        supports_window_function_null_treatment_arg,
        supports_with_fill,
        supports_xml_expressions,
    );
}
