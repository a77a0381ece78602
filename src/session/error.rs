//! What can be wrong with a session file. No message names a path of the host: they are told to clients.

use std::io;

use super::file::SCHEMA_VERSION;
use super::name::Session;
use crate::limits::{SESSION_FILE_BYTES_MAX, SESSION_UNKNOWN_BYTES_MAX};

/// What is wrong with the content of a file.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    #[error("it is no JSON of a session")]
    NotJson {
        #[source]
        source: serde_json::Error,
    },
    #[error("it is no JSON object")]
    NotAnObject,
    #[error("`schema_version` is missing or no version")]
    NoVersion,
    #[error(
        "it has version {found}, and this server knows versions up to {SCHEMA_VERSION}: use a newer server, or delete the session"
    )]
    Newer { found: u64 },
    #[error("`{member}`: {problem}")]
    Member { member: String, problem: String },
    #[error("its conversation is broken: {problem}")]
    Conversation { problem: String },
    #[error("it has more than {SESSION_FILE_BYTES_MAX} bytes")]
    TooLarge,
    #[error(
        "members that this server does not know have more than {SESSION_UNKNOWN_BYTES_MAX} bytes"
    )]
    TooMuchUnknown,
}

impl ContentError {
    /// Whether the file can be of no use to anybody, as opposed to being of no use to us.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::NotJson { .. }
            | Self::NotAnObject
            | Self::NoVersion
            | Self::Member { .. }
            | Self::Conversation { .. } => true,
            Self::Newer { .. } | Self::TooLarge | Self::TooMuchUnknown => false,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("the session file of {session} is damaged and was set aside: {source}")]
    Damaged { session: Session, source: ContentError },
    #[error("the session file of {session} cannot be used: {source}")]
    Unusable { session: Session, source: ContentError },
    /// A link, a directory, a pipe.
    #[error("the session file of {session} is no regular file")]
    NotAFile { session: Session },
    #[error("Session already exists: {session}")]
    Exists { session: Session },
    #[error("the session file of {session} cannot be read or written")]
    Disk {
        session: Session,
        #[source]
        source: io::Error,
    },
    #[error("the directory of sessions cannot be read")]
    List {
        #[source]
        source: io::Error,
    },
}
