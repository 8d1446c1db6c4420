//! Where the workspace lies, and which files belong to it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::StepError;

/// The folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty());
    root().join(named.unwrap_or_else(|| "target".into()))
}

/// The files that are committed or could be, relative to `root`, sorted; what `.gitignore` names is left out.
pub(crate) fn files(root: &Path) -> Result<Vec<PathBuf>, StepError> {
    let output = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .map_err(|source| StepError::Start { program: "git", source })?;
    if !output.status.success() {
        return Err(StepError::Exit(output.status.code().unwrap_or(1)));
    }
    let names = String::from_utf8_lossy(&output.stdout);
    let mut files: Vec<PathBuf> = names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        // Deleted but not yet committed.
        .filter(|path| root.join(path).is_file())
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// The text of a file of the workspace.
pub(crate) fn read(root: &Path, path: impl AsRef<Path>) -> Result<String, StepError> {
    let path = path.as_ref();
    std::fs::read_to_string(root.join(path))
        .map_err(|source| StepError::Read { path: path.to_path_buf(), source })
}
