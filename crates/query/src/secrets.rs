//! Secrets in answers: found by rule, and masked before rows are encoded, so that all formats are treated alike.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, LargeStringBuilder, RecordBatch, StringBuilder, StringLikeArrayBuilder,
    StringViewBuilder, make_array,
};
use arrow::datatypes::DataType;
use futures::StreamExt;
use futures::stream::BoxStream;
use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use sha2::{Digest, Sha256};
use tidegate_core::{Error, RedactedText, Redactor};
use tidegate_runtime::Job;

const RULES_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 64;
const PATTERN_BYTES_MAX: usize = 1_000;
/// Maximum memory of one compiled pattern, in bytes, and of its cache during use.
const COMPILED_BYTES_MAX: usize = 1 << 20;
const CACHE_BYTES_MAX: usize = 4 << 20;

/// The built-in rules, by name.
pub const BUILT_IN_RULES: [(&str, &str); 6] = [
    ("aws_access_key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"),
    (
        "private_key",
        r"-----BEGIN [A-Z ]{0,32}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s\\,:.\-]*?-----END [A-Z ]{0,32}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\,:.\-]*)",
    ),
    ("github_token", r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}"),
    ("jwt", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    (
        "api_key",
        r"\b(?:sk-[A-Za-z0-9_-]{20,}|[srp]k_(?:live|test)_[A-Za-z0-9]{16,}|AIza[A-Za-z0-9_-]{35}|xox[abeoprs]-[A-Za-z0-9-]{10,}|glpat-[A-Za-z0-9_-]{20,})",
    ),
    ("tidegate_key", r"\btg_[A-Za-z0-9]{6,}_[A-Za-z0-9_-]{16,}"),
];

/// A rule: a name and a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRule {
    /// The name, which replaces the secret in the answer.
    pub name: String,
    /// A regular expression.
    pub pattern: String,
}

impl SecretRule {
    /// The built-in rule of that name.
    pub fn built_in(name: &str) -> Option<Self> {
        let (name, pattern) = BUILT_IN_RULES.iter().find(|(known, _)| *known == name)?;
        Some(Self { name: (*name).to_owned(), pattern: (*pattern).to_owned() })
    }
}

/// An invalid rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SecretRuleError {
    /// The index of the rule, from 0; `None` if the error is about all rules.
    pub rule: Option<usize>,
    /// The error, and what would be valid.
    pub reason: String,
}

/// Compiled rules.
pub struct SecretRules {
    rules: Vec<(String, Regex)>,
    /// Finds all matching rules in one pass.
    rule_set: RegexSet,
    refuses: bool,
    rules_id: String,
}

impl SecretRules {
    /// Compiles `rules`; `refuses` says whether an answer with a secret is rejected instead of masked.
    ///
    /// # Errors
    /// The first invalid rule.
    pub fn new(rules: &[SecretRule], refuses: bool) -> Result<Self, SecretRuleError> {
        if rules.len() > RULES_MAX {
            return Err(SecretRuleError { rule: None, reason: format!("there are more than {RULES_MAX} rules") });
        }
        let compile = |(index, rule): (usize, &SecretRule)| match compile_rule(rule) {
            Ok(regex) => Ok((rule.name.clone(), regex)),
            Err(reason) => Err(SecretRuleError { rule: Some(index), reason }),
        };
        let compiled = rules.iter().enumerate().map(compile).collect::<Result<Vec<_>, _>>()?;
        let rule_set = RegexSetBuilder::new(rules.iter().map(|rule| &rule.pattern))
            .size_limit(RULES_MAX * COMPILED_BYTES_MAX)
            .dfa_size_limit(CACHE_BYTES_MAX)
            .build()
            .map_err(|error| SecretRuleError { rule: None, reason: error.to_string() })?;
        let hash = Sha256::digest(format!("{rules:?} {refuses}"));
        let rules_id = hex::encode(&hash[..8]);
        Ok(Self { rules: compiled, rule_set, refuses, rules_id })
    }
}

fn compile_rule(rule: &SecretRule) -> Result<Regex, String> {
    let is_word = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if rule.name.is_empty() || rule.name.len() > NAME_BYTES_MAX || !is_word(&rule.name) {
        return Err(format!("a rule's name is 1 to {NAME_BYTES_MAX} of letters, digits, _ and -"));
    }
    if rule.pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!("the pattern is longer than {PATTERN_BYTES_MAX} bytes"));
    }
    let regex = RegexBuilder::new(&rule.pattern)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(CACHE_BYTES_MAX)
        .build()
        .map_err(|error| error.to_string())?;
    if regex.is_match("") {
        return Err("the pattern matches the empty string, and so every text".to_owned());
    }
    Ok(regex)
}

