//! Filters of topics.

const SEPARATOR: char = '/';
const SHARED_PREFIX: &str = "$share/";
/// The longest text of MQTT, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 65_535;

/// Why `filter` is no filter of topics.
pub(crate) fn filter_problem(filter: &str) -> Option<String> {
    let Some(own) = own_filter(filter) else {
        return Some("a shared subscription is written as $share/group/filter".to_owned());
    };
    if own.is_empty() {
        return Some("is empty".to_owned());
    }
    if filter.len() > TEXT_BYTES_MAX {
        return Some(format!("is longer than {TEXT_BYTES_MAX} bytes"));
    }
    if filter.contains('\0') {
        return Some("has a character U+0000".to_owned());
    }
    let levels: Vec<&str> = own.split(SEPARATOR).collect();
    let last = levels.len() - 1;
    for (index, level) in levels.into_iter().enumerate() {
        if level.contains('+') && level != "+" {
            return Some(format!("level {index} is {level:?}; + stands alone between slashes"));
        }
        if level.contains('#') && (level != "#" || index != last) {
            return Some(format!("level {index} is {level:?}; # stands alone at the end"));
        }
    }
    None
}

/// Whether messages of `topic` are those of `filter`.
pub(crate) fn matches(filter: &str, topic: &str) -> bool {
    let Some(filter) = own_filter(filter) else { return false };
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut levels = topic.split(SEPARATOR);
    for pattern in filter.split(SEPARATOR) {
        match (pattern, levels.next()) {
            ("#", _) => return true,
            ("+", Some(_)) => {}
            (pattern, Some(level)) if pattern == level => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

/// The level of a topic, from 0.
pub(crate) fn level(topic: &str, level: usize) -> Option<&str> {
    topic.split(SEPARATOR).nth(level)
}

/// The filter without the group of a shared subscription.
fn own_filter(filter: &str) -> Option<&str> {
    let Some(shared) = filter.strip_prefix(SHARED_PREFIX) else { return Some(filter) };
    let (group, own) = shared.split_once(SEPARATOR)?;
    (!group.is_empty() && !group.contains(['+', '#'])).then_some(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_as_the_standard_says() {
        let cases = [
            ("plant/+/data", "plant/a/data", true),
            ("plant/+/data", "plant/a/b/data", false),
            ("plant/+/data", "plant//data", true),
            ("plant/#", "plant", true),
            ("plant/#", "plant/a/b", true),
            ("plant/#", "plants", false),
            ("#", "a/b", true),
            ("#", "$SYS/broker", false),
            ("+/broker", "$SYS/broker", false),
            ("$SYS/#", "$SYS/broker", true),
            ("plant/+", "plant/", true),
            ("plant/+", "plant", false),
            ("plant", "plant/a", false),
            ("$share/nodes/plant/+", "plant/a", true),
        ];
        for (filter, topic, expected) in cases {
            assert_eq!(matches(filter, topic), expected, "{filter} {topic}");
        }
    }

    #[test]
    fn filters_are_checked() {
        for filter in ["", "a+/b", "a/#/b", "a/b#", "$share/group", "$share//a", "a\0b"] {
            assert!(filter_problem(filter).is_some(), "{filter:?}");
        }
        for filter in ["#", "+", "a/+/b/#", "/", "$share/group/a/#"] {
            assert_eq!(filter_problem(filter), None, "{filter:?}");
        }
    }
}
