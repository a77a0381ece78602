//! Tools: what a model may ask an agent to do. One file per tool; this one is the traits and the
//! registry. A tool never decides whether it may run: that is `policy`, and for paths `place`.

mod schema; // arguments against what a tool takes
mod read_file;
mod tail;
mod file_info;
mod list_directory;
mod glob;
mod search_text;
mod write_file;
mod append_file;
mod edit_file;
mod edit_file_batch;
mod edit_lines;
mod regex_replace;
mod patch;
mod copy_file;
mod rename;
mod mkdir;
mod programs; // exec, run_python, shell_UNSAFE, git
pub mod mcp; // tools of MCP servers
pub mod team; // nexus_create, nexus_send, nexus_status, nexus_cancel, nexus_destroy, nexus_shutdown
mod sleep;
mod echo;
mod decide; // about one call
mod progress; // how far one is
mod change; // what tools that change files have in common
pub mod edit; // what an edit makes of a content
mod skipped; // what a search did not look at
mod ignored; // what ignore files say
mod walk; // through a directory tree
mod pattern; // globs
pub mod text; // out of files and into results
pub mod workplace; // where an agent's tools work
pub mod place; // where a path leads, and whether it may
pub mod seen; // what an agent has read
pub mod error; // what is wrong with a file

use std::marker::PhantomData;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Semaphore;

pub use decide::Question;
use decide::{Admitted, Examined};
use error::FileError;
use mcp::{Guest, Servers};
pub use programs::{Kept, asked_for};
pub use progress::{Progress, Tell};
use team::Membership;
use workplace::{Site, Turns, Workplace};

use crate::limits::{FILE_JOBS_MAX, PROGRAMS_MAX};
use crate::message::{ToolCall, ToolDefinition};
use crate::policy::{Decision, Leave, Permissions, Permit, Side};
use crate::world::{BoxFuture, World};

/// The argument that any tool call may carry to let its whole batch run at the same time. It belongs
/// to the batch, and no tool sees it.
pub const PARALLEL_ARGUMENT: &str = "_parallel";

/// What a model is told of a call that nobody confirmed as it is now.
const UNCONFIRMED: &str = "it needs a confirmation that it does not have";

/// What a model is told of a call that began when its agent could do more.
const WITHDRAWN: &str = "It was ended: your permissions were reduced meanwhile.";

/// What a tool gave back. An `Err` is shown to the model as a failed call, in these words.
pub type ToolOutput = Result<String, String>;

trait Tool: Send + Sync {
    fn definition(&self) -> ToolDefinition;
    fn effect(&self) -> Effect {
        Effect::None
    }
    /// What the agent's level says to a call with these arguments, which fit the schema. Asked with no
    /// arguments as well: a tool that then says `Never` does not exist for the agent.
    fn leave(&self, _arguments: &Value, _permissions: &Permissions) -> Leave {
        Leave::Free
    }
    /// Whether it can be of use to an agent whose level allows it. One that cannot is not shown.
    fn is_of_use(&self, _permissions: &Permissions) -> bool {
        true
    }
    /// What a call waits for that does not end by itself.
    fn waits(&self, _arguments: &Value) -> Waits {
        Waits::ForItself
    }
    /// What the rule about other agents says to a call.
    fn target(&self, _arguments: &Value, _workplace: &Workplace) -> Result<(), Decision> {
        Ok(())
    }
    /// What the rules about paths say to a call, and what it is about, without running it. Where the
    /// leave is `Confirm`, the answers that somebody can give follow from that; a tool that says nothing
    /// here can be allowed once or denied.
    fn examine(
        &self,
        _arguments: Value,
        _workplace: &Arc<Workplace>,
    ) -> BoxFuture<'static, Result<Examined, Decision>> {
        Box::pin(std::future::ready(Ok(Examined::of_call())))
    }
    /// The arguments of a call as they fit the schema, or what is wrong with them.
    fn fitting(&self, definition: &ToolDefinition, given: &Value) -> Result<Value, String> {
        schema::fitting(definition, given)
    }
    /// [`Self::run`] for a tool that has something to tell before it ends.
    fn run_telling(
        &self,
        arguments: Value,
        workplace: &Arc<Workplace>,
        permit: Permit,
        _tell: Tell,
    ) -> BoxFuture<'static, ToolOutput> {
        self.run(arguments, workplace, permit)
    }
    /// Runs one call, whose arguments fit the schema and which nobody needs to confirm any more, as far
    /// as that goes by its leave. Dropping the future cancels it.
    fn run(
        &self,
        arguments: Value,
        workplace: &Arc<Workplace>,
        permit: Permit,
    ) -> BoxFuture<'static, ToolOutput>;
}

