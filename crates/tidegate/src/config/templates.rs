//! The texts of tools and prompts as templates, read in the syntax in which they were written.
//!
//! In the deprecated syntax of http tools, `{name}` is a parameter, and `{{` and `}}` are braces. A tool is read in that syntax only if
//! all its texts are valid in it and use exactly the parameters of the tool. If that is also true of the current syntax,
//! and the meanings differ, the tool is rejected: no text changes its meaning silently.

use std::collections::BTreeSet;

use serde_json::Value;
use tidegate_tools::declared::{TextTemplate, escape_braces};

use super::document::Document;
use super::problem::ConfigProblem;
use super::types::{Config, HttpRequestConfig, ToolConfig};

/// Replaces all texts by templates in the current syntax, and returns a warning for each text in the deprecated one.
pub(super) fn resolve(config: &mut Config, document: &Document) -> Result<Vec<ConfigProblem>, Vec<ConfigProblem>> {
    let (mut warnings, mut problems) = (Vec::new(), Vec::new());
    for (index, tool) in config.tools.iter_mut().enumerate() {
        match resolve_tool(tool, &format!("tools[{index}]"), document) {
            Ok(mut of_tool) => warnings.append(&mut of_tool),
            Err(problem) => problems.push(problem),
        }
    }
    for (index, prompt) in config.prompts.iter_mut().enumerate() {
        for (message_index, message) in prompt.messages.iter_mut().enumerate() {
            let path = format!("prompts[{index}].messages[{message_index}]");
            resolve_text(&mut message.text, format!("{path}.text"), document);
            resolve_text(&mut message.resource, format!("{path}.resource"), document);
        }
    }
    if problems.is_empty() { Ok(warnings) } else { Err(problems) }
}

fn resolve_text(text: &mut Option<String>, path: String, document: &Document) {
    if let (Some(text), Some(expanded)) = (text, document.expanded(&path)) {
        text.clone_from(&expanded.template);
    }
}

/// A text of an http tool, as a template in either syntax.
struct HttpText {
    path: String,
    /// As written, with variables.
    source: String,
    current: String,
    deprecated: String,
}

fn resolve_tool(tool: &mut ToolConfig, path: &str, document: &Document) -> Result<Vec<ConfigProblem>, ConfigProblem> {
    resolve_text(&mut tool.confirm, format!("{path}.confirm"), document);
    let parameters: BTreeSet<&str> = tool.input.keys().map(String::as_str).collect();
    let Some(http) = &mut tool.http else { return Ok(Vec::new()) };
    let mut texts = Vec::new();
    visit_texts(http, &format!("{path}.http"), &mut |path, is_value, text| {
        let expanded = document.expanded(path).filter(|_| is_value);
        texts.push(HttpText {
            path: path.to_owned(),
            source: expanded.map_or(&*text, |expanded| &expanded.source_text).clone(),
            current: expanded.map_or(&*text, |expanded| &expanded.template).clone(),
            deprecated: expanded.map_or(&*text, |expanded| &expanded.deprecated_template).clone(),
        });
    });
    let mut templates: Vec<String> = texts.iter().map(|text| text.current.clone()).collect();
    let mut warnings = Vec::new();
    let upgraded: Option<Vec<String>> = texts.iter().map(|text| upgrade(&text.deprecated)).collect();
    if let Some(upgraded) = upgraded.filter(|upgraded| uses_exactly(upgraded, &parameters)) {
        let has_two_meanings =
            |index: &usize| TextTemplate::parse(&templates[*index]) != TextTemplate::parse(&upgraded[*index]);
        let differing: Vec<usize> = (0..texts.len()).filter(has_two_meanings).collect();
        if let (Some(first), true) = (differing.first(), uses_exactly(&templates, &parameters)) {
            return Err(ConfigProblem::new(&texts[*first].path, ambiguity(&parameters)));
        }
        warnings.extend(differing.iter().map(|index| deprecation(&texts[*index], &upgraded[*index])));
        templates = upgraded;
    }
    let mut templates = templates.into_iter();
    visit_texts(http, path, &mut |_, _, text| *text = templates.next().unwrap_or_default());
    Ok(warnings)
}

/// Calls `visit` with the path of each text, whether it is a value, and the text.
fn visit_texts(http: &mut HttpRequestConfig, path: &str, visit: &mut dyn FnMut(&str, bool, &mut String)) {
    visit(&format!("{path}.url"), true, &mut http.url);
    let mut query = Value::Object(std::mem::take(&mut http.query));
    visit_json(&mut query, &format!("{path}.query"), visit);
    if let Value::Object(members) = query {
        http.query = members;
    }
    for (name, value) in &mut http.headers {
        visit(&format!("{path}.headers.{name}"), true, value);
    }
    if let Some(body) = &mut http.body {
        visit_json(body, &format!("{path}.body"), visit);
    }
}

