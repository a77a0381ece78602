//! `nexus3 rpc …`: every method of a running server as a command. The agent or session comes first, the
//! main value second; all else is a flag named as the method's member.

mod agents;
mod confirmations;
mod discover;
mod messages;
mod server;
mod sessions;
mod settings;

use clap::Subcommand;
pub use sessions::Sessions;

use super::Failed;
use super::connection::Connected;
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
    let connection = &connection;
    match command {
        Command::Detect(_) | Command::Discover(_) => unreachable!("they have run by now"),
        Command::List(list) => list.run(connection).await,
        Command::Create(create) => create.run(connection).await,
        Command::Destroy(destroy) => destroy.run(connection).await,
        Command::Status(status) => status.run(connection).await,
        Command::Send(send) => send.run(connection).await,
        Command::Cancel(cancel) => cancel.run(connection).await,
        Command::Messages(messages) => messages.run(connection).await,
        Command::Compact(compact) => compact.run(connection).await,
        Command::Watch(watch) => watch.run(connection).await,
        Command::Confirmations(confirmations) => confirmations.run(connection).await,
        Command::Confirm(confirm) => confirm.run(connection).await,
        Command::Sessions(sessions) => sessions.run(connection).await,
        Command::Save(save) => save.run(connection).await,
        Command::Load(load) => load.run(connection).await,
        Command::Clone(clone) => clone.run(connection).await,
        Command::Rename(rename) => rename.run(connection).await,
        Command::Delete(delete) => delete.run(connection).await,
        Command::Permissions(permissions) => permissions.run(connection).await,
        Command::Cwd(cwd) => cwd.run(connection).await,
        Command::Prompt(prompt) => prompt.run(connection).await,
        Command::Model(model) => model.run(connection).await,
        Command::Shutdown(shutdown) => shutdown.run(connection).await,
        Command::Call(call) => call.run(connection).await,
    }
}
