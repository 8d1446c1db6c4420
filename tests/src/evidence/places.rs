//! Where things lie.

use std::env;
use std::path::{Path, PathBuf};

/// Where the workspace, the shared data and the build's output lie.
#[derive(Clone, Debug)]
pub struct Places {
    /// The folder of the workspace's `Cargo.toml`.
    pub workspace: PathBuf,
    /// The folder of shared data, whether or not it is there.
    pub shared: PathBuf,
    /// Where cargo puts optimized binaries.
    pub release: PathBuf,
}

impl Places {
    /// Finds them: the data by `EPITOME_SHARED`, by default `../shared` beside the workspace.
    #[must_use]
    pub fn find() -> Self {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let workspace = tests.parent().unwrap_or(tests).to_path_buf();
        let shared = match env::var_os("EPITOME_SHARED").filter(|folder| !folder.is_empty()) {
            Some(folder) => PathBuf::from(folder),
            None => workspace.join("../shared"),
        };
        let target = match env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty()) {
            Some(folder) => workspace.join(folder),
            None => workspace.join("target"),
        };
        Self { workspace, shared, release: target.join("release") }
    }

    /// The optimized binary of this name, after it has been built.
    #[must_use]
    pub fn binary(&self, name: &str) -> PathBuf {
        self.release.join(format!("{name}{}", env::consts::EXE_SUFFIX))
    }

    /// Where long-lived by-products go: the build's folder.
    #[must_use]
    pub fn target(&self) -> &Path {
        self.release.parent().unwrap_or(&self.release)
    }
}
