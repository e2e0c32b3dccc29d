//! Random rows of a log, and questions about them with answers by brute force.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The columns with facets.
pub(crate) const FACETS: [&str; 4] = ["message", "level", "code", "flag"];
const WORDS: [&str; 8] = ["kiosk", "SS", "50%", "a_b", "é", "time*out", "\\", "-"];

/// One entry. The time is in microseconds from the start of the test's day.
#[derive(Debug, Clone)]
pub(crate) struct LogRow {
    pub(crate) time: Option<i64>,
    pub(crate) message: Option<String>,
    pub(crate) level: Option<String>,
    pub(crate) code: Option<i64>,
    pub(crate) flag: Option<bool>,
}

/// The arguments of a search, as far as they are random.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) word: Option<(usize, bool)>,
    pub(crate) is_case_sensitive: bool,
    pub(crate) levels: Option<Vec<&'static str>>,
    pub(crate) codes: Option<Vec<i64>>,
    /// From and to, in seconds from the start of the day.
    pub(crate) range: (Option<i64>, Option<i64>),
    pub(crate) codes_from: Option<i64>,
    pub(crate) facets: Vec<bool>,
    pub(crate) series: Option<Option<usize>>,
    pub(crate) bars: usize,
    pub(crate) limit: usize,
    pub(crate) is_forward: bool,
}

/// 2026-03-01T12:00:00Z in seconds.
pub(crate) const DAY_START: i64 = 1_772_366_400;

pub(crate) fn rows(max: usize) -> impl Strategy<Value = Vec<LogRow>> {
    let message = prop_oneof![
        4 => prop::sample::select(vec![
            "kiosk opened", "KIOSK closed", "\u{212a}iosk", "straße 5", "STRASSE 5", "50% of a_b", "500 of aXb", "é É",
            "time is out", "timeout", "back\\slash", "-", "", "*", "[x]?",
        ]).prop_map(str::to_owned),
        1 => "[a-cK\u{212a}ſs%_ -]{0,5}",
    ];
    let level = prop::sample::select(vec!["info", "INFO", "warn", "-", "", "error "]).prop_map(str::to_owned);
    // Few times, so that many entries have the same.
    let time = prop_oneof![3 => (0i64..6).prop_map(|second| second * 1_000_000), 1 => 0i64..8_000_000];
    let row = (
        prop::option::weighted(0.95, time),
        prop::option::weighted(0.9, message),
        prop::option::weighted(0.9, level),
        prop::option::weighted(0.8, -2i64..3),
        prop::option::weighted(0.8, any::<bool>()),
    );
    let row = row.prop_map(|(time, message, level, code, flag)| LogRow { time, message, level, code, flag });
    prop::collection::vec(row, 0..max)
}

pub(crate) fn questions() -> impl Strategy<Value = Question> {
    let levels = prop::collection::vec(prop::sample::select(vec!["info", "INFO", "-", "", "error ", "none"]), 1..3);
    let filters = (
        prop::option::weighted(0.4, (0..WORDS.len(), any::<bool>())),
        any::<bool>(),
        prop::option::weighted(0.4, levels),
        prop::option::weighted(0.3, prop::collection::vec(-2i64..4, 1..3)),
        (prop::option::of(0i64..4), prop::option::of(4i64..9)),
        prop::option::weighted(0.2, -1i64..2),
    );
    let outputs = (
        prop::collection::vec(any::<bool>(), FACETS.len()),
        prop::option::of(prop::option::of(0..FACETS.len())),
        1usize..40,
        0usize..12,
        any::<bool>(),
    );
    (filters, outputs).prop_map(|(filters, (facets, series, bars, limit, is_forward))| {
        let (word, is_case_sensitive, levels, codes, range, codes_from) = filters;
        Question { word, is_case_sensitive, levels, codes, range, codes_from, facets, series, bars, limit, is_forward }
    })
}

