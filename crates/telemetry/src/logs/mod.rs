//! The core of the log tools: times, full-text queries, selections, and one scan that computes facets, a histogram, a
//! page of entries and patterns of messages over Arrow record batches.
//!
//! [`LogScan`] is the entry point. Databases that compute facets themselves use the same parts: a [`TextQuery`] becomes a
//! [`LogCondition`], from which they make SQL; [`CountedRows`] takes their counts, and [`BarWidth`] makes their bars the
//! same.

mod facet;
mod histogram;
mod page;
mod patterns;
mod request;
mod scan;
mod search;
pub(crate) mod time;
pub(crate) mod value;

pub use self::facet::{
    FACET_BYTES_MAX, FACET_DISTINCT_MAX, FACET_VALUES_MAX, FACETS_BYTES_MAX, FacetValue, FieldFacet, NUMBER_RANGES_MAX,
    NumberRange, NumberRanges, RareValues,
};
pub use self::histogram::{
    BARS_MAX, BarWidth, HISTOGRAM_SERIES_MAX, HistogramBar, HistogramSeries, LogHistogram, SeriesName,
};
pub use self::page::{
    CURSOR_CHARACTERS_MAX, CursorError, EntryKey, EntryPositions, LISTED_ROWS_MAX, LogCursor, LogDirection, LogEntry,
    LogPage, NO_TIME, PAGE_BYTES_MAX, SourceId, TieBreak,
};
pub use self::patterns::{LogPattern, LogPatterns, PATTERNS_MAX, PatternChange, compare_patterns};
pub use self::request::{
    ContextRequest, FACET_FIELDS_MAX, FacetRequest, FieldSelections, HistogramRequest, LogRequestError, LogScanRequest,
    PAGE_ENTRIES_MAX, PageRequest, SELECTED_FIELDS_MAX, SELECTED_VALUES_MAX, SelectedValues, SelectionError,
};
pub use self::scan::{
    CountedBar, CountedRows, CountedValues, FacetAnswer, LogBatch, LogScan, LogScanAnswer, LogScanError,
};
pub use self::search::{
    ConditionMatcher, LogCondition, QUERY_BYTES_MAX, QUERY_DEPTH_MAX, QUERY_TERMS_MAX, QueryNode, QueryTerm,
    SearchColumns, TextPattern, TextQuery, TextQueryError,
};
pub use self::time::{
    NANOS_PER_SECOND, TimeInput, TimeParseError, TimeRange, TimeRangeError, format_time, parse_time, time_column,
};
pub use self::value::{CodeScale, MISSING, borrowed_text, display_value, write_display_value};
