//! A parser dialect with a limit on the work of the parser, and with syntax extensions.
//!
//! sqlparser first tries the special forms of `CASE`, `CAST`, `POSITION` and the like, and parses them again as plain
//! names when that fails. Nested, each failure doubles the work, so that a hundred bytes could take hours. This dialect
//! counts the expressions that are begun and fails beyond a limit.

mod dialect_extensions;

use std::any::TypeId;
use std::cell::Cell;

use sqlparser::ast::{Expr, GranteesType, Statement};
use sqlparser::dialect::{Dialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect::SqlDialect;

/// The limit of expressions per token; ordinary SQL begins one or two.
const EXPRESSIONS_PER_TOKEN_MAX: usize = 8;
/// The minimum limit of expressions, whatever the number of tokens.
const EXPRESSION_BUDGET_MIN: usize = 10_000;

/// The dialect for one text, which fails when parsing takes too much work.
#[derive(Debug)]
pub(crate) struct BoundedDialect {
    grammar: &'static dyn Dialect,
    dialect: SqlDialect,
    expressions_left: Cell<usize>,
    /// Whether `x -> y` is a lambda function of `x`, instead of the member `y` of `x`.
    reads_lambdas: bool,
}

impl BoundedDialect {
    /// The dialect for a text with `tokens`.
    pub(crate) fn new(dialect: SqlDialect, tokens: &[TokenWithSpan]) -> Self {
        let left = tokens.len().saturating_mul(EXPRESSIONS_PER_TOKEN_MAX).saturating_add(EXPRESSION_BUDGET_MIN);
        let reads_lambdas = dialect == SqlDialect::DataFusion && tokens.iter().any(is_lambda_function);
        Self { grammar: dialect.parser_dialect(), dialect, expressions_left: Cell::new(left), reads_lambdas }
    }

    /// Whether the limit was reached; then every parser error is caused by it.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.expressions_left.get() == 0
    }
}

/// Whether `token` is the name of a function with a lambda argument.
fn is_lambda_function(token: &TokenWithSpan) -> bool {
    let Token::Word(word) = &token.token else { return false };
    let name = word.value.to_ascii_lowercase();
    let of_arrays = name.strip_prefix("array_").or_else(|| name.strip_prefix("list_"));
    match of_arrays {
        Some(rest) => matches!(rest, "any_match" | "filter" | "first" | "transform"),
        None => name == "any_match",
    }
}

/// Forwards a property of the underlying dialect.
macro_rules! as_the_grammar_says {
    ($($question:ident),+ $(,)?) => {
        $(fn $question(&self) -> bool {
            self.grammar.$question()
        })+
    };
}

/// A feature that the embedded engine supports beyond the grammar of PostgreSQL; other dialects forward.
macro_rules! also_read_by_the_embedded_engine {
    ($($question:ident),+ $(,)?) => {
        $(fn $question(&self) -> bool {
            self.dialect == SqlDialect::DataFusion || self.grammar.$question()
        })+
    };
}

/// Like [`as_the_grammar_says`], for single characters.
macro_rules! as_the_grammar_says_of {
    ($($question:ident),+ $(,)?) => {
        $(fn $question(&self, character: char) -> bool {
            self.grammar.$question(character)
        })+
    };
}

impl Dialect for BoundedDialect {
    fn dialect(&self) -> TypeId {
        self.grammar.dialect()
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let left = self.expressions_left.get();
        if left == 0 {
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        self.expressions_left.set(left - 1);
        dialect_extensions::parse_prefix(self.dialect, self, parser).or_else(|| self.grammar.parse_prefix(parser))
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        dialect_extensions::parse_infix(self.dialect, self, parser, expr)
            .or_else(|| self.grammar.parse_infix(parser, expr, precedence))
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        match dialect_extensions::next_precedence(self.dialect, parser) {
            Some(precedence) => Some(Ok(self.prec_value(precedence))),
            None => self.grammar.get_next_precedence(parser),
        }
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        self.dialect == SqlDialect::Sqlite || self.grammar.supports_bitwise_shift_operators()
    }

    fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
        self.grammar.parse_statement(parser)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        self.grammar.prec_value(precedence)
    }

    fn prec_unknown(&self) -> u8 {
        self.grammar.prec_unknown()
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        self.grammar.identifier_quote_style(identifier)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        self.grammar.is_reserved_for_identifier(keyword)
    }

