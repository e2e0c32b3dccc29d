//! Which transports answer requests: an operator stops and starts a group of them while the others run.

use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};

/// Transports that are stopped and started together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportGroup {
    /// MCP over Streamable HTTP, HTTP+SSE and WebSocket.
    Mcp,
    /// REST, with the downloads of stored results.
    Rest,
}

impl TransportGroup {
    /// All groups.
    pub const ALL: [Self; 2] = [Self::Mcp, Self::Rest];

    /// The name in commands and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Rest => "rest",
        }
    }
}

/// Whether a group answers requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TransportState {
    /// The process does not serve it.
    #[default]
    Off,
    /// It answers requests.
    Running,
    /// An operator stopped it.
    Stopped,
}

impl TransportState {
    /// The name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Running => "running",
            Self::Stopped => "stopped",
        }
    }
}

/// The state of each group.
#[derive(Debug, Default)]
pub struct TransportSwitches(Mutex<[TransportState; TransportGroup::ALL.len()]>);

impl TransportSwitches {
    /// Sets whether the process serves `group`. A group that was stopped stays stopped.
    pub fn set_served(&self, group: TransportGroup, is_served: bool) {
        let state = &mut self.0.lock()[group as usize];
        *state = match (is_served, *state) {
            (false, _) => TransportState::Off,
            (true, TransportState::Off) => TransportState::Running,
            (true, state) => state,
        };
    }

    /// Starts or stops `group`. Requests that are being answered continue.
    ///
    /// # Errors
    /// `Failed` if the process does not serve it.
    pub fn set_running(&self, group: TransportGroup, is_running: bool) -> Result<(), Error> {
        let state = &mut self.0.lock()[group as usize];
        if *state == TransportState::Off {
            let name = group.name();
            let message =
                format!("this server does not serve {name}; server.transports in its configuration enables it");
            return Err(Error::new(ErrorKind::Failed, message));
        }
        *state = if is_running { TransportState::Running } else { TransportState::Stopped };
        Ok(())
    }

    /// The state of `group`.
    pub fn state(&self, group: TransportGroup) -> TransportState {
        self.0.lock()[group as usize]
    }

    /// Checks that `group` accepts requests.
    ///
    /// # Errors
    /// `Unavailable` while it is stopped.
    pub fn require_running(&self, group: TransportGroup) -> Result<(), Error> {
        if self.state(group) != TransportState::Stopped {
            return Ok(());
        }
        let name = group.name();
        let message =
            format!("an operator has stopped {name} on this server; tidegate transport start {name} starts it");
        Err(Error::new(ErrorKind::Unavailable, message))
    }

    /// The groups that the process serves and their states, such as `mcp running, rest stopped`; `None` without any.
    pub fn describe(&self) -> Option<String> {
        let served = TransportGroup::ALL.map(|group| (group, self.state(group)));
        let served = served.iter().filter(|(_, state)| *state != TransportState::Off);
        let states: Vec<String> = served.map(|(group, state)| format!("{} {}", group.name(), state.name())).collect();
        (!states.is_empty()).then(|| states.join(", "))
    }
}
