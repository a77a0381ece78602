//! Saved sessions: conversations as files that can be carried elsewhere, with what their agents may do.
//! The database is the truth, these are exports of it: `file` is what stands in one, `directory` is
//! where they lie. It never decides what an agent gets of a file; the pool does.

mod directory; // where they lie
mod error; // what can be wrong with one
mod file; // what stands in one
mod mend; // conversations of strangers
mod name; // how they are called
mod notes; // what is still to be done to files

pub use directory::{Directory, Overwrite};
pub use error::{ContentError, SessionError};
pub use file::{Provenance, SCHEMA_VERSION, SessionFile, Summary};
pub use name::{LAST_SESSION, NameError, Session, SessionName};
pub use notes::{Noted, Rename};
