//! `nexus3 sessions …`: what is stored, on the server that runs, or else on one inside the command.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;
use serde::Deserialize;
use serde_json::{Value, json};

use super::connection::{Connected, Connection};
use super::rpc::Sessions;
use super::{Failed, conversation, inside, output};
use crate::rpc::method::{Method, PruneSessionsParams, ShowSessionParams};
use crate::session::SessionFile;
use crate::world::World;

#[derive(Debug, Subcommand)]
pub enum Command {
    List(Sessions),
    /// Shows a session: what its agent is, and what was said
    #[command(after_help = "Example:\n  nexus3 sessions show scout")]
    Show {
        /// Its name
        session: String,
    },
    /// Writes a session as the file that `load` takes elsewhere
    #[command(after_help = "Examples:\n  \
        nexus3 sessions export scout > scout.json\n  \
        nexus3 sessions export scout --output scout.json")]
    Export {
        /// Its name
        session: String,
        /// The file to write, which must not be there yet [default: stdout]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Removes what temporary and destroyed agents left, with their events and logs
    #[command(after_help = "Examples:\n  \
        nexus3 sessions prune --older-than 30d --dry-run\n  \
        nexus3 sessions prune --older-than 30d")]
    Prune {
        /// Only what was not used for so many days: 30d
        #[arg(long, value_name = "DAYS", value_parser = days)]
        older_than: u64,
        /// Only tells what would go
        #[arg(long)]
        dry_run: bool,
    },
}

impl Connected<Command> {
    pub async fn run(self, world: &World) -> Result<(), Failed> {
        let Self { server, command } = self;
        inside::anywhere(world, &server, async |connection: &Connection| {
            Box::pin(command.run(connection)).await
        })
        .await
    }
}

impl Command {
    async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let client = &connection.client;
        match self {
            Self::List(list) => list.run(connection).await?,
            Self::Show { session } => {
                let shown = show(connection, session).await?;
                let read = SessionFile::deserialize(&shown).context("this is no session")?;
                connection.show(&shown, || told(&read));
            }
            Self::Export { session, output } => {
                let shown = show(connection, session).await?;
                match output {
                    None => output::json(&shown),
                    Some(path) => write(&connection.world, &path, &shown)?,
                }
            }
            Self::Prune { older_than, dry_run } => {
                let params = PruneSessionsParams {
                    older_than_days: older_than,
                    dry_run: dry_run.then_some(true),
                };
                let pruned = connection.answered(client.prune_sessions(&params).await).await?;
                connection.show(&pruned, || {
                    let (count, bytes) = (pruned.removed.len(), pruned.bytes);
                    let done = if dry_run { "would be removed" } else { "removed" };
                    format!("{count} {done}, {bytes} bytes")
                });
            }
        }
        Ok(())
    }
}

/// The session as the server tells it, with all that this program does not know of.
async fn show(connection: &Connection, session_name: String) -> Result<Value, Failed> {
    let method = Method::ShowSession.name();
    let params = json!(ShowSessionParams { session_name });
    connection.answered(connection.client.call_by_name(None, method, params).await).await
}

fn told(session: &SessionFile) -> String {
    let facts = [
        ("agent", session.agent_id.to_string()),
        ("model", output::plain(&session.model)),
        ("preset", output::plain(&session.permission_preset)),
        ("cwd", output::plain(&session.working_directory.display().to_string())),
        ("changed", session.modified_at.to_string()),
    ];
    let said =
        (0..).zip(&session.messages).map(|(index, message)| conversation::told(index, message));
    let said: Vec<String> = said.collect();
    format!("{}\n\n{}", output::facts(&facts), said.join("\n"))
}

/// Never over a file that is there: what an agent has said may be nowhere else.
fn write(world: &World, path: &std::path::Path, session: &Value) -> anyhow::Result<()> {
    let path = world.environment.current_dir()?.join(path);
    let text = serde_json::to_string_pretty(session).expect("JSON can be written");
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let written = file.and_then(|mut file| writeln!(file, "{text}"));
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn days(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix('d').unwrap_or(text).parse();
    number.map_err(|_| "it must be a number of days, like 30d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_written_with_or_without_their_letter() {
        assert_eq!((days("30d"), days("30"), days("0d")), (Ok(30), Ok(30), Ok(0)));
        for bad in ["", "d", "-1d", "30h", "0.5d", "30dd"] {
            assert!(days(bad).is_err(), "{bad}");
        }
    }
}
