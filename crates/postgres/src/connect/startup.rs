//! The start of a session: its application name and its settings.

/// The parameters at the start of a session.
#[derive(Debug, Clone, Copy, Default)]
pub struct StartupParameters<'a> {
    /// The name of the session in `pg_stat_activity` and in the server's log, unless the target sets one.
    pub application_name: &'a str,
    /// Settings by name, applied at the start of the session. They follow the owner's own `options`, so they take
    /// precedence.
    ///
    /// PgBouncer refuses them, unless `ignore_startup_parameters` contains `options`.
    pub settings: &'a [(&'a str, &'a str)],
}

impl StartupParameters<'_> {
    /// The startup parameter `options`: those of the target, then the settings.
    pub(super) fn options(&self, of_target: Option<&str>) -> Option<String> {
        let settings = self.settings.iter().map(|(name, value)| format!("-c {}={}", escape(name), escape(value)));
        let options: Vec<String> = of_target.map(str::to_owned).into_iter().chain(settings).collect();
        (!options.is_empty()).then(|| options.join(" "))
    }
}

/// Escapes `text` for a server that splits at unescaped blanks. Drops NUL characters, which the protocol cannot
/// transmit.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars().filter(|character| *character != '\0') {
        if character.is_whitespace() || character == '\\' {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