    fn get_reserved_keywords_for_select_item_operator(&self) -> &[Keyword] {
        self.grammar.get_reserved_keywords_for_select_item_operator()
    }

    fn get_reserved_grantees_types(&self) -> &[GranteesType] {
        self.grammar.get_reserved_grantees_types()
    }

    fn is_column_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.grammar.is_column_alias(keyword, parser)
    }

    fn is_select_item_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.grammar.is_select_item_alias(explicit, keyword, parser)
    }

    fn is_table_factor(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.grammar.is_table_factor(keyword, parser)
    }

    fn is_table_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.grammar.is_table_alias(keyword, parser)
    }

    fn is_table_factor_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.grammar.is_table_factor_alias(explicit, keyword, parser)
    }

    also_read_by_the_embedded_engine!(
        supports_dictionary_syntax,
        supports_from_first_select,
        supports_group_by_with_modifier,
        supports_limit_comma,
        supports_order_by_all,
        supports_pipe_operator,
        supports_select_wildcard_except,
        supports_select_wildcard_exclude,
        supports_struct_literal,
    );

    fn supports_lambda_functions(&self) -> bool {
        self.reads_lambdas || self.grammar.supports_lambda_functions()
    }

    /// In the embedded engine the name of an argument is a name: parsing an expression in its place doubles the work
    /// with each nested call.
    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        self.dialect != SqlDialect::DataFusion && self.grammar.supports_named_fn_args_with_expr_name()
    }

    as_the_grammar_says_of!(
        is_custom_operator_part,
        is_delimited_identifier_start,
        is_identifier_part,
        is_identifier_start,
        is_nested_delimited_identifier_start,
    );

    as_the_grammar_says!(
        allow_extract_custom,
        allow_extract_single_quotes,
        convert_type_before_value,
        describe_requires_table_keyword,
        ignores_wildcard_escapes,
        require_interval_qualifier,
        requires_single_line_comment_whitespace,
        support_map_literal_syntax,
        supports_alter_column_type_using,
        supports_array_join_syntax,
        supports_array_typedef_with_brackets,
        supports_array_typedef_without_element_type,
        supports_asc_desc_in_column_definition,
        supports_bang_not_operator,
        supports_binary_kw_as_cast,
        supports_boolean_literals,
        supports_column_definition_trailing_commas,
        supports_comma_separated_drop_column_list,
        supports_comma_separated_set_assignments,
        supports_comma_separated_trim,
        supports_comment_on,
        supports_comment_optimizer_hint,
        supports_connect_by,
        supports_constraint_keyword_without_name,
        supports_create_index_with_clause,
        supports_create_table_like_parenthesized,
        supports_create_table_multi_schema_info_sources,
        supports_create_table_select,
        supports_create_table_using,
        supports_create_view_comment_syntax,
        supports_cross_join_constraint,
        supports_cte_without_as,
        supports_data_type_signed_suffix,
        supports_detach,
        supports_dollar_as_money_prefix,
        supports_dollar_placeholder,
        supports_double_ampersand_operator,
        supports_empty_projections,
        supports_end_transaction_modifier,
        supports_eq_alias_assignment,
        supports_execute_immediate,
        supports_explain_with_utility_options,
        supports_extract_comma_syntax,
        supports_factorial_operator,
        supports_filter_during_aggregation,
        supports_from_first_insert,
        supports_from_trailing_commas,
        supports_geometric_types,
        supports_group_by_expr,
        supports_in_empty_list,
        supports_insert_format,
        supports_insert_set,
        supports_insert_table_alias,
        supports_insert_table_function,
        supports_insert_table_query,
        supports_install,
        supports_interpolate,
        supports_interval_options,
        supports_key_column_option,
        supports_left_associative_joins_without_parens,
        supports_limit_by,
        supports_listen_notify,
        supports_load_data,
        supports_load_extension,
        supports_long_type_as_bigint,
        supports_map_literal_with_angle_brackets,
        supports_match_against,
        supports_match_recognize,
        supports_multiline_comment_hints,
        supports_named_fn_args_with_assignment_operator,
        supports_named_fn_args_with_colon_operator,
        supports_named_fn_args_with_eq_operator,
        supports_named_fn_args_with_rarrow_operator,
        supports_nested_comments,
        supports_notnull_operator,
        supports_numeric_literal_underscores,
        supports_numeric_prefix,
        supports_object_name_double_dot_notation,
        supports_optimize_table,
        supports_outer_join_operator,
        supports_parens_around_table_factor,
        supports_parenthesized_set_variables,
        supports_partiql,
        supports_partition_by_after_order_by,
        supports_prewhere,
        supports_projection_trailing_commas,
        supports_quote_delimited_string,
        supports_select_exclude,
        supports_select_expr_star,
        supports_select_format,
        supports_select_item_multi_column_alias,
        supports_select_modifiers,
        supports_select_wildcard_ilike,
        supports_select_wildcard_rename,
        supports_select_wildcard_replace,
        supports_select_wildcard_with_alias,
        supports_semantic_view_table_factor,
        supports_set_names,
        supports_set_stmt_without_operator,
        supports_settings,
        supports_show_like_before_in,
        supports_space_separated_column_options,
        supports_start_transaction_modifier,
        supports_string_escape_constant,
        supports_string_literal_backslash_escape,
        supports_string_literal_concatenation,
        supports_string_literal_concatenation_with_newline,
        supports_subquery_as_function_arg,
        supports_table_hints,
        supports_table_sample_before_alias,
        supports_table_versioning,
        supports_top_before_distinct,
        supports_trailing_commas,
        supports_triple_quoted_string,
        supports_try_convert,
        supports_unicode_string_literal,
        supports_update_order_by,
        supports_user_host_grantee,
        supports_values_as_table_factor,
        supports_window_clause_named_window_reference,
        supports_window_function_null_treatment_arg,
        supports_with_fill,
        supports_within_after_array_aggregation,
        supports_xml_expressions,
    );
}

