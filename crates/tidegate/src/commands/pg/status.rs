//! `tidegate pg status`.

use std::io::Write as _;

use clap::Args;
use tidegate_postgres::handlers::{ExchangeLog, InstalledVersion, Layer, Lines, Status as Installed};

use super::place::Place;
use crate::failure::Failure;

/// Say what is installed, whose it is and who may call it
#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    place: Place,
}

impl Status {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let installed = self.place.installer()?.status().await?;
        Ok(write!(std::io::stdout(), "{}", table(&installed))?)
    }
}

fn table(installed: &Installed) -> String {
    let Installed { database, schema, owner, dispatching, .. } = installed;
    let handlers = match &installed.handlers {
        None => UNREAD.to_owned(),
        Some(_) if installed.is_of_owner => handlers(installed),
        Some(_) => format!("{}; what this role may call", handlers(installed)),
    };
    let dispatching = match dispatching.as_slice() {
        [] => format!("nobody but {owner}; SELECT {schema}.grant_mcp_access('ROLE') lets a role in"),
        roles => roles.join(", "),
    };
    format!(
        "database      {database}\n\
         schema        {schema}, owned by {owner}\n\
         version       {}\n\
         handlers      {handlers}\n\
         exchange log  {}\n\
         may call      {dispatching}\n",
        version(installed.version),
        exchange(installed.exchange),
    )
}

const UNREAD: &str = "this role may not read that";

fn version(installed: InstalledVersion) -> String {
    let ours = Layer::VERSION;
    match installed {
        InstalledVersion::Hidden => format!("{UNREAD}; this program brings {ours}"),
        InstalledVersion::Uncounted => format!("before {ours}, which this program brings: tidegate pg upgrade"),
        InstalledVersion::Counted(version) if version == ours => format!("{version}, as this program brings it"),
        InstalledVersion::Counted(version) if version < ours => {
            format!("{version}; this program brings {ours}: tidegate pg upgrade")
        }
        InstalledVersion::Counted(version) => format!("{version}, which is newer than this program's, {ours}"),
    }
}

/// How many handlers there are: `3: 2 tools, 1 prompt`.
pub(super) fn handlers(installed: &Installed) -> String {
    let counts = installed.handlers.iter().flatten();
    let of_types: Vec<String> = counts.clone().map(|(of_type, count)| counted(*count, of_type)).collect();
    match counts.map(|(_, count)| count).sum::<u64>() {
        0 => "none".to_owned(),
        count => format!("{count}: {}", of_types.join(", ")),
    }
}

fn exchange(log: Option<ExchangeLog>) -> String {
    let Some(ExchangeLog { is_on, lines }) = log else { return UNREAD.to_owned() };
    let is_on = if is_on { "on" } else { "off" };
    match lines {
        Some(lines) => format!("{is_on}, {}", self::lines(lines)),
        None => is_on.to_owned(),
    }
}

/// How long the exchange log is.
pub(super) fn lines(lines: Lines) -> String {
    match lines {
        Lines::Counted(count) => counted(count, "line"),
        Lines::MoreThan(count) => format!("more than {}", counted(count, "line")),
    }
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
