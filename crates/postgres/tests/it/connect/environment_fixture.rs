//! Surroundings made for the test, and the servers that the environment names.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget, OpenConnection};
use tokio_postgres::SimpleQueryMessage;

/// A home and an environment of the test's own.
pub(super) struct EnvironmentFixture {
    home: TempDir,
    variables: Vec<(&'static str, String)>,
    socket_folders: Vec<PathBuf>,
    user: Option<String>,
}

impl EnvironmentFixture {
    pub(super) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { home, variables: Vec::new(), socket_folders: Vec::new(), user: Some("ann".to_owned()) }
    }

    pub(super) fn with_variable(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// A file in the home, for its owner's eyes only.
    pub(super) fn with_file(self, name: &str, content: &str) -> Self {
        let path = self.home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        set_mode(&path, 0o600);
        self
    }

    pub(super) fn with_file_mode(self, name: &str, mode: u32) -> Self {
        set_mode(&self.home.path().join(name), mode);
        self
    }

    /// A folder in the home in which a server's socket may lie.
    pub(super) fn with_socket_folder(mut self, name: &str) -> Self {
        let folder = self.home.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        self.socket_folders.push(folder);
        self
    }

    pub(super) fn without_user(mut self) -> Self {
        self.user = None;
        self
    }

    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(super) fn with_environment<T>(&self, run: impl FnOnce(&ConnectEnvironment<'_>) -> T) -> T {
        let variables =
            |expected: &str| self.variables.iter().find(|(name, _)| *name == expected).map(|(_, value)| value.clone());
        run(&ConnectEnvironment {
            variables: &variables,
            home: Some(self.home.path().to_owned()),
            user: self.user.clone(),
            socket_folders: self.socket_folders.clone(),
        })
    }

    pub(super) fn parse_target(&self, text: &str) -> ConnectTarget {
        self.with_environment(|connect_environment| ConnectTarget::parse(text, connect_environment)).unwrap()
    }

    /// What is understood of `text`: the description, then every member that is not as in the plainest string, then
    /// warnings; or the error. The home is written `~`.
    pub(super) fn describe_settings(&self, text: &str) -> String {
        let plain = EnvironmentFixture::new();
        let usual = plain.redact_settings(&plain.parse_target("host=h")).join("\n");
        let message = match self.with_environment(|connect_environment| ConnectTarget::parse(text, connect_environment))
        {
            Ok(target) => {
                let members =
                    self.redact_settings(&target).into_iter().filter(|line| !usual.lines().any(|usual| usual == line));
                let warnings = target.warnings().iter().map(|warning| format!("  warning: {warning}"));
                [target.describe()].into_iter().chain(members).chain(warnings).collect::<Vec<_>>().join("\n")
            }
            Err(error) => format!("error: {error}"),
        };
        message.replace(&self.home.path().display().to_string(), "~")
    }

    /// The parts of the target's `Debug` output, without those that its description has already.
    fn redact_settings(&self, target: &ConnectTarget) -> Vec<String> {
        let home = self.home.path().display().to_string();
        let is_reported_already = |part: &str| {
            let field = part.rsplit(['{', '[', '(']).find(|text| text.contains(':')).unwrap_or_default();
            let name = field.split(':').next().unwrap_or_default().trim();
            ["hosts", "host", "location", "name", "port", "user", "dbname", "database"].contains(&name)
        };
        let text = format!("{target:?}").replace(&home, "~");
        text.split(", ").filter(|part| !is_reported_already(part)).map(|part| format!("  {part}")).collect()
    }
}

/// A connection to the server that the environment names for `variable`, with the pairs of `more`.
pub(super) fn server_string(variable: &str, more: &str) -> String {
    let Ok(text) = std::env::var(variable) else {
        panic!("{variable} names no server; run the tests by scripts/postgres run -- …");
    };
    format!("{text} {more}")
}

pub(super) fn superuser_string(more: &str) -> String {
    server_string("TIDEGATE_TEST_POSTGRES", more)
}

/// The server's port on the network, with TLS and passwords.
pub(super) fn network_string(more: &str) -> String {
    server_string("TIDEGATE_TEST_POSTGRES_TCP", more)
}

/// The port of `network_string`.
pub(super) fn network_port() -> u16 {
    let text = network_string("");
    let port = text.split_whitespace().find_map(|pair| pair.strip_prefix("port=")).expect("a port is named");
    port.parse().unwrap()
}

/// The certificate of the authority that signed the server's; none, if the server was built without TLS.
pub(super) async fn authority_file() -> Option<String> {
    let has_tls = query_value(&connect(&superuser_string("")).await, "SHOW ssl").await == "on";
    has_tls.then(|| server_string("TIDEGATE_TEST_POSTGRES_CA", "").trim().to_owned())
}

/// The first value that `query` finds.
pub(super) async fn query_value(connected: &OpenConnection, query: &str) -> String {
    let messages = connected.client().simple_query(query).await.unwrap();
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    row.expect("there is a row").to_owned()
}

pub(super) async fn connect(text: &str) -> OpenConnection {
    let target = EnvironmentFixture::new().parse_target(text);
    target.connect("tidegate test").await.unwrap_or_else(|error| {
        panic!("{error}");
    })
}

/// Both texts of the refusal that `text` must meet, a line each; the ports that differ from run to run are `DEFAULT_PORT`.
pub(super) async fn connect_error_text(text: &str) -> String {
    let scene = EnvironmentFixture::new();
    connect_error_text_in(&scene, text).await
}

pub(super) async fn connect_error_text_in(scene: &EnvironmentFixture, text: &str) -> String {
    let target = scene.parse_target(text);
    let outcome = target.connect("").await;
    let error = outcome.err().unwrap_or_else(|| panic!("{} let us in", target.describe()));
    format!("caller: {}\nowner: {}", error.client_message("shop"), error)
}

/// Makes a role of the name `purpose`, which may log in with the password `right-password`.
pub(super) async fn make_role(purpose: &str) -> String {
    // Tests that run side by side must not share one, nor meet one of an earlier run.
    let role = format!("connect_{purpose}_{}", std::process::id());
    let admin = connect(&superuser_string("")).await;
    let statement = format!("CREATE ROLE {role} LOGIN PASSWORD 'right-password'");
    admin.client().batch_execute(&statement).await.unwrap();
    admin.close().await;
    role
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Whether the session is encrypted according to the server.
pub(super) async fn is_encrypted(connected: &OpenConnection) -> bool {
    query_value(connected, "SELECT coalesce(bool_or(ssl), false) FROM pg_stat_ssl WHERE pid = pg_backend_pid()").await
        == "t"
}