/// The arguments of a tool that works on files.
trait OnFiles: DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    const DESCRIPTION: &'static str;
    const EFFECT: Effect = Effect::None;
    const PATHS: Wanted;
    /// Does the work, off the async threads: it may take its time, but asks the site now and then
    /// whether somebody still waits.
    fn work(self, site: &Site) -> Result<String, FileError>;
}

/// The arguments of a tool that are paths, and what it wants with each.
type Wanted = &'static [(&'static str, Side)];

/// What a tool does to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    None,
    /// It exists only for those who may write somewhere.
    Changes,
}

/// What ends a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Its own work, which has its time.
    ForItself,
    /// A turn of another agent, which has a time of its own.
    ForAgents,
}

/// The tool whose arguments are `T`.
struct FileTool<T>(PhantomData<fn() -> T>);

impl<T: OnFiles> Tool for FileTool<T> {
    fn definition(&self) -> ToolDefinition {
        schema::definition::<T>(T::NAME, T::DESCRIPTION)
    }

    fn effect(&self) -> Effect {
        T::EFFECT
    }

    fn examine(
        &self,
        arguments: Value,
        workplace: &Arc<Workplace>,
    ) -> BoxFuture<'static, Result<Examined, Decision>> {
        workplace.run(T::NAME, Effect::None, Permit::Nothing, move |site| {
            decide::paths(site, T::NAME, T::PATHS, &arguments)
        })
    }

    fn run(
        &self,
        arguments: Value,
        workplace: &Arc<Workplace>,
        permit: Permit,
    ) -> BoxFuture<'static, ToolOutput> {
        workplace.run(T::NAME, T::EFFECT, permit, move |site| {
            site.check_enabled().map_err(|error| error.to_string())?;
            let examined = decide::paths(site, T::NAME, T::PATHS, &arguments);
            let examined = examined.map_err(|decision| decision.reason)?;
            if examined.needs_confirmation(Leave::Free) {
                return Err(match site.permit() {
                    Permit::Nothing => decide::unconfirmed(T::NAME),
                    Permit::Confirmed(_) => decide::leads_elsewhere(T::NAME),
                });
            }
            let arguments: T = schema::typed(T::NAME, arguments)?;
            arguments.work(site).map_err(|error| error.to_string())
        })
    }
}

fn on_files<T: OnFiles>() -> Arc<dyn Tool> {
    Arc::new(FileTool::<T>(PhantomData))
}

/// A tool, and what models are told of it.
type Entry = (ToolDefinition, Arc<dyn Tool>);

/// All tools there are, in the order models see them.
pub struct Tools {
    registered: Vec<Entry>,
    /// Those that others run, where there are any.
    servers: Option<Arc<Servers>>,
    /// Places for calls that use files. They share the threads of the blocking seam with the store,
    /// which must not have to wait for a hundred searches.
    file_jobs: Arc<Semaphore>,
    /// The place for the one call that changes files.
    changes: Arc<Semaphore>,
    /// Places for programs.
    programs: Arc<Semaphore>,
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Tools {
    #[expect(clippy::new_without_default, reason = "they are made once, for a server")]
    pub fn new() -> Self {
        let tools: [Arc<dyn Tool>; 28] = [
            on_files::<read_file::ReadFile>(),
            on_files::<tail::Tail>(),
            on_files::<file_info::FileInfo>(),
            on_files::<list_directory::ListDirectory>(),
            on_files::<glob::Glob>(),
            on_files::<search_text::SearchText>(),
            on_files::<write_file::WriteFile>(),
            on_files::<append_file::AppendFile>(),
            on_files::<edit_file::EditFile>(),
            on_files::<edit_file_batch::EditFileBatch>(),
            on_files::<edit_lines::EditLines>(),
            on_files::<regex_replace::RegexReplace>(),
            on_files::<patch::Patch>(),
            on_files::<copy_file::CopyFile>(),
            on_files::<rename::Rename>(),
            on_files::<mkdir::Mkdir>(),
            programs::tool::<programs::Exec>(),
            programs::tool::<programs::RunPython>(),
            programs::tool::<programs::Shell>(),
            programs::tool::<programs::Git>(),
            team::tool::<team::CreateAgentParams>(),
            team::tool::<team::NexusSend>(),
            team::tool::<team::NexusStatus>(),
            team::tool::<team::NexusCancel>(),
            team::tool::<team::NexusDestroy>(),
            team::tool::<team::NexusShutdown>(),
            Arc::new(sleep::Sleep),
            Arc::new(echo::Echo),
        ];
        Self {
            registered: tools.into_iter().map(|tool| (tool.definition(), tool)).collect(),
            servers: None,
            file_jobs: Arc::new(Semaphore::new(FILE_JOBS_MAX)),
            changes: Arc::new(Semaphore::new(1)),
            programs: Arc::new(Semaphore::new(PROGRAMS_MAX)),
        }
    }

    /// The same, and what MCP servers offer.
    #[must_use]
    pub fn beside(self, servers: Servers) -> Self {
        Self { servers: Some(Arc::new(servers)), ..self }
    }

    /// Of those that are ours.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.registered.iter().map(|(definition, _)| definition.name.as_ref())
    }

