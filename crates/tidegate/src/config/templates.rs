//! The texts that are templates: braces in the values of their variables are literal.

use serde_json::Value;

use super::document::Document;
use super::types::{Config, HttpRequestConfig};

/// Replaces the texts of tools and prompts that contain variables by templates with the values.
pub(super) fn expand_variables(config: &mut Config, document: &Document) {
    for (index, tool) in config.tools.iter_mut().enumerate() {
        let path = format!("tools[{index}]");
        expand_optional(&mut tool.confirm, &format!("{path}.confirm"), document);
        if let Some(http) = &mut tool.http {
            expand_request(http, &format!("{path}.http"), document);
        }
    }
    for (index, prompt) in config.prompts.iter_mut().enumerate() {
        for (message_index, message) in prompt.messages.iter_mut().enumerate() {
            let path = format!("prompts[{index}].messages[{message_index}]");
            expand_optional(&mut message.text, &format!("{path}.text"), document);
            expand_optional(&mut message.resource, &format!("{path}.resource"), document);
        }
    }
}

fn expand_request(http: &mut HttpRequestConfig, path: &str, document: &Document) {
    expand_text(&mut http.url, &format!("{path}.url"), document);
    for (name, value) in &mut http.query {
        expand_json(value, &format!("{path}.query.{name}"), document);
    }
    for (name, value) in &mut http.headers {
        expand_text(value, &format!("{path}.headers.{name}"), document);
    }
    if let Some(body) = &mut http.body {
        expand_json(body, &format!("{path}.body"), document);
    }
}

fn expand_json(value: &mut Value, path: &str, document: &Document) {
    match value {
        Value::String(text) => expand_text(text, path, document),
        Value::Array(items) => {
            let items = items.iter_mut().enumerate();
            items.for_each(|(index, item)| expand_json(item, &format!("{path}[{index}]"), document));
        }
        Value::Object(members) => {
            let members = members.iter_mut();
            members.for_each(|(name, member)| expand_json(member, &format!("{path}.{name}"), document));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn expand_optional(text: &mut Option<String>, path: &str, document: &Document) {
    if let Some(text) = text {
        expand_text(text, path, document);
    }
}

fn expand_text(text: &mut String, path: &str, document: &Document) {
    if let Some(expanded) = document.expanded(path) {
        text.clone_from(&expanded.template);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::parsing::parse_config;
    use super::super::variables::VariableResolver;
    use super::*;

    #[test]
    fn braces_of_values_are_literal_in_every_text() {
        let text = "tools:\n- name: t\n  description: T\n  input: {a: {}}\n  confirm: '${V} {{a}}?'\n  \
                    http: {url: 'http://h/${V}', query: {q: '${V}'}, headers: {k: 'x ${V}'}, \
                    body: {l: ['${V} {{a}}', '{ {a} }}', 1]}}\n\
                    prompts:\n- {name: p, description: P, messages: [{role: user, text: '${V}'}]}\n";
        let variables = VariableResolver::new(Path::new("/"), |_| Some("{b}".to_owned()));
        let document = Document::parse(Path::new("/x.yaml"), text, &variables).unwrap();
        let mut config = parse_config(&document).unwrap();
        expand_variables(&mut config, &document);
        let value = r#"{{"{"}}b{{"}"}}"#;
        let http = config.tools[0].http.as_ref().unwrap();
        assert_eq!(config.tools[0].confirm.as_deref(), Some(format!("{value} {{{{a}}}}?").as_str()));
        assert_eq!(http.url, format!("http://h/{value}"));
        assert_eq!(http.query["q"], *value);
        assert_eq!(http.headers["k"], format!("x {value}"));
        let body = serde_json::json!({"l": [format!("{value} {{{{a}}}}"), "{ {a} }}", 1]});
        assert_eq!(http.body, Some(body));
        assert_eq!(config.prompts[0].messages[0].text.as_deref(), Some(value));
    }
}
