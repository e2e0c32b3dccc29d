//! A server that runs beside a test.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longer than a server may take to end, on a busy machine too.
const EXIT_TIMEOUT: Duration = Duration::from_secs(30);
/// Longer than a change may take to be seen, on a busy machine too.
pub(super) const CHANGE_TIMEOUT: Duration = Duration::from_secs(60);

/// A server that listens; it is killed when the test is over.
pub(crate) struct Server {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    /// Where it listens.
    pub(crate) url: String,
}

impl Server {
    /// Starts `command` and waits until it says where it listens.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut server = Self { child, stderr, url: String::new() };
        let mut text = String::new();
        while server.url.is_empty() {
            let mut line = String::new();
            assert_ne!(server.stderr.read_line(&mut line).unwrap(), 0, "it ended: {text}");
            if let Some(url) = line.trim_end().strip_prefix("listening on ") {
                url.clone_into(&mut server.url);
            }
            text.push_str(&line);
        }
        server
    }

    /// Where it listens, without what stands around it in the URL.
    pub(super) fn address(&self) -> SocketAddr {
        let address = self.url.split("://").nth(1).and_then(|rest| rest.strip_suffix("/mcp"));
        address.unwrap().parse().unwrap()
    }

    /// Reads what it says on standard error up to a line with `words`, and gives that line.
    pub(super) fn wait_for_log(&mut self, words: &str) -> String {
        let mut text = String::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "it ended: {text}");
            if line.contains(words) {
                return line;
            }
            text.push_str(&line);
        }
    }

    /// The process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// How it ended, and what it said on standard error after its address.
    pub(super) fn wait_for_exit(mut self) -> (ExitStatus, String) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < EXIT_TIMEOUT, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut text = String::new();
        self.stderr.read_to_string(&mut text).unwrap();
        (status, text)
    }
}

/// Waits until `holds`, and fails when that takes far longer than it should on a busy machine.
pub(super) async fn wait_until(holds: impl AsyncFn() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < CHANGE_TIMEOUT, "nothing changes");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
