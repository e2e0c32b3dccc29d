//! Reads `users`, and gives other tables the names of users.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use super::{ColumnReader, RowCallback, SystemPaths, SystemRowWriter, unreadable};
use crate::catalog::SystemTable;
use crate::read::{ReadOptions, ReadSummary, SystemError};

/// Accounts of the file at most.
const ACCOUNTS_MAX: usize = 65_536;
/// Bytes of one line of the file at most.
const LINE_BYTES_MAX: u64 = 8_192;
/// Programs that end a login at once.
const SHELLS_WITHOUT_LOGIN: [&str; 5] = ["nologin", "false", "sync", "shutdown", "halt"];

/// One account.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Account {
    name: String,
    uid: u32,
    gid: u32,
    full_name: Option<String>,
    home_folder: Option<String>,
    shell: Option<String>,
}

struct UserRow {
    account: Account,
    is_logged_in: Option<bool>,
}

const COLUMNS: &[ColumnReader<UserRow>] = &[
    ("name", |user| user.account.name.as_str().into()),
    ("uid", |user| user.account.uid.into()),
    ("gid", |user| user.account.gid.into()),
    ("full_name", |user| user.account.full_name.as_deref().into()),
    ("home_folder", |user| user.account.home_folder.as_deref().into()),
    ("shell", |user| user.account.shell.as_deref().into()),
    ("can_log_in", |user| can_log_in(&user.account).into()),
    ("is_logged_in", |user| user.is_logged_in.into()),
];

pub(super) fn read(
    paths: &SystemPaths,
    options: &ReadOptions,
    on_row: RowCallback<'_>,
) -> Result<ReadSummary, SystemError> {
    let accounts = read_accounts(&paths.passwd);
    let accounts = accounts.map_err(|error| unreadable(SystemTable::Users, &paths.passwd, error))?;
    let session_folders = paths.run.join("user");
    let has_folders = session_folders.is_dir();
    let mut writer = SystemRowWriter::new(SystemTable::Users, COLUMNS, options, on_row);
    for account in accounts {
        let is_logged_in = has_folders.then(|| session_folders.join(account.uid.to_string()).is_dir());
        if writer.write(&UserRow { account, is_logged_in }).is_break() {
            break;
        }
    }
    Ok(writer.finish())
}

/// The names of users by their number.
#[derive(Debug, Default)]
pub(super) struct UserNames(HashMap<u32, String>);

impl UserNames {
    /// The names of local users; none if the file cannot be read.
    pub(super) fn read(paths: &SystemPaths) -> Self {
        let mut names = HashMap::new();
        for account in read_accounts(&paths.passwd).unwrap_or_default() {
            // Of several names for one number, the first is that of the system's own functions.
            names.entry(account.uid).or_insert(account.name);
        }
        Self(names)
    }

    /// The name, or the number as text for users without a local account.
    pub(super) fn name(&self, uid: u32) -> String {
        self.0.get(&uid).cloned().unwrap_or_else(|| uid.to_string())
    }
}

fn read_accounts(passwd: &Path) -> std::io::Result<Vec<Account>> {
    let mut lines = BufReader::new(File::open(passwd)?);
    let mut accounts = Vec::new();
    let mut line = Vec::new();
    while accounts.len() < ACCOUNTS_MAX {
        line.clear();
        if lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        accounts.extend(parse_account(String::from_utf8_lossy(&line).trim_end()));
    }
    Ok(accounts)
}

/// `name:password:uid:gid:comment:home:shell`, where the comment begins with the full name, up to a comma.
fn parse_account(line: &str) -> Option<Account> {
    let mut fields = line.split(':');
    let mut next = || fields.next();
    let (name, _, uid, gid) = (next()?, next()?, next()?.parse().ok()?, next()?.parse().ok()?);
    let (comment, home, shell) = (next(), next(), next());
    let non_empty = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Some(Account {
        name: non_empty(name)?,
        uid,
        gid,
        full_name: comment.and_then(|comment| non_empty(comment.split(',').next().unwrap_or_default())),
        home_folder: home.and_then(non_empty),
        shell: shell.and_then(non_empty),
    })
}

/// An account without a shell gets the default one.
fn can_log_in(account: &Account) -> bool {
    let program = account.shell.as_deref().and_then(|shell| shell.rsplit('/').next());
    program.is_none_or(|program| !SHELLS_WITHOUT_LOGIN.contains(&program))
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::description::SystemValue;
    use crate::linux::row_text;

    #[test]
    fn accounts_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let passwd = folder.path().join("passwd");
        let text = "root:x:0:0:root:/root:/bin/bash\n\
                    # a comment\n\
                    broken:x:no:1::/:/bin/sh\n\
                    ann:x:1000:1000:Ann Example,Room 1,,:/home/ann:/usr/bin/zsh\n\
                    daemon:x:2:2:::/usr/sbin/nologin\n\
                    bare:x:3:3";
        std::fs::write(&passwd, text).unwrap();
        std::fs::create_dir_all(folder.path().join("user/1000")).unwrap();
        let paths = SystemPaths { passwd, run: folder.path().to_owned(), ..SystemPaths::default() };
        let mut rows = Vec::new();
        read(&paths, &ReadOptions::default(), &mut |row| {
            rows.push(row_text(&row));
            ControlFlow::Continue(())
        })
        .unwrap();
        insta::assert_snapshot!(rows.join("\n"), @r#"
        "root" 0 0 "root" "/root" "/bin/bash" true false
        "ann" 1000 1000 "Ann Example" "/home/ann" "/usr/bin/zsh" true true
        "daemon" 2 2 null null "/usr/sbin/nologin" false false
        "bare" 3 3 null null null true false
        "#);
        assert_eq!(UserNames::read(&paths).name(1000), "ann");
        assert_eq!(UserNames::read(&paths).name(77), "77");
    }

    #[test]
    fn session_folders_that_do_not_exist_leave_null() {
        let folder = tempfile::tempdir().unwrap();
        let passwd = folder.path().join("passwd");
        std::fs::write(&passwd, "root:x:0:0:root:/root:/bin/bash\n").unwrap();
        let paths = SystemPaths { passwd, run: folder.path().to_owned(), ..SystemPaths::default() };
        let mut last = None;
        let read = read(&paths, &ReadOptions::default(), &mut |mut row| {
            last = row.pop();
            ControlFlow::Continue(())
        });
        assert_eq!((read.unwrap().rows, last), (1, Some(SystemValue::Null)));
    }

    #[test]
    fn missing_file_is_named() {
        let paths = SystemPaths { passwd: "/nowhere/passwd".into(), ..SystemPaths::default() };
        let error = read(&paths, &ReadOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap_err();
        insta::assert_snapshot!(
            error,
            @r#"table "users" cannot be read: /nowhere/passwd: No such file or directory (os error 2)"#
        );
    }
}