    /// The MCP servers, whose tools are offered beside ours.
    pub fn servers(&self) -> Option<&Arc<Servers>> {
        self.servers.as_ref()
    }

    /// Changes whenever [`Self::shown`] may, permissions aside.
    pub fn generation(&self) -> u64 {
        self.servers.as_ref().map_or(0, |servers| servers.generation())
    }

    /// The definitions of the tools of ours that there are for an agent.
    pub fn definitions(&self, permissions: &Permissions) -> Arc<[ToolDefinition]> {
        let open = self.registered.iter().filter(|entry| is_open(entry, permissions));
        open.map(|(definition, _)| definition.clone()).collect()
    }

    /// The definitions of all tools that there are for an agent at this moment.
    pub fn shown(&self, permissions: &Permissions, workplace: &Workplace) -> Arc<[ToolDefinition]> {
        self.of(permissions, workplace).map(|(definition, _)| definition).collect()
    }

    fn of(&self, permissions: &Permissions, workplace: &Workplace) -> impl Iterator<Item = Entry> {
        let theirs = workplace.guest().map(Guest::tools).unwrap_or_default();
        let all = self.registered.iter().cloned().chain(theirs);
        all.filter(|entry| is_open(entry, permissions))
    }

    /// What a call waits for, by a tool that there is.
    pub fn waits(&self, call: &ToolCall) -> Waits {
        let named = self.registered.iter().find(|(definition, _)| definition.name == call.name);
        named.map_or(Waits::ForItself, |(_, tool)| tool.waits(&call.arguments))
    }

    /// A workplace for one agent.
    pub fn workplace(
        &self,
        world: &World,
        permissions: &Permissions,
        membership: Membership,
    ) -> Arc<Workplace> {
        let turns = Turns {
            jobs: self.file_jobs.clone(),
            changes: self.changes.clone(),
            programs: self.programs.clone(),
        };
        let guest = self.servers.as_ref().map(Guest::of);
        Arc::new(Workplace::new(world, turns, permissions, (membership, guest)))
    }

    /// [`Self::run_telling`] nobody.
    pub fn run(
        &self,
        call: &ToolCall,
        permissions: &Permissions,
        workplace: &Arc<Workplace>,
        permit: Permit,
    ) -> BoxFuture<'static, ToolOutput> {
        self.run_telling(call, permissions, workplace, (permit, Tell::nobody()))
    }

    /// Runs a call with what was confirmed of it, or says what is wrong with it in words that help the
    /// model to do better.
    pub fn run_telling(
        &self,
        call: &ToolCall,
        permissions: &Permissions,
        workplace: &Arc<Workplace>,
        (permit, tell): (Permit, Tell),
    ) -> BoxFuture<'static, ToolOutput> {
        let Admitted { tool, arguments, leave } = match self.admit(call, permissions, workplace) {
            Ok(admitted) => admitted,
            Err(decision) => return Box::pin(std::future::ready(Err(decision.reason))),
        };
        match (leave, permit) {
            (Leave::Free, permit) | (Leave::Confirm, permit @ Permit::Confirmed(_)) => {
                tool.run_telling(arguments, workplace, permit, tell)
            }
            (Leave::Confirm | Leave::Never, _) => {
                let workplace = Arc::clone(workplace);
                let unconfirmed = decide::unconfirmed(&call.name);
                Box::pin(async move {
                    let examined = tool.examine(arguments.clone(), &workplace).await;
                    let examined = examined.map_err(|decision| decision.reason)?;
                    if examined.needs_confirmation(leave) {
                        return Err(unconfirmed);
                    }
                    // Somebody allowed it for good, and what was looked at now is what runs.
                    let permit = Permit::Confirmed(Arc::new(examined.subject));
                    tool.run_telling(arguments, &workplace, permit, tell).await
                })
            }
        }
    }
}

