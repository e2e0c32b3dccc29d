//! The command with which a client can start this program again, which depends on how the program was installed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

const PROGRAM: &str = "tidegate";

/// A command and its first arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartCommand {
    pub(crate) command: PathBuf,
    pub(crate) args: Vec<String>,
}

impl StartCommand {
    /// The command for the running program.
    ///
    /// # Errors
    /// If the path of the program is unknown.
    pub(crate) fn current() -> std::io::Result<Self> {
        let program = std::env::current_exe()?;
        Ok(Self::for_program(&program, std::env::var_os("PATH").as_deref(), cfg!(windows)))
    }

    /// npx, uvx and pipx keep the program in a cache that they empty at any time, so the entry must contain their
    /// command. Otherwise it contains a path: that of the search path where it leads to the program, because package
    /// managers such as Homebrew change the folder behind it with each version.
    fn for_program(program: &Path, search_path: Option<&OsStr>, is_windows: bool) -> Self {
        let runner = |words: &[&str]| {
            let mut words = words.iter().map(|word| (*word).to_owned());
            Self { command: words.next().unwrap_or_default().into(), args: words.collect() }
        };
        match package_runner(program) {
            // Clients cannot start a script of Windows themselves.
            Some(PackageRunner::Npx) if is_windows => return runner(&["cmd", "/c", "npx", "-y", PROGRAM]),
            Some(PackageRunner::Npx) => return runner(&["npx", "-y", PROGRAM]),
            Some(PackageRunner::Uvx) => return runner(&["uvx", PROGRAM]),
            Some(PackageRunner::Pipx) => return runner(&["pipx", "run", PROGRAM]),
            None => {}
        }
        let file = program.file_name().unwrap_or(OsStr::new(PROGRAM));
        let own = program.canonicalize();
        let leads_here = |path: &PathBuf| own.as_ref().is_ok_and(|own| path.canonicalize().is_ok_and(|it| it == *own));
        let folders = search_path.into_iter().flat_map(std::env::split_paths);
        let found = folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(file)).find(leads_here);
        Self { command: found.unwrap_or_else(|| program.to_owned()), args: Vec::new() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PackageRunner {
    Npx,
    Uvx,
    Pipx,
}

/// The program that runs packages without an installation whose cache contains `program`.
fn package_runner(program: &Path) -> Option<PackageRunner> {
    let parts: Vec<&str> = program.components().filter_map(|part| part.as_os_str().to_str()).collect();
    let has = |is_part: fn(&str) -> bool| parts.iter().any(|part| is_part(part));
    if has(|part| part == "_npx") {
        Some(PackageRunner::Npx)
    } else if has(|part| part.starts_with("archive-v") || part.starts_with("environments-v")) {
        Some(PackageRunner::Uvx)
    } else if has(|part| part == "pipx") && has(|part| part == ".cache") {
        Some(PackageRunner::Pipx)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(program: &str, is_windows: bool) -> String {
        let start = StartCommand::for_program(Path::new(program), None, is_windows);
        let words: Vec<_> = std::iter::once(start.command.display().to_string()).chain(start.args).collect();
        words.join(" ")
    }

    #[test]
    fn package_runners_are_recognized_by_their_cache() {
        let npx = "/home/ann/.npm/_npx/5ea2613b69eb6cd8/node_modules/@tidegate/linux-x64/bin/tidegate";
        assert_eq!(check(npx, false), "npx -y tidegate");
        assert_eq!(check(npx, true), "cmd /c npx -y tidegate");
        assert_eq!(check("/home/ann/.cache/uv/archive-v0/Tz-Np-teC3PAD2Hq/bin/tidegate", false), "uvx tidegate");
        assert_eq!(check("/home/ann/.local/pipx/.cache/9c/bin/tidegate", false), "pipx run tidegate");
        for installed in [
            "/home/ann/.local/share/uv/tools/tidegate/bin/tidegate",
            "/home/ann/.local/share/pipx/venvs/tidegate/bin/tidegate",
            "/usr/lib/node_modules/tidegate/node_modules/@tidegate/linux-x64/bin/tidegate",
            "/usr/bin/tidegate",
        ] {
            assert_eq!(check(installed, false), installed);
        }
    }

    #[cfg(unix)]
    #[test]
    fn link_of_the_search_path_is_preferred() {
        let folder = tempfile::tempdir().unwrap();
        let (cellar, bin) = (folder.path().join("Cellar/tidegate/0.1.0/bin"), folder.path().join("bin"));
        std::fs::create_dir_all(&cellar).unwrap();
        std::fs::create_dir_all(&bin).unwrap();
        let program = cellar.join("tidegate");
        std::fs::write(&program, "").unwrap();
        std::os::unix::fs::symlink(&program, bin.join("tidegate")).unwrap();
        let start = StartCommand::for_program(&program, Some(bin.as_os_str()), false);
        assert_eq!(start.command, bin.join("tidegate"));
        let other = StartCommand::for_program(&program, Some(folder.path().as_os_str()), false);
        assert_eq!(other.command, program, "no such file on the path");
    }
}
