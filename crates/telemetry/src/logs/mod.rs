//! The core of the log tools: times, full-text queries, selections, and one scan that computes facets, a histogram, a page
//! of entries and patterns of messages over Arrow record batches.
//!
//! [`LogScan`] is the entry point. Databases that compute facets themselves use the same parts: a [`TextQuery`] becomes a
//! [`LogCondition`], from which they make SQL; [`CountedRows`] takes their counts, and [`BarWidth`] makes their bars the
//! same.

mod bar_width;
mod code_scale;
mod counted;
pub(crate) mod encoded_column;
mod facet;
mod histogram;
mod number_ranges;
mod page;
mod patterns;
mod request;
mod scan;
mod search;
mod selection;
mod time;
pub(crate) mod time_column;
mod value;

pub use bar_width::{BARS_MAX, BarWidth};
pub use code_scale::CodeScale;
pub use counted::{CountedBar, CountedRows, CountedValues};
pub use facet::{
    FACET_BYTES_MAX, FACET_DISTINCT_MAX, FACET_VALUES_MAX, FACETS_BYTES_MAX, FacetValue, FieldFacet, RareValues,
};
pub use histogram::{HISTOGRAM_SERIES_MAX, HistogramBar, HistogramSeries, LogHistogram, SeriesName};
pub use number_ranges::{NUMBER_RANGES_MAX, NumberRange, NumberRanges};
pub use page::{
    CURSOR_CHARACTERS_MAX, CursorError, EntryKey, EntryPositions, LISTED_ROWS_MAX, LogCursor, LogDirection, LogEntry,
    LogPage, NO_TIME, PAGE_BYTES_MAX, SourceId, TieBreak,
};
pub use patterns::{LogPattern, LogPatterns, PATTERNS_MAX, PatternChange, compare_patterns};
pub use request::{
    ContextRequest, FACET_FIELDS_MAX, FacetRequest, HistogramRequest, LogRequestError, LogScanRequest,
    PAGE_ENTRIES_MAX, PageRequest,
};
pub use scan::{FacetAnswer, LogBatch, LogScan, LogScanAnswer, LogScanError};
pub use search::{
    ConditionMatcher, LogCondition, QUERY_BYTES_MAX, QUERY_DEPTH_MAX, QUERY_TERMS_MAX, QueryNode, QueryTerm,
    SearchColumns, TextPattern, TextQuery, TextQueryError,
};
pub use selection::{FieldSelections, SELECTED_FIELDS_MAX, SELECTED_VALUES_MAX, SelectedValues, SelectionError};
pub use time::{NANOS_PER_SECOND, TimeInput, TimeParseError, TimeRange, TimeRangeError, format_time, parse_time};
pub use time_column::time_column;
pub use value::{MISSING, borrowed_text, display_value, write_display_value};