/// Whether a tool exists for an agent with these permissions.
fn is_open((definition, tool): &Entry, permissions: &Permissions) -> bool {
    decide::is_open(tool.as_ref(), permissions)
        && tool.is_of_use(permissions)
        && !permissions.rights().disabled_tools.contains(definition.name.as_ref())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Weak;

    use serde_json::json;
    use tokio_util::task::TaskTracker;

    use super::team::{Act, Team};
    use super::*;
    use crate::config::PermissionsConfig;
    use crate::id::AgentId;
    use crate::policy::{Grant, Presets, Refusal};

    const READING: &str = "read_file, tail, file_info, list_directory, glob, search_text";
    const WRITING: &str = "write_file, append_file, edit_file, edit_file_batch, edit_lines, \
        regex_replace, patch, copy_file, rename, mkdir";

    const PROGRAMS: &str = "exec, run_python, shell_UNSAFE, git";
    const TEAM: &str = "nexus_create, nexus_send, nexus_status, nexus_cancel, nexus_destroy, \
        nexus_shutdown";

    /// Nobody's team.
    struct Nobody;

    impl Team for Nobody {
        fn may(&self, _: &AgentId, _: &Act) -> Result<(), Refusal> {
            Ok(())
        }

        fn may_give(&self, _: &AgentId, _: &Act, _: &Path) -> Result<(), String> {
            Ok(())
        }

        fn has_left(&self, _: &AgentId, _: &Act) -> Result<(), String> {
            Ok(())
        }

        fn act(
            self: Arc<Self>,
            _: AgentId,
            _: Act,
            _: TaskTracker,
        ) -> BoxFuture<'static, ToolOutput> {
            Box::pin(std::future::ready(Err("There is nobody.".to_owned())))
        }
    }

    fn permissions(preset: &str, disabled: &[&str]) -> Permissions {
        let presets = Presets::new(&PermissionsConfig::default()).unwrap();
        let preset = Arc::clone(presets.get(preset).unwrap());
        let mut grant = Grant::new(preset, "/".into(), Vec::new());
        grant.disabled_tools.extend(disabled.iter().map(|name| (*name).to_owned()));
        Permissions::new(grant, None, &[])
    }

    fn call(name: &str, arguments: Value) -> ToolCall {
        ToolCall { id: "1".to_owned(), name: name.to_owned(), arguments }
    }

    #[tokio::test]
    async fn wrong_calls_are_answered_with_guidance() {
        let world = crate::world::real::world().expect("a test runs in a runtime");
        let tools = Tools::new();
        let trusted = permissions("trusted", &[]);
        let alone = Membership::new(AgentId::temp(1), Weak::<Nobody>::new());
        let workplace = tools.workplace(&world, &trusted, alone);
        let unknown =
            tools.run(&call("fly", json!({})), &trusted, &workplace, Permit::Nothing).await;
        let all = format!("{READING}, {WRITING}, {PROGRAMS}, {TEAM}, sleep, echo");
        assert_eq!(unknown, Err(format!("Unknown tool: fly. Tools you have: {all}.")));
        let lacking = permissions("worker", &["echo"]);
        let message = json!({"message": "x", "_parallel": true});
        let refused =
            tools.run(&call("echo", message.clone()), &lacking, &workplace, Permit::Nothing).await;
        let others = format!("{READING}, sleep");
        assert_eq!(refused, Err(format!("Unknown tool: echo. Tools you have: {others}.")));
        let not_an_object =
            tools.run(&call("echo", json!("x")), &trusted, &workplace, Permit::Nothing).await;
        assert_eq!(not_an_object, Err("The arguments of echo must be one JSON object.".to_owned()));
        let run = tools.run(&call("echo", message), &trusted, &workplace, Permit::Nothing).await;
        assert_eq!(run, Ok("x".to_owned()));
    }

    #[test]
    fn every_schema_is_closed_and_knows_parallel() {
        for definition in Tools::new().definitions(&permissions("trusted", &[])).iter() {
            assert_eq!(definition.parameters["additionalProperties"], false, "{}", definition.name);
            assert_eq!(definition.parameters["properties"]["_parallel"]["type"], "boolean");
        }
    }
}