#[cfg(test)]
mod tests {
    use sqlparser::ast::Statement;
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn parsed(grammar: &dyn Dialect, plain: &dyn Dialect, sql: &str) -> Option<Vec<Statement>> {
        let tokens = Tokenizer::new(plain, sql).tokenize_with_location().ok()?;
        Parser::new(grammar).with_tokens_with_locations(tokens).parse_statements().ok()
    }

    /// The statements of a corpus, each with its comment.
    fn entries(corpus: &str) -> impl Iterator<Item = &str> {
        corpus.split("\n\n").map(str::trim).filter(|entry| !entry.is_empty())
    }

    #[track_caller]
    fn check(dialect: SqlDialect, corpus: &str, missing: usize) {
        let plain = dialect.parser_dialect();
        let mut only_ours = 0;
        for entry in entries(corpus) {
            let tokens = Tokenizer::new(plain, entry).tokenize_with_location().unwrap_or_default();
            let ours = parsed(&BoundedDialect::new(dialect, &tokens), plain, entry);
            match parsed(plain, plain, entry) {
                // The plain grammar reads `inet '…'` as a column and its alias.
                Some(theirs) if entry.contains(" ISNULL") || entry.contains("bpchar 'q'") => drop(theirs),
                Some(theirs) => assert_eq!(ours.as_ref(), Some(&theirs), "{entry}"),
                None => only_ours += usize::from(ours.is_some()),
            }
        }
        // These need the extensions; an incomplete forwarding would parse less or differently.
        assert!(only_ours >= missing, "{only_ours}");
    }

    #[test]
    fn parses_everything_the_plain_grammar_parses() {
        check(SqlDialect::Postgres, include_str!("../tests/corpus/postgres/honest.sql"), 3);
        check(SqlDialect::Postgres, include_str!("../tests/corpus/postgres/attempts.sql"), 0);
        check(SqlDialect::Sqlite, include_str!("../tests/corpus/sqlite/honest.sql"), 3);
        check(SqlDialect::Sqlite, include_str!("../tests/corpus/sqlite/attempts.sql"), 0);
        let generic = "SELECT a, [1], {'b': 1}, x::int FROM t QUALIFY 1 = 1\n\nFROM t SELECT * EXCEPT (a)\n\n\
                       SELECT * FROM t |> WHERE a > 1\n\nSELECT f(a := 1), struct(1 AS a) FROM t LIMIT 1, 2";
        check(SqlDialect::DataFusion, generic, 0);
    }
}
