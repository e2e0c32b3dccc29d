//! Abbreviations of zones that have one usual meaning.

/// Hours and minutes east of UTC. Abbreviations with several usual meanings, such as IST, are missing: a log that
/// contains one needs a declared zone.
const ABBREVIATIONS: &[(&str, i32, i32)] = &[
    ("UTC", 0, 0),
    ("GMT", 0, 0),
    ("UT", 0, 0),
    ("Z", 0, 0),
    ("WET", 0, 0),
    ("WEST", 1, 0),
    ("BST", 1, 0),
    ("CET", 1, 0),
    ("MET", 1, 0),
    ("CEST", 2, 0),
    ("MEST", 2, 0),
    ("EET", 2, 0),
    ("SAST", 2, 0),
    ("EEST", 3, 0),
    ("MSK", 3, 0),
    ("EAT", 3, 0),
    ("PKT", 5, 0),
    ("WIB", 7, 0),
    ("HKT", 8, 0),
    ("SGT", 8, 0),
    ("AWST", 8, 0),
    ("JST", 9, 0),
    ("KST", 9, 0),
    ("ACST", 9, 30),
    ("AEST", 10, 0),
    ("ACDT", 10, 30),
    ("AEDT", 11, 0),
    ("NZST", 12, 0),
    ("NZDT", 13, 0),
    ("NST", -3, -30),
    ("NDT", -2, -30),
    ("ADT", -3, 0),
    ("EDT", -4, 0),
    ("EST", -5, 0),
    ("CDT", -5, 0),
    ("CST", -6, 0),
    ("MDT", -6, 0),
    ("MST", -7, 0),
    ("PDT", -7, 0),
    ("PST", -8, 0),
    ("AKDT", -8, 0),
    ("AKST", -9, 0),
    ("HST", -10, 0),
];

/// The seconds east of UTC of an abbreviation in capital letters.
pub(crate) fn offset_seconds(name: &str) -> Option<i32> {
    let (_, hours, minutes) = ABBREVIATIONS.iter().find(|(known, _, _)| *known == name)?;
    Some(hours * 3_600 + minutes * 60)
}
