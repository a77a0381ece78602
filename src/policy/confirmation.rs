//! What somebody is asked about a call, and what each answer means: which answers fit what the call is
//! about, and what an agent may do from then on. Pure.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Allowances, normal};
use crate::choice::Choice;

/// What a call is about, so that what was confirmed is what runs. Paths are absolute and without links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Nothing but the call itself.
    Call,
    /// These would be changed.
    Writes(Vec<PathBuf>),
    /// A program would be started there, under the name that allowances have for it.
    Program { name: String, directory: PathBuf },
    /// A command line, which may be anything, so that no other is like it.
    Shell { directory: PathBuf },
    /// A tool of an MCP server would be called, by the name that models know it by.
    Mcp { server: String, tool: String },
}

impl Subject {
    /// The answers that fit.
    pub fn options(&self) -> &'static [Choice] {
        match self {
            Self::Writes(_) => {
                &[Choice::AllowOnce, Choice::AllowFile, Choice::AllowDir, Choice::Deny]
            }
            Self::Program { .. } => &[Choice::AllowOnce, Choice::AllowExecCwd, Choice::Deny],
            Self::Mcp { .. } => {
                &[Choice::AllowOnce, Choice::AllowTool, Choice::AllowServer, Choice::Deny]
            }
            Self::Shell { .. } | Self::Call => &[Choice::AllowOnce, Choice::Deny],
        }
    }

    /// The paths that may be changed once this is confirmed.
    pub fn writes(&self) -> &[PathBuf] {
        match self {
            Self::Writes(paths) => paths,
            Self::Call | Self::Program { .. } | Self::Shell { .. } | Self::Mcp { .. } => &[],
        }
    }

    /// Where something is started.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Program { directory, .. } | Self::Shell { directory } => Some(directory),
            Self::Call | Self::Writes(_) | Self::Mcp { .. } => None,
        }
    }

    /// What is allowed for good by an answer; nothing by one that was not offered.
    pub fn allowance(&self, choice: Choice) -> Option<Allowances> {
        let mut allowed = Allowances::default();
        match (choice, self) {
            (Choice::AllowFile, Self::Writes(paths)) => {
                allowed.write_files.extend(paths.iter().cloned());
            }
            (Choice::AllowDir, Self::Writes(paths)) => {
                let of = |path: &PathBuf| path.parent().unwrap_or(path).to_owned();
                allowed.write_directories.extend(paths.iter().map(of));
            }
            (Choice::AllowExecCwd, Self::Program { name, directory }) => {
                let directories = allowed.exec_directories.entry(name.clone()).or_default();
                directories.insert(directory.clone());
            }
            (Choice::AllowTool, Self::Mcp { tool, .. }) => {
                allowed.mcp_tools.insert(tool.clone());
            }
            (Choice::AllowServer, Self::Mcp { server, .. }) => {
                allowed.mcp_servers.insert(server.clone());
            }
            (
                Choice::AllowOnce
                | Choice::AllowFile
                | Choice::AllowDir
                | Choice::AllowExecCwd
                | Choice::AllowTool
                | Choice::AllowServer
                | Choice::Deny
                | Choice::TimeoutDeny,
                _,
            ) => return None,
        }
        Some(allowed)
    }
}

/// The name of a program in allowances, as `exec` is given it. A relative path is another program in
/// every directory, and `git` started like this heeds its hooks, unlike the tool of that name.
pub fn exec_name(program: &str, directory: &Path) -> String {
    match program {
        "git" => "exec git".to_owned(),
        path if path.contains('/') => normal(directory, Path::new(path)).display().to_string(),
        name => name.to_owned(),
    }
}

/// What one call may do beyond what its agent may do freely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permit {
    Nothing,
    /// Somebody confirmed this, or allowed it for good.
    Confirmed(Arc<Subject>),
}

impl Permit {
    pub fn writes(&self) -> &[PathBuf] {
        match self {
            Self::Nothing => &[],
            Self::Confirmed(subject) => subject.writes(),
        }
    }

    /// The only directory in which something may be started, where there is one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Nothing => None,
            Self::Confirmed(subject) => subject.directory(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(subject: &Subject) -> Vec<(Choice, Allowances)> {
        let of = |choice: &Choice| Some((*choice, subject.allowance(*choice)?));
        subject.options().iter().filter_map(of).collect()
    }

    #[test]
    fn each_answer_allows_exactly_what_it_says() {
        let (a, b) = (PathBuf::from("/x/a"), PathBuf::from("/y/b"));
        let writes = Subject::Writes(vec![a.clone(), b.clone()]);
        let files = Allowances { write_files: [a, b].into(), ..Allowances::default() };
        let dirs = Allowances {
            write_directories: ["/x".into(), "/y".into()].into(),
            ..Allowances::default()
        };
        assert_eq!(allowed(&writes), [(Choice::AllowFile, files), (Choice::AllowDir, dirs)]);
        let directory = PathBuf::from("/p");
        let make = Subject::Program { name: "make".to_owned(), directory: directory.clone() };
        let exec = Allowances {
            exec_directories: [("make".to_owned(), [directory.clone()].into())].into(),
            ..Allowances::default()
        };
        assert_eq!(allowed(&make), [(Choice::AllowExecCwd, exec)]);
        for once in [Subject::Call, Subject::Shell { directory }] {
            assert_eq!(once.options(), [Choice::AllowOnce, Choice::Deny]);
            assert_eq!(allowed(&once), []);
            assert_eq!(once.allowance(Choice::AllowDir), None, "it was not offered");
        }
    }

    #[test]
    fn a_program_by_a_relative_path_is_another_one_elsewhere() {
        let name = |program| exec_name(program, Path::new("/p"));
        assert_eq!(name("make"), "make");
        assert_eq!(name("./run.sh"), "/p/run.sh");
        assert_eq!(name("/bin/ls"), "/bin/ls");
        assert_eq!(name("git"), "exec git", "the tool of that name runs no hooks");
    }
}
