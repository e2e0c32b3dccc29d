//! SQL with positional parameters and template parameters, as SQL with named parameters.

use serde_json::{Map, Value, json};
use tidegate_sql::{SqlDialect, SqlTemplate, name_placeholders};

use super::parameters::{Parameters, is_regex_character};

/// Words that are no names of columns or tables.
const KEYWORDS: [&str; 4] = ["ASC", "DESC", "AND", "OR"];

/// A template action in a statement: `{{.name}}`.
struct Action<'a> {
    start: usize,
    end: usize,
    name: &'a str,
    /// The quotation mark around it, which is part of `start..end`.
    quote: Option<char>,
}

/// The statement with names instead of placeholders. Template parameters become identifiers out of their permitted
/// values, or bound values.
///
/// # Errors
/// Why the tool must be left out.
pub(super) fn name_parameters(
    statement: &str,
    dialect: SqlDialect,
    parameters: &Parameters,
    templates: &mut Parameters,
) -> Result<String, String> {
    let names: Vec<String> = parameters.iter().map(|parameter| parameter.name.clone()).collect();
    let statement = dedent(statement);
    let named = name_placeholders(&statement, dialect, &names).map_err(|error| error.to_string())?;
    let (sql, unnamed) = named;
    if let Some(number) = unnamed.first() {
        return Err(format!("the placeholder with the number {number} has no parameter"));
    }
    let actions = find_actions(&sql)?;
    let marked = replace_actions(&sql, &actions, |index| format!(":action_{index}"));
    let parsed = SqlTemplate::parse(&marked, dialect).map_err(|error| error.to_string())?;
    let mut written = Vec::new();
    for (index, action) in actions.iter().enumerate() {
        if !parsed.names().contains(format!("action_{index}").as_str()) {
            return Err(format!("{{{{.{}}}}} stands inside a text or comment of the SQL", action.name));
        }
        written.push(format!(":{}", convert_template(action, dialect, templates)?));
    }
    Ok(replace_actions(&sql, &actions, |index| written[index].clone()))
}

fn find_actions(sql: &str) -> Result<Vec<Action<'_>>, String> {
    let mut actions = Vec::new();
    let mut from = 0;
    while let Some(open) = sql[from..].find("{{").map(|at| from + at) {
        let close = sql[open..].find("}}").map(|at| open + at).ok_or("{{ is not closed in the SQL")?;
        let inside = sql[open + 2..close].trim();
        let name = inside.strip_prefix('.').filter(|name| !name.is_empty() && !name.contains([' ', '.', '|', '(']));
        let name = name.ok_or_else(|| {
            format!(
                "the template action {{{{{inside}}}}} has no equivalent; write the SQL of each case as its own tool"
            )
        })?;
        let (mut start, mut end) = (open, close + 2);
        let quote = sql[..start].chars().next_back().filter(|quote| "'\"`".contains(*quote));
        let quote = quote.filter(|quote| sql[end..].starts_with(*quote));
        if quote.is_some() {
            (start, end) = (start - 1, end + 1);
        }
        actions.push(Action { start, end, name, quote });
        from = end;
    }
    Ok(actions)
}

fn replace_actions(sql: &str, actions: &[Action<'_>], written: impl Fn(usize) -> String) -> String {
    let (mut replaced, mut from) = (String::new(), 0);
    for (index, action) in actions.iter().enumerate() {
        replaced.push_str(&sql[from..action.start]);
        replaced.push_str(&written(index));
        from = action.end;
    }
    replaced.push_str(&sql[from..]);
    replaced
}

/// Declares the parameter of `action`, and returns its name.
fn convert_template(action: &Action<'_>, dialect: SqlDialect, templates: &mut Parameters) -> Result<String, String> {
    let name = action.name;
    let template =
        templates.find_mut(name).ok_or_else(|| format!("{{{{.{name}}}}} is not declared under templateParameters"))?;
    let input = template.input.as_mut().ok_or_else(|| format!("the template parameter {name} is no plain text"))?;
    if action.quote == Some('\'') {
        if input.get("type") == Some(&json!("identifier")) {
            return Err(format!("{{{{.{name}}}}} stands for a name and for a text"));
        }
        return Ok(template.name.clone());
    }
    let has_case = action.quote.is_some() || dialect.ignores_case();
    to_identifier(input, has_case).map_err(|reason| format!("the template parameter {name} {reason}"))?;
    Ok(template.name.clone())
}

/// Turns a text out of permitted values into an identifier. Without quotation marks, PostgreSQL folds names to lower
/// case.
fn to_identifier(input: &mut Map<String, Value>, has_case: bool) -> Result<(), String> {
    if input.get("type") == Some(&json!("identifier")) {
        return Ok(());
    }
    let advice = "declare it by hand as {type: identifier, allow: [...]}";
    let Some(Value::Array(allowed)) = input.get("enum") else {
        return Err(format!("has no allowedValues, so callers could write any SQL; {advice}"));
    };
    let is_name = |text: &str| {
        !text.is_empty()
            && !text.contains(|character: char| is_regex_character(character) || "'\" `,;".contains(character))
            && !text.starts_with(|character: char| character.is_ascii_digit())
            && !KEYWORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
    };
    let fold = |text: &str| if has_case { text.to_owned() } else { text.to_lowercase() };
    let names: Option<Vec<String>> =
        allowed.iter().map(|value| value.as_str().filter(|text| is_name(text)).map(fold)).collect();
    let names = names.ok_or_else(|| format!("permits values that are no names of columns or tables; {advice}"))?;
    let default = input.get("default").and_then(Value::as_str).map(fold);
    if let Some(default) = default {
        input.insert("default".to_owned(), default.into());
    }
    input.shift_remove("enum");
    input.insert("type".to_owned(), "identifier".into());
    input.insert("allow".to_owned(), json!(names));
    Ok(())
}

/// `text` without the indentation that all its lines share, and without blank lines at both ends.
fn dedent(text: &str) -> String {
    let lines = || text.lines().map(str::trim_end);
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let shared = lines().filter(|line| !line.is_empty()).map(indentation).min().unwrap_or(0);
    let lines: Vec<&str> = lines().map(|line| line.get(shared..).unwrap_or_default()).collect();
    lines.join("\n").trim().to_owned()
}
