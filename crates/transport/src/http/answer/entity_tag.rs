//! Entity tags, and the lists of them in request headers.
//!
//! [RFC 9110, 8.8.3](https://www.rfc-editor.org/rfc/rfc9110#name-etag)

use axum::http::header::GetAll;
use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The entity tag of a representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct EntityTag {
    /// The text between the quotes.
    opaque: String,
    /// Whether equal tags mean equivalent content instead of equal bytes.
    is_weak: bool,
}

impl EntityTag {
    pub(in crate::http) fn strong(opaque: &str) -> Self {
        Self { opaque: opaque.to_owned(), is_weak: false }
    }

    pub(in crate::http) fn weak(opaque: &str) -> Self {
        Self { opaque: opaque.to_owned(), is_weak: true }
    }

    /// The value of `ETag`; `None` if it contains characters that a header may not have.
    pub(in crate::http) fn to_header_value(&self) -> Option<HeaderValue> {
        let weakness = if self.is_weak { "W/" } else { "" };
        HeaderValue::from_str(&format!("{weakness}\"{}\"", self.opaque)).ok()
    }

    /// Whether both tags identify the same bytes.
    fn strongly_equals(&self, other: &Self) -> bool {
        !self.is_weak && !other.is_weak && self.opaque == other.opaque
    }

    /// Whether both tags identify equivalent content.
    fn weakly_equals(&self, other: &Self) -> bool {
        self.opaque == other.opaque
    }
}

/// The entity tags of a request header.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::http) enum EntityTagList {
    /// `*`.
    Any,
    Tags(Vec<EntityTag>),
}

impl EntityTagList {
    /// The tags of the header `name`; `None` if the header is absent.
    pub(in crate::http) fn from_headers(headers: &HeaderMap, name: HeaderName) -> Option<Self> {
        let values = headers.get_all(name);
        values.iter().next()?;
        Some(Self::parse(&values))
    }

    fn parse(values: &GetAll<'_, HeaderValue>) -> Self {
        let texts = || values.iter().map(|value| value.to_str().unwrap_or_default());
        if texts().any(|text| text.trim() == "*") {
            return Self::Any;
        }
        Self::Tags(texts().flat_map(parse_tags).collect())
    }

    /// Whether there is exactly one tag.
    pub(in crate::http) fn is_single(&self) -> bool {
        matches!(self, Self::Tags(tags) if tags.len() == 1)
    }

    /// Whether `tag` is in the list by strong comparison. Without a tag, only `*` matches.
    pub(in crate::http) fn matches_strongly(&self, tag: Option<&EntityTag>) -> bool {
        match self {
            Self::Any => true,
            Self::Tags(tags) => tag.is_some_and(|tag| tags.iter().any(|known| known.strongly_equals(tag))),
        }
    }

    /// Whether `tag` is in the list by weak comparison.
    pub(in crate::http) fn matches_weakly(&self, tag: Option<&EntityTag>) -> bool {
        match self {
            Self::Any => true,
            Self::Tags(tags) => tag.is_some_and(|tag| tags.iter().any(|known| known.weakly_equals(tag))),
        }
    }
}

/// Parses a list of tags. An invalid tag ends it: tags may contain commas, so the rest cannot be parsed.
fn parse_tags(list: &str) -> Vec<EntityTag> {
    let mut tags = Vec::new();
    let mut rest = list;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (is_weak, quoted) = rest.strip_prefix("W/").map_or((false, rest), |quoted| (true, quoted));
        let Some((opaque, after)) = quoted.strip_prefix('"').and_then(|opened| opened.split_once('"')) else {
            return tags;
        };
        tags.push(EntityTag { opaque: opaque.to_owned(), is_weak });
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(tag: &EntityTag) -> String {
        tag.to_header_value().unwrap().to_str().unwrap().to_owned()
    }

    proptest! {
        #[test]
        fn round_trips_tag_lists(written in proptest::collection::vec(("[!#-~]{0,8}", any::<bool>()), 0..5)) {
            let written: Vec<EntityTag> =
                written.into_iter().map(|(opaque, is_weak)| EntityTag { opaque, is_weak }).collect();
            for between in [",", ", ", " ,, "] {
                let list: Vec<String> = written.iter().map(text).collect();
                prop_assert_eq!(&parse_tags(&list.join(between)), &written);
            }
        }
    }

    #[test]
    fn compares_strong_and_weak_tags() {
        let (strong, weak) = (EntityTag::strong("a"), EntityTag::weak("a"));
        let named = |list: &str| EntityTagList::Tags(parse_tags(list));
        let mut table = String::new();
        for list in ["\"a\"", "W/\"a\"", "\"b\", \"a\"", "\"b\"", "a", "", "\"a"] {
            let named = named(list);
            let says = [
                named.matches_strongly(Some(&strong)),
                named.matches_strongly(Some(&weak)),
                named.matches_weakly(Some(&strong)),
                named.matches_weakly(Some(&weak)),
                named.matches_weakly(None),
            ];
            table.push_str(&format!("{list:12} {says:?}\n"));
        }
        insta::assert_snapshot!(table, @r#"
        "a"          [true, false, true, true, false]
        W/"a"        [false, false, true, true, false]
        "b", "a"     [true, false, true, true, false]
        "b"          [false, false, false, false, false]
        a            [false, false, false, false, false]
                     [false, false, false, false, false]
        "a           [false, false, false, false, false]
        "#);
        assert!(EntityTagList::Any.matches_strongly(None) && EntityTagList::Any.matches_weakly(None));
    }
}
