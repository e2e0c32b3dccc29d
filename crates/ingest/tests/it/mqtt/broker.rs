//! The broker as a process.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

const PROGRAM: &str = "/usr/sbin/mosquitto";

/// A broker on a free port, with a folder for what it keeps.
pub(crate) struct Broker {
    folder: TempDir,
    process: Option<Child>,
    pub(crate) port: u16,
}

impl Broker {
    /// `None` if the program is not installed, which is printed.
    #[allow(clippy::print_stderr, reason = "the cause why a test does nothing")]
    pub(crate) fn installed() -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            eprintln!("skipped: {PROGRAM} is not installed");
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Some(Self { folder: tempfile::tempdir().unwrap(), process: None, port })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts with `further` lines of configuration. What the broker kept is there again.
    pub(crate) fn start_with(&mut self, further: &str) {
        let path = self.folder().display();
        let user = if is_root() { "user root\n" } else { "" };
        let text = format!(
            "listener {} 127.0.0.1\nallow_anonymous true\npersistence true\npersistence_location {path}/\n\
             max_queued_messages 0\n{user}{further}\n",
            self.port
        );
        let file = self.folder().join("mosquitto.conf");
        fs::write(&file, text).unwrap();
        let mut command = Command::new(PROGRAM);
        let command = command.arg("-c").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(command.spawn().unwrap());
    }

    pub(crate) fn start(&mut self) {
        self.start_with("");
    }

    /// Ends the process in the way that lets it write what it keeps.
    pub(crate) fn end(&mut self) {
        let mut process = self.process.take().unwrap();
        let ended = Command::new("kill").arg(process.id().to_string()).status().unwrap();
        assert!(ended.success());
        process.wait().unwrap();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A broker that root starts would become another user, who cannot write into the folder.
fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout.trim_ascii() == b"0"
}
