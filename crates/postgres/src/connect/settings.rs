//! The settings of a connection: from the string, a service, and the environment, in this order of precedence.

use std::collections::BTreeMap;

use super::environment::ConnectEnvironment;
use super::keyword::{self, ConnectionStringError, KEYWORDS, Keyword, KeywordValue, SettingOrigin, Support};
use super::{connection_string, service_file};

/// The values of the keywords. Contains the password, so it has no `Debug`.
pub(super) struct Settings(BTreeMap<&'static str, Setting>);

struct Setting {
    value: String,
    origin: SettingOrigin,
}

impl Settings {
    /// Collects the settings in `text`; missing ones are taken from a service and from the environment.
    pub(super) fn collect(
        text: &str,
        connect_environment: &ConnectEnvironment<'_>,
    ) -> Result<Self, ConnectionStringError> {
        let mut settings = Self(BTreeMap::new());
        for KeywordValue { keyword, value } in connection_string::parse(text)? {
            // If a string contains a keyword twice, the last value applies.
            settings.0.insert(keyword.name, Setting { value, origin: SettingOrigin::ConnectionString });
        }
        let service = settings.text("service").map(str::to_owned).or_else(|| connect_environment.variable("PGSERVICE"));
        if let Some(service) = service {
            for (pair, origin) in service_file::find_service(&service, connect_environment)? {
                settings.set_default(pair.keyword, pair.value, origin);
            }
        }
        for keyword in KEYWORDS {
            if let Some(value) = connect_environment.variable(keyword.variable) {
                settings.set_default(keyword, value, SettingOrigin::Variable(keyword.variable));
            }
        }
        settings.check_support()?;
        Ok(settings)
    }

    /// The value of the keyword `name`; an empty value counts as missing.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|setting| setting.value.as_str()).filter(|value| !value.is_empty())
    }

    /// The source of the value of the keyword `name`.
    pub(super) fn origin(&self, name: &str) -> SettingOrigin {
        self.0.get(name).map_or(SettingOrigin::Default, |setting| setting.origin.clone())
    }

    /// The elements of the list in the keyword `name`.
    pub(super) fn list(&self, name: &str) -> Vec<&str> {
        self.text(name).map_or_else(Vec::new, |list| list.split(',').collect())
    }

    /// The value of the keyword `name`, parsed by `read`.
    pub(super) fn read<T>(
        &self,
        name: &'static str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, ConnectionStringError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        read(text.trim()).map(Some).ok_or_else(|| self.bad_value(name, expected))
    }

    /// The value of the keyword `name`, which must be one of `choices`.
    pub(super) fn choose<T: Copy>(
        &self,
        name: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, ConnectionStringError> {
        let names: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
        let expected = format!("one of {}", names.join(", "));
        self.read(name, &expected, |text| choices.iter().find(|(choice, _)| *choice == text).map(|(_, value)| *value))
    }

    /// The error for a value of the keyword `name` that is not as `expected`.
    pub(super) fn bad_value(&self, name: &'static str, expected: &str) -> ConnectionStringError {
        ConnectionStringError::new(format!("{}: {name} must be {expected}", self.origin(name)))
    }

    fn set_default(&mut self, keyword: &'static Keyword, value: String, origin: SettingOrigin) {
        self.0.entry(keyword.name).or_insert(Setting { value, origin });
    }

    fn check_support(&self) -> Result<(), ConnectionStringError> {
        // The protocol ends each text with a zero byte.
        if let Some((name, setting)) = self.0.iter().find(|(_, setting)| setting.value.contains('\0')) {
            return Err(ConnectionStringError::new(format!("{}: {name} contains a NUL character", setting.origin)));
        }
        for (name, setting) in self.0.iter().filter(|(_, setting)| !setting.value.is_empty()) {
            match keyword::find(name).map(|keyword| &keyword.support) {
                Some(Support::Rejected) => {
                    return Err(ConnectionStringError::new(format!(
                        "{}: {name} is not supported; ignoring it could make the connection less secure",
                        setting.origin
                    )));
                }
                Some(Support::OnlyValues(values)) if !values.contains(&setting.value.as_str()) => {
                    return Err(self.bad_value(name, &format!("{}, if it is set", values.join(" or "))));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