impl Question {
    pub(crate) fn arguments(&self) -> Map<String, Value> {
        let mut arguments = Map::new();
        let mut set = |name: &str, value: Value| arguments.insert(name.to_owned(), value);
        if let Some((word, is_negated)) = self.word {
            // A wildcard is one outside of quotes only, where a backslash is none.
            let text = WORDS[word];
            let term = if text.contains(['*', '\\']) { text.to_owned() } else { format!("\"{text}\"") };
            set("query", json!(if is_negated { format!("!{term}") } else { term }));
            set("case_sensitive", json!(self.is_case_sensitive));
        }
        let mut selections = Map::new();
        if let Some(levels) = &self.levels {
            selections.insert("level".to_owned(), json!(levels));
        }
        if let Some(codes) = &self.codes {
            selections.insert("code".to_owned(), json!(codes.iter().map(ToString::to_string).collect::<Vec<_>>()));
        }
        set("selections", Value::Object(selections));
        if let Some(first) = self.range.0 {
            set("after", json!(DAY_START + first));
        }
        if let Some(last) = self.range.1 {
            set("before", json!(DAY_START + last));
        }
        if let Some(code) = self.codes_from {
            set("conditions", json!({"column": "code", "op": ">=", "value": code}));
        }
        let facets: Vec<&str> =
            FACETS.iter().zip(&self.facets).filter(|(_, is_chosen)| **is_chosen).map(|(name, _)| *name).collect();
        set("facets", json!(facets));
        if let Some(series) = self.series {
            let field = series.map(|index| FACETS[index]);
            let histogram = match field {
                Some(field) => json!({"field": field, "bars": self.bars}),
                None => json!({"bars": self.bars}),
            };
            set("histogram", histogram);
        }
        set("limit", json!(self.limit));
        set("direction", json!(if self.is_forward { "forward" } else { "backward" }));
        arguments
    }

    fn has_word(&self, row: &LogRow) -> bool {
        let Some((word, is_negated)) = self.word else { return true };
        let fold = |text: &str| -> String {
            if self.is_case_sensitive {
                return text.to_owned();
            }
            text.chars()
                .map(|character| match character {
                    'ı' => "ı".to_owned(),
                    other => other.to_uppercase().flat_map(char::to_lowercase).collect(),
                })
                .collect()
        };
        let found = row.message.as_deref().filter(|message| *message != "-").is_some_and(|message| {
            let text = fold(message);
            let mut rest = text.as_str();
            WORDS[word].split('*').all(|part| {
                let part = fold(part);
                rest.find(&part).is_some_and(|start| {
                    rest = &rest[start + part.len()..];
                    true
                })
            })
        });
        found != is_negated
    }

    /// Whether a row matches, without the selection of one field.
    fn matches(&self, row: &LogRow, excepted: Option<&str>) -> bool {
        let is_in_time = match (self.range, row.time) {
            ((None, None), _) => true,
            (_, None) => false,
            ((first, last), Some(time)) => {
                first.is_none_or(|first| time >= first * 1_000_000) && last.is_none_or(|last| time < last * 1_000_000)
            }
        };
        let level = row.level.as_deref().unwrap_or("-");
        let has_level = excepted == Some("level") || self.levels.as_ref().is_none_or(|levels| levels.contains(&level));
        let has_code = excepted == Some("code")
            || self.codes.as_ref().is_none_or(|codes| row.code.is_some_and(|code| codes.contains(&code)));
        let fits_condition = self.codes_from.is_none_or(|least| row.code.is_some_and(|code| code >= least));
        is_in_time && has_level && has_code && fits_condition && self.has_word(row)
    }

    /// The number of rows that match.
    pub(crate) fn matched(&self, rows: &[LogRow]) -> usize {
        rows.iter().filter(|row| self.matches(row, None)).count()
    }

    /// The values of a field with their rows, most frequent first.
    pub(crate) fn facet(
        &self,
        rows: &[LogRow],
        field: &str,
        display_flag: fn(bool) -> &'static str,
    ) -> Vec<(String, u64)> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for row in rows.iter().filter(|row| self.matches(row, Some(field))) {
            let value = match field {
                "message" => row.message.clone(),
                "level" => row.level.clone(),
                "code" => row.code.map(|code| code.to_string()),
                _ => row.flag.map(|flag| display_flag(flag).to_owned()),
            };
            *counts.entry(value.unwrap_or_else(|| "-".to_owned())).or_default() += 1;
        }
        let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
        counts.sort_by(|(value, rows), (other, other_rows)| other_rows.cmp(rows).then_with(|| value.cmp(other)));
        counts
    }
}
