//! What somebody allowed an agent for as long as it exists, beyond what its level gives freely.
//! They cover calls that would need a confirmation, and nothing that is forbidden.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Subject;

/// Kept and restored with their agent; no child ever has its parent's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Allowances {
    /// Files that it may write, by their paths without links.
    pub write_files: BTreeSet<PathBuf>,
    /// Directories below which it may write.
    pub write_directories: BTreeSet<PathBuf>,
    /// By program, the directories in which it may be run.
    pub exec_directories: BTreeMap<String, BTreeSet<PathBuf>>,
    /// MCP servers of which it may call every tool.
    pub mcp_servers: BTreeSet<String>,
    /// Tools of MCP servers, as models know them.
    pub mcp_tools: BTreeSet<String>,
}

impl Allowances {
    /// Adds what else was allowed.
    pub fn add(&mut self, more: &Self) {
        let Self { write_files, write_directories, exec_directories, mcp_servers, mcp_tools } =
            more;
        self.write_files.extend(write_files.iter().cloned());
        self.write_directories.extend(write_directories.iter().cloned());
        for (program, directories) in exec_directories {
            let known = self.exec_directories.entry(program.clone()).or_default();
            known.extend(directories.iter().cloned());
        }
        self.mcp_servers.extend(mcp_servers.iter().cloned());
        self.mcp_tools.extend(mcp_tools.iter().cloned());
    }

    /// Whether a file, by its path without links, may be written.
    pub fn cover_write(&self, resolved: &Path) -> bool {
        self.write_files.contains(resolved)
            || self.write_directories.iter().any(|dir| resolved.starts_with(dir))
    }

    /// Whether what would need a confirmation was allowed for good.
    pub fn cover(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Program { name, directory } => self.cover_program(name, directory),
            Subject::Writes(paths) => paths.iter().all(|path| self.cover_write(path)),
            Subject::Mcp { server, tool } => {
                self.mcp_servers.contains(server) || self.mcp_tools.contains(tool)
            }
            Subject::Call | Subject::Shell { .. } => false,
        }
    }

    /// Whether a program may be run in a directory.
    pub fn cover_program(&self, program: &str, cwd: &Path) -> bool {
        let allowed = self.exec_directories.get(program);
        allowed.is_some_and(|dirs| dirs.iter().any(|dir| cwd.starts_with(dir)))
    }
}