fn visit_json(value: &mut Value, path: &str, visit: &mut dyn FnMut(&str, bool, &mut String)) {
    match value {
        Value::String(text) => visit(path, true, text),
        Value::Array(items) => {
            let items = items.iter_mut().enumerate();
            items.for_each(|(index, item)| visit_json(item, &format!("{path}[{index}]"), visit));
        }
        Value::Object(members) => {
            let named = std::mem::take(members).into_iter().map(|(mut name, mut member)| {
                let path = format!("{path}.{name}");
                visit(&path, false, &mut name);
                visit_json(&mut member, &path, visit);
                (name, member)
            });
            *members = named.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn uses_exactly(texts: &[String], parameters: &BTreeSet<&str>) -> bool {
    let mut used = BTreeSet::new();
    for text in texts {
        let Ok(template) = TextTemplate::parse(text) else { return false };
        used.extend(template.names().into_iter().map(str::to_owned));
    }
    used.iter().map(String::as_str).eq(parameters.iter().copied())
}

/// The template for `text` in the deprecated syntax, if it is valid in it.
fn upgrade(text: &str) -> Option<String> {
    let (mut upgraded, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from_brace) = rest.split_at(at);
        let (brace, after) = from_brace.split_at(1);
        upgraded.push_str(before);
        if let Some(behind) = after.strip_prefix(brace) {
            upgraded.push_str(&escape_braces(brace));
            rest = behind;
        } else {
            let (name, behind) = after.split_once('}').filter(|_| brace == "{")?;
            let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
            if name.is_empty() || !name.chars().all(is_word) {
                return None;
            }
            upgraded.extend(["{{", name, "}}"]);
            rest = behind;
        }
    }
    upgraded.push_str(rest);
    Some(upgraded)
}

fn deprecation(text: &HttpText, upgraded: &str) -> ConfigProblem {
    let template = TextTemplate::parse(upgraded).unwrap_or_default();
    let mut forms: Vec<String> = template.names().iter().map(|name| format!("{{{{{name}}}}} for {{{name}}}")).collect();
    let doubled = [("{{", "{"), ("}}", "}")].into_iter().filter(|(old, _)| text.source.contains(old));
    forms.extend(doubled.map(|(old, new)| format!("{new} for {old}")));
    ConfigProblem::new(&text.path, format!("uses the deprecated template syntax; write {}", forms.join(", ")))
}

fn ambiguity(parameters: &BTreeSet<&str>) -> String {
    let name = parameters.first().copied().unwrap_or("name");
    format!(
        "has two meanings, because the deprecated template syntax also fits this tool: write {{{{{name}}}}} for the \
         parameter, {{{{\"{{\"}}}}{name}}} for the text {{{name}}}, and {{{{\"{{\"}}}} or {{{{\"}}\"}}}} for each brace that \
         stands beside another one"
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::parsing::parse_config;
    use super::super::variables::VariableResolver;
    use super::*;

    /// The texts of the tool after it was read, and the warnings; or the problem. `$V` holds braces.
    fn read(input: &str, http: &str) -> String {
        let text = format!("tools:\n- name: t\n  description: T\n  input: {{{input}}}\n  http: {http}\n");
        let variables = VariableResolver::new(Path::new("/"), |_| Some("{a}{{b}}".to_owned()));
        let document = Document::parse(Path::new("/x.yaml"), &text, &variables).unwrap();
        let mut config = parse_config(&document).unwrap();
        let reading = resolve(&mut config, &document);
        let mut lines = Vec::new();
        match reading {
            Ok(warnings) => {
                let http = config.tools[0].http.as_mut().unwrap();
                visit_texts(http, "", &mut |path, _, text| lines.push(format!("{path} = {text}")));
                lines.extend(warnings.iter().map(|warning| format!("warning: {warning}")));
            }
            Err(problems) => lines.extend(problems.iter().map(ToString::to_string)),
        }
        lines.join("\n")
    }

    #[test]
    fn texts_in_the_current_syntax_stay() {
        insta::assert_snapshot!(read("a: {}", "{url: 'http://h/{{a}}', body: {q: '{ b {a} }}', a: 1}}"), @r"
        .url = http://h/{{a}}
        .body.q = q
        .body.q = { b {a} }}
        .body.a = a
        ");
        insta::assert_snapshot!(read("", "{url: 'http://h/', body: 'query { viewer { login }}'}"), @r"
        .url = http://h/
        .body = query { viewer { login }}
        ");
        let escaped = "{url: 'http://h/{{a}}', headers: {k: 'x ${V}', l: '{{\"{\"}}a}'}}";
        insta::assert_snapshot!(read("a: {}", escaped), @r#"
        .url = http://h/{{a}}
        .headers.k = x {{"{"}}a{{"}"}}{{"{"}}{{"{"}}b{{"}"}}{{"}"}}
        .headers.l = {{"{"}}a}
        "#);
    }

    #[test]
    fn texts_in_the_deprecated_syntax_are_read_with_a_warning() {
        let http = "{url: 'http://h/{a}', query: {'{{x}}': '{a}-{b}'}, headers: {k: '${V} {b}'}, \
                    body: {t: '{{x}} {{{a}}}', l: [plain]}}";
        insta::assert_snapshot!(read("a: {}, b: {}", http), @r#"
        .url = http://h/{{a}}
        .query.{{"{"}}x{{"}"}} = {{"{"}}x{{"}"}}
        .query.{{"{"}}x{{"}"}} = {{a}}-{{b}}
        .headers.k = {{"{"}}a{{"}"}}{{"{"}}{{"{"}}b{{"}"}}{{"}"}} {{b}}
        .body.t = t
        .body.t = {{"{"}}x{{"}"}} {{"{"}}{{a}}{{"}"}}
        .body.l = l
        .body.l[0] = plain
        warning: tools[0].http.url: uses the deprecated template syntax; write {{a}} for {a}
        warning: tools[0].http.query.{{x}}: uses the deprecated template syntax; write { for {{, } for }}
        warning: tools[0].http.query.{{x}}: uses the deprecated template syntax; write {{a}} for {a}, {{b}} for {b}
        warning: tools[0].http.headers.k: uses the deprecated template syntax; write {{b}} for {b}
        warning: tools[0].http.body.t: uses the deprecated template syntax; write {{a}} for {a}, { for {{, } for }}
        "#);
        insta::assert_snapshot!(read("", "{url: 'http://h/', body: '{{viewer{{login}}}}'}"), @r#"
        .url = http://h/
        .body = {{"{"}}viewer{{"{"}}login{{"}"}}{{"}"}}
        warning: tools[0].http.body: uses the deprecated template syntax; write { for {{, } for }}
        "#);
    }

    #[test]
    fn a_literal_never_becomes_a_parameter() {
        // In the deprecated syntax, {{b}} is the text {b}; in the current one, it would be the parameter.
        insta::assert_snapshot!(read("a: {}, b: {}", "{url: 'http://h/{a}/{b}', body: '{{b}}'}"), @r#"
        .url = http://h/{{a}}/{{b}}
        .body = {{"{"}}b{{"}"}}
        warning: tools[0].http.url: uses the deprecated template syntax; write {{a}} for {a}, {{b}} for {b}
        warning: tools[0].http.body: uses the deprecated template syntax; write { for {{, } for }}
        "#);
        insta::assert_snapshot!(read("a: {}", "{url: 'http://h/{a}', body: '{{a}}'}"), @r#"tools[0].http.url: has two meanings, because the deprecated template syntax also fits this tool: write {{a}} for the parameter, {{"{"}}a} for the text {a}, and {{"{"}} or {{"}"}} for each brace that stands beside another one"#);
        insta::assert_snapshot!(read("", "{url: 'http://h/', body: 'a }} b'}"), @r#"tools[0].http.body: has two meanings, because the deprecated template syntax also fits this tool: write {{name}} for the parameter, {{"{"}}name} for the text {name}, and {{"{"}} or {{"}"}} for each brace that stands beside another one"#);
    }

    #[test]
    fn upgrade_page_lists_the_deprecated_syntax() {
        let page = include_str!("../../../../docs/how-to/upgrade.md");
        for row in ["| `{name}` | `{{name}}` |", "| `{{` | `{` |", "| `}}` | `}` |"] {
            assert!(page.contains(row), "docs/how-to/upgrade.md lacks the row {row}");
        }
    }

    #[test]
    fn a_tool_that_is_valid_in_neither_syntax_stays_as_it_is() {
        insta::assert_snapshot!(read("a: {}, b: {}", "{url: 'http://h/{a}', body: '{{b}}'}"), @r"
        .url = http://h/{a}
        .body = {{b}}
        ");
    }
}
