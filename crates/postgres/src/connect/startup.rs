//! What a session begins with: its name in the server's lists, and its settings.

/// What a session begins with.
#[derive(Debug, Clone, Copy, Default)]
pub struct StartupParameters<'a> {
    /// How the session is called in `pg_stat_activity` and the server's log, if the target does not say.
    pub application_name: &'a str,
    /// Settings by name, set before anything else happens. They come after the owner's own `options`, so they win.
    ///
    /// PgBouncer refuses them unless it is told to ignore `options`.
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

/// The server splits at blanks that no backslash precedes. What the protocol cannot carry is left out.
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
