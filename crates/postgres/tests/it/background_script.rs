//! `scripts/postgres`, run for as long as a test needs what it starts.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The running script. What it started ends with this value, and with the process of the test, however that ends.
pub(crate) struct BackgroundScript {
    script: Child,
    variables: HashMap<String, String>,
}

impl BackgroundScript {
    /// Runs the script with `arguments`, and around it the words of `around`.
    pub(crate) fn start(around: &[&str], arguments: &[&str]) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
        // `cat` ends when the other end of its input is closed.
        let held = "env | grep ^TIDEGATE_TEST_; echo; exec cat";
        let path = path.to_str().unwrap();
        let words: Vec<&str> = [around, &[path], arguments, &["--", "sh", "-c", held]].concat();
        let mut script =
            Command::new(words[0]).args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(script.stdout.as_mut().unwrap()).lines();
        let variables = lines
            .map_while(|line| line.unwrap().split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
            .collect();
        Self { script, variables }
    }

    /// A variable that the script sets.
    pub(crate) fn variable(&self, name: &str) -> &str {
        self.variables.get(name).unwrap_or_else(|| panic!("{name} is not set: the script has failed"))
    }
}

impl Drop for BackgroundScript {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        self.script.wait().unwrap();
    }
}
