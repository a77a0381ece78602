//! Saved conversations: `sessions`, `save`, `load`, `clone`, `rename`, `delete`.

use clap::Args;
use jiff::Timestamp;

use crate::cli::connection::Connection;
use crate::cli::{Failed, output};
use crate::id::AgentId;
use crate::rpc::method::{
    CloneSessionParams, DeleteSessionParams, ListSessionsParams, LoadSessionParams,
    RenameSessionParams, SaveSessionParams, SessionEntry,
};

/// Lists the sessions that can be loaded, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  nexus3 rpc sessions --limit 10 --json\n  nexus3 sessions list"
)]
pub struct Sessions {
    /// The first to show, from 0
    #[arg(long, value_name = "N")]
    offset: Option<u64>,
    /// How many to show, at most 500 [default: 50]
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Also what temporary agents left
    #[arg(long)]
    include_temp: bool,
}

impl Sessions {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let Self { offset, limit, include_temp } = self;
        let params =
            ListSessionsParams { offset, limit, include_temp: include_temp.then_some(true) };
        let list = connection.answered(connection.client.list_sessions(&params).await).await?;
        connection.show(&list, || table(&list.sessions));
        connection.tell_rest(list.offset, list.sessions.len(), list.total);
        Ok(())
    }
}

/// Saves an agent's session, and prints its name
///
/// A temporary agent gets the session's name for good.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nexus3 rpc save scout\n  nexus3 rpc save .1 scout")]
pub struct Save {
    /// The agent's id
    agent: AgentId,
    /// The session's name [default: the agent's id]
    #[arg(value_name = "NAME")]
    session_name: Option<String>,
    /// Replaces a session of that name
    #[arg(long)]
    overwrite: bool,
}

impl Save {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let params = SaveSessionParams {
            agent_id: self.agent,
            session_name: self.session_name,
            overwrite: self.overwrite.then_some(true),
        };
        let saved = connection.answered(connection.client.save_session(&params).await).await?;
        connection.show(&saved, || saved.session_name.clone());
        Ok(())
    }
}

/// Makes an agent from a session, and prints its id
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 rpc load scout\n  \
    nexus3 rpc load scout second --model large\n  \
    nexus3 rpc load last-session")]
pub struct Load {
    /// The session's name; `last-session` is what a terminal followed last
    #[arg(value_name = "SESSION")]
    session_name: String,
    /// The agent's id [default: the session's name]
    #[arg(value_name = "ID")]
    agent_id: Option<AgentId>,
    /// Another preset than the session's
    #[arg(long)]
    preset: Option<String>,
    /// Another model than the session's
    #[arg(long)]
    model: Option<String>,
    /// Ends an agent that has this id
    #[arg(long)]
    overwrite: bool,
}

impl Load {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let params = LoadSessionParams {
            session_name: self.session_name,
            agent_id: self.agent_id,
            preset: self.preset,
            model: self.model,
            overwrite: self.overwrite.then_some(true),
        };
        let loaded = connection.answered(connection.client.load_session(&params).await).await?;
        connection.show(&loaded, || loaded.agent_id.to_string());
        Ok(())
    }
}

/// Copies a session, and prints the name of the copy
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nexus3 rpc clone scout second")]
pub struct Clone {
    /// The session's name
    #[arg(value_name = "SESSION")]
    src_session: String,
    /// The name of the copy
    #[arg(value_name = "NAME")]
    dest_session: String,
}

impl Clone {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let Self { src_session, dest_session } = self;
        let params = CloneSessionParams { src_session, dest_session };
        let cloned = connection.answered(connection.client.clone_session(&params).await).await?;
        connection.show(&cloned, || cloned.dest_session.clone());
        Ok(())
    }
}

/// Renames a session, and the agent that has it
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nexus3 rpc rename scout second")]
pub struct Rename {
    /// The session's name
    #[arg(value_name = "SESSION")]
    old_name: String,
    /// Its new name
    #[arg(value_name = "NAME")]
    new_name: String,
}

impl Rename {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let Self { old_name, new_name } = self;
        let params = RenameSessionParams { old_name, new_name };
        let renamed = connection.answered(connection.client.rename_session(&params).await).await?;
        connection.show(&renamed, || renamed.new_name.clone());
        Ok(())
    }
}

/// Deletes a session; an agent that has it goes on, unsaved
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nexus3 rpc delete scout")]
pub struct Delete {
    /// The session's name
    #[arg(value_name = "SESSION")]
    session_name: String,
}

impl Delete {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let params = DeleteSessionParams { session_name: self.session_name };
        let deleted = connection.answered(connection.client.delete_session(&params).await).await?;
        connection.show(&deleted, || deleted.session_name.clone());
        Ok(())
    }
}

fn table(sessions: &[SessionEntry]) -> String {
    if sessions.is_empty() {
        return "no sessions".to_owned();
    }
    let head = ["SESSION", "MESSAGES", "MODEL", "CHANGED", "CWD"];
    let rows = sessions.iter().map(|session| {
        [
            session.name.to_string(),
            session.message_count.to_string(),
            session.model.clone(),
            time(session.updated_at),
            output::plain(&session.cwd),
        ]
    });
    output::table(head, rows)
}

/// To the second, as the rest of the protocol writes times.
fn time(seconds: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what is no time of ours is shown as the first"
    )]
    let whole = seconds as i64;
    Timestamp::from_second(whole).unwrap_or_default().to_string()
}
