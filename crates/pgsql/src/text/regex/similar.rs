//! `SIMILAR TO`: SQL's patterns as regular expressions.

use datafusion::common::{Result, exec_err};

/// The regular expression that means what the pattern of `SIMILAR TO` means, anchored at both ends; with `separators`,
/// `escape-double-quote`, it has three parts of which the middle one is captured.
pub(in crate::text) fn similar_pattern(pattern: &str, escape: Option<&str>) -> Result<String> {
    let mut escape_characters = escape.unwrap_or("\\").chars();
    let escape = escape_characters.next();
    if escape_characters.next().is_some() {
        return exec_err!("invalid escape string. Escape string must be empty or one character.");
    }
    let mut result = String::from("^(?:");
    let mut is_escaped = false;
    let mut in_brackets = false;
    let mut separators = 0;
    for character in pattern.chars() {
        if is_escaped {
            if character == '"' && !in_brackets {
                match separators {
                    0 => result.push_str("){1,1}?("),
                    1 => result.push_str("){1,1}(?:"),
                    _ => {
                        return exec_err!(
                            "SQL regular expression may not contain more than two escape-double-quote separators"
                        );
                    }
                }
                separators += 1;
            } else {
                result.push('\\');
                result.push(character);
            }
            is_escaped = false;
            continue;
        }
        match character {
            _ if Some(character) == escape => is_escaped = true,
            _ if in_brackets => {
                if character == '\\' {
                    result.push('\\');
                }
                result.push(character);
                in_brackets = character != ']';
            }
            '[' => {
                result.push('[');
                in_brackets = true;
            }
            '%' => result.push_str(".*"),
            '_' => result.push('.'),
            '(' => result.push_str("(?:"),
            '\\' | '.' | '^' | '$' => {
                result.push('\\');
                result.push(character);
            }
            other => result.push(other),
        }
    }
    result.push_str(")$");
    Ok(result)
}
