//! `nexus3 rpc …`: every method of a running server as a command. The agent or session comes first, the
//! main value second; all else is a flag named as the method's member.

mod agents;
mod confirmations;
mod discover;
mod mcp;
mod messages;
mod server;
mod sessions;
mod settings;

use clap::Subcommand;
pub use discover::usable;
pub use sessions::Sessions;

use super::Failed;
use super::connection::{Connected, Connection};
use super::watch;
use crate::world::World;

#[derive(Debug, Subcommand)]
pub enum Command {
    Detect(server::Detect),
    Discover(discover::Discover),
    List(agents::List),
    Create(Box<agents::Create>),
    Destroy(agents::Destroy),
    Status(agents::Status),
    Send(messages::Send),
    Cancel(messages::Cancel),
    Messages(messages::Messages),
    Compact(messages::Compact),
    Watch(watch::Watch),
    Confirmations(confirmations::Confirmations),
    Confirm(confirmations::Confirm),
    Sessions(Sessions),
    Save(sessions::Save),
    Load(sessions::Load),
    Clone(sessions::Clone),
    Rename(sessions::Rename),
    Delete(sessions::Delete),
    Permissions(settings::Permissions),
    Cwd(settings::Cwd),
    Prompt(settings::Prompt),
    Model(settings::Model),
    Mcp(mcp::Mcp),
    Shutdown(server::Shutdown),
    Call(server::Call),
}

pub async fn run(world: &World, arguments: Connected<Command>) -> Result<(), Failed> {
    let Connected { server, command } = arguments;
    // These ask without a token, or with several.
    let command = match command {
        Command::Detect(detect) => return detect.run(world, &server).await,
        Command::Discover(discover) => return discover.run(world, &server).await,
        command => command,
    };
    let connection = server.connect(world)?;
    command.run(&connection).await
}

impl Command {
    /// Runs what asks one server, with its token.
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        Box::pin(self.run_on(connection)).await
    }

    async fn run_on(self, connection: &Connection) -> Result<(), Failed> {
        match self {
            Self::Detect(_) | Self::Discover(_) => unreachable!("they have run by now"),
            Self::List(list) => list.run(connection).await,
            Self::Create(create) => create.run(connection).await,
            Self::Destroy(destroy) => destroy.run(connection).await,
            Self::Status(status) => status.run(connection).await,
            Self::Send(send) => send.run(connection).await,
            Self::Cancel(cancel) => cancel.run(connection).await,
            Self::Messages(messages) => messages.run(connection).await,
            Self::Compact(compact) => compact.run(connection).await,
            Self::Watch(watch) => watch.run(connection).await,
            Self::Confirmations(confirmations) => confirmations.run(connection).await,
            Self::Confirm(confirm) => confirm.run(connection).await,
            Self::Sessions(sessions) => sessions.run(connection).await,
            Self::Save(save) => save.run(connection).await,
            Self::Load(load) => load.run(connection).await,
            Self::Clone(clone) => clone.run(connection).await,
            Self::Rename(rename) => rename.run(connection).await,
            Self::Delete(delete) => delete.run(connection).await,
            Self::Permissions(permissions) => permissions.run(connection).await,
            Self::Cwd(cwd) => cwd.run(connection).await,
            Self::Prompt(prompt) => prompt.run(connection).await,
            Self::Model(model) => model.run(connection).await,
            Self::Mcp(mcp) => mcp.run(connection).await,
            Self::Shutdown(shutdown) => shutdown.run(connection).await,
            Self::Call(call) => call.run(connection).await,
        }
    }
}
