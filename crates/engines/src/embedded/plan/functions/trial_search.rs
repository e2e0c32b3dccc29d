//! Functions that search for all matches of a pattern in a text.
//!
//! One search is linear in the length of the text, but there may be as many searches as the text has letters. The total
//! time cannot be predicted. So for long texts the search is run first, and stops after the steps of one evaluation.

use std::time::Instant;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::ScalarFunctionArgs;
use regex::Regex;

use super::FUNCTION_STEPS_MAX;
use super::argument_sizes::{row_count, text_sizes};
use super::pattern_cost;

/// The nanoseconds that a search for all matches takes, for texts that are long enough to matter. With `needs_flag_g`,
/// there is only one match without the flag `g`.
pub(super) fn measure_searches(
    args: &ScalarFunctionArgs,
    flags_position: usize,
    needs_flag_g: bool,
) -> Option<Vec<f64>> {
    let (lengths, rows) = (text_sizes(args, 0)?, row_count(args));
    let one_search = pattern_cost::regex_steps(args)?;
    let is_long = |row: usize| lengths.at(row) * lengths.at(row) > FUNCTION_STEPS_MAX;
    if one_search.iter().any(|steps| *steps > FUNCTION_STEPS_MAX) || !(0..rows).any(is_long) {
        return Some(one_search);
    }
    let column = |position: usize| cast(&args.args.get(position)?.to_array(rows).ok()?, &DataType::Utf8).ok();
    let (all_texts, patterns, flags) = (column(0)?, column(1)?, column(flags_position));
    let (all_texts, patterns) = (all_texts.as_string::<i32>(), patterns.as_string::<i32>());
    let steps = |row: usize| {
        let flags = flags.as_ref().map_or("", |flags| flags.as_string::<i32>().value(row));
        if !is_long(row) || (needs_flag_g && !flags.contains('g')) {
            return 0.0;
        }
        let flags = flags.replace('g', "");
        let pattern = patterns.value(row);
        let pattern = if flags.is_empty() { pattern.to_owned() } else { format!("(?{flags}){pattern}") };
        // The function itself refuses an invalid pattern.
        Regex::new(&pattern).map_or(0.0, |pattern| time_all_matches(&pattern, all_texts.value(row)))
    };
    let mut measured = Vec::with_capacity(rows);
    while measured.len() < rows && measured.last().is_none_or(|steps| *steps <= FUNCTION_STEPS_MAX) {
        measured.push(steps(measured.len()));
    }
    Some(measured)
}

fn time_all_matches(pattern: &Regex, text: &str) -> f64 {
    let start = Instant::now();
    let nanoseconds = || start.elapsed().as_nanos() as f64;
    let mut matches = pattern.find_iter(text);
    while matches.next().is_some() && nanoseconds() <= FUNCTION_STEPS_MAX {}
    nanoseconds()
}