impl Redactor for SecretRules {
    fn redact(&self, text: &str) -> Option<RedactedText> {
        // Most texts contain no secret.
        if !self.rule_set.is_match(text) {
            return None;
        }
        let (mut masked, mut found, mut first) = (Cow::Borrowed(text), 0, None);
        for index in &self.rule_set.matches(text) {
            let (name, regex) = &self.rules[index];
            let count = regex.find_iter(&masked).count() as u64;
            if count > 0 {
                first.get_or_insert(name);
                found += count;
                masked =
                    Cow::Owned(regex.replace_all(&masked, regex::NoExpand(&format!("[secret: {name}]"))).into_owned());
            }
        }
        first.map(|rule| RedactedText { text: masked.into_owned(), secret_count: found, rule: rule.clone() })
    }

    fn rejects_secrets(&self) -> bool {
        self.refuses
    }

    fn rules_id(&self) -> &str {
        &self.rules_id
    }
}

impl fmt::Debug for SecretRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.rules.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("SecretRules").field("rules", &names).field("refuses", &self.refuses).finish()
    }
}

type RecordBatchStream = BoxStream<'static, Result<RecordBatch, Error>>;

/// Masks each secret in the texts of `batches`, if `job` has a redactor.
pub(crate) fn redact_stream(batches: RecordBatchStream, job: &Arc<Job>) -> RecordBatchStream {
    if job.protection().redactor().is_none() {
        return batches;
    }
    let job = job.clone();
    batches.map(move |batch| batch.and_then(|batch| redact_batch(batch, &job))).boxed()
}

fn redact_batch(batch: RecordBatch, job: &Job) -> Result<RecordBatch, Error> {
    let mut columns: Option<Vec<ArrayRef>> = None;
    for (index, column) in batch.columns().iter().enumerate() {
        if let Some(column) = redact_array(column, job)? {
            columns.get_or_insert_with(|| batch.columns().to_vec())[index] = column;
        }
    }
    let Some(columns) = columns else { return Ok(batch) };
    RecordBatch::try_new(batch.schema(), columns).map_err(|error| Error::internal(format!("a redacted batch: {error}")))
}

/// Masks the secrets in `array`; `None` if it has none.
fn redact_array(array: &ArrayRef, job: &Job) -> Result<Option<ArrayRef>, Error> {
    Ok(match array.data_type() {
        DataType::Utf8 => redact_values(array.as_string::<i32>().iter(), job, StringBuilder::new())?,
        DataType::LargeUtf8 => redact_values(array.as_string::<i64>().iter(), job, LargeStringBuilder::new())?,
        DataType::Utf8View => redact_values(array.as_string_view().iter(), job, StringViewBuilder::new())?,
        other if may_contain_text(other) => redact_children(array, job)?,
        _ => None,
    })
}

fn may_contain_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _)
        | DataType::RunEndEncoded(_, item) => may_contain_text(item.data_type()),
        DataType::Struct(members) => members.iter().any(|member| may_contain_text(member.data_type())),
        DataType::Union(members, _) => members.iter().any(|(_, member)| may_contain_text(member.data_type())),
        DataType::Dictionary(_, values) => may_contain_text(values),
        _ => false,
    }
}

/// The masked values, if `values` contain a secret.
fn redact_values<'a>(
    values: impl Iterator<Item = Option<&'a str>> + Clone,
    job: &Job,
    mut masked: impl StringLikeArrayBuilder,
) -> Result<Option<ArrayRef>, Error> {
    let Some(redactor) = job.protection().redactor() else { return Ok(None) };
    if !values.clone().flatten().any(|text| redactor.redact(text).is_some()) {
        return Ok(None);
    }
    for value in values {
        match value {
            Some(text) => masked.append_value(&job.protection().redact_text(text)?),
            None => masked.append_null(),
        }
    }
    Ok(Some(masked.finish()))
}

/// Masks the texts within lists, structs, dictionaries and the like.
fn redact_children(array: &ArrayRef, job: &Job) -> Result<Option<ArrayRef>, Error> {
    let data = array.to_data();
    let mut children: Option<Vec<ArrayData>> = None;
    for (index, child) in data.child_data().iter().enumerate() {
        if let Some(child) = redact_array(&make_array(child.clone()), job)? {
            children.get_or_insert_with(|| data.child_data().to_vec())[index] = child.to_data();
        }
    }
    let Some(children) = children else { return Ok(None) };
    let data = data.into_builder().child_data(children).build();
    let data = data.map_err(|error| Error::internal(format!("a redacted array: {error}")))?;
    Ok(Some(make_array(data)))
}
