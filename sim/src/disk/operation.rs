//! What is done to a disk, as an observer sees it: just before it happens.

use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    pub kind: OperationKind,
    /// The name it goes by: of an open file or directory the one it was opened by.
    pub path: &'a Path,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperationKind {
    OpenDir,
    Open,
    Stat,
    List,
    ReadLink,
    MakeDir,
    MakeLink,
    SetMode,
    /// Of the old name; `RenameTo` of the new one follows at once.
    Rename,
    RenameTo,
    RemoveFile,
    RemoveDir,
    SyncDir,
    Read,
    Write,
    SetLen,
    Sync,
    Lock,
}

impl OperationKind {
    const ALL: [Self; 18] = [
        Self::OpenDir,
        Self::Open,
        Self::Stat,
        Self::List,
        Self::ReadLink,
        Self::MakeDir,
        Self::MakeLink,
        Self::SetMode,
        Self::Rename,
        Self::RenameTo,
        Self::RemoveFile,
        Self::RemoveDir,
        Self::SyncDir,
        Self::Read,
        Self::Write,
        Self::SetLen,
        Self::Sync,
        Self::Lock,
    ];

    /// The one that scenarios call so.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The word for it in scenarios and transcripts.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenDir => "open_dir",
            Self::Open => "open",
            Self::Stat => "stat",
            Self::List => "list",
            Self::ReadLink => "read_link",
            Self::MakeDir => "make_dir",
            Self::MakeLink => "make_link",
            Self::SetMode => "set_mode",
            Self::Rename => "rename",
            Self::RenameTo => "rename_to",
            Self::RemoveFile => "remove_file",
            Self::RemoveDir => "remove_dir",
            Self::SyncDir => "sync_dir",
            Self::Read => "read",
            Self::Write => "write",
            Self::SetLen => "set_len",
            Self::Sync => "sync",
            Self::Lock => "lock",
        }
    }

    /// Whether a read-only disk refuses it. Opening depends on the access asked for.
    pub fn changes(self) -> bool {
        match self {
            Self::MakeDir
            | Self::MakeLink
            | Self::SetMode
            | Self::Rename
            | Self::RenameTo
            | Self::RemoveFile
            | Self::RemoveDir
            | Self::Write
            | Self::SetLen => true,
            Self::OpenDir
            | Self::Open
            | Self::Stat
            | Self::List
            | Self::ReadLink
            | Self::SyncDir
            | Self::Read
            | Self::Sync
            | Self::Lock => false,
        }
    }
}
