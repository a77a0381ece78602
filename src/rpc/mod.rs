//! A JSON-RPC body to a reply. `wire` reads the envelope, `method` is the API, `code` gives every
//! error its number; `global` and `per_agent` do what the methods say.
//! It knows no socket: HTTP hands it a caller, a route and a body.

pub mod caller;
pub mod code;
mod confirmations;
mod global;
mod load;
mod mcp;
pub mod method;
pub mod openrpc;
mod params;
mod per_agent;
mod permissions;
mod session_changes;
mod sessions;
mod settings;
pub mod wire;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use caller::Caller;
use code::Code;
use load::{Executing, Place};
use method::{Load, Method, Scope};
use wire::{Body, Entry, ErrorObject, Id, Params, Request};

use crate::agent::{AgentHandle, outcome};
use crate::id::AgentId;
use crate::pool::{Pool, RestoreError};
use crate::record::{CallSeen, LeftOut, Recorder};
use crate::world::{Chance, Use};

pub struct Rpc {
    pool: Arc<Pool>,
    chance: Arc<dyn Chance>,
    executing: Arc<Executing>,
    recorder: Option<Recorder>,
}

impl std::fmt::Debug for Rpc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rpc")
    }
}

/// Where a body was posted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    Global,
    /// An agent, by the id in the path as it was written.
    Agent(&'a str),
}

/// What goes back over HTTP.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    Answer(String),
    /// There were only notifications.
    NoContent,
    NotJsonRpc(String),
    NotFound(String),
    /// Our own failure before the request was looked at.
    Failed(String),
    Busy(String),
}

/// An agent that a path names and that cannot be had.
#[derive(Debug)]
pub enum Missing {
    Unknown(ErrorObject),
    /// It is on disk, and could not be brought back.
    Broken(ErrorObject),
    Stopping,
}

impl Missing {
    fn reply(self) -> Reply {
        let told = |error| wire::answer(&Id::Null, &Err(error));
        match self {
            Self::Unknown(error) => Reply::NotFound(told(error)),
            Self::Broken(error) => Reply::Failed(told(error)),
            Self::Stopping => {
                Reply::Busy(told(ErrorObject::new(Code::Overloaded, "the server is shutting down")))
            }
        }
    }
}

/// Whether whoever calls wants to wait for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    Waits,
    /// A notification is over as soon as it is accepted.
    Leaves,
}

/// One call with everything a method may need to know about it.
struct Call<'a> {
    rpc: &'a Rpc,
    caller: &'a Caller,
    place: &'a Place,
    patience: Patience,
}

type Outcome = Result<Box<RawValue>, ErrorObject>;

impl Rpc {
    pub fn new(pool: Arc<Pool>, chance: Arc<dyn Chance>, executing_max: usize) -> Self {
        Self { pool, chance, executing: Executing::new(executing_max), recorder: None }
    }

    /// Has every call and stream recorded.
    #[must_use]
    pub fn recorded_by(self, recorder: Option<Recorder>) -> Self {
        Self { recorder, ..self }
    }

    pub fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// The agent that an `X-Nexus-Agent` header names, if it is one.
    pub fn requester(&self, bytes: &[u8]) -> Option<AgentId> {
        let id = AgentId::parse(std::str::from_utf8(bytes).ok()?).ok()?;
        self.pool.agent(&id).map(|_| id)
    }

    /// Whether the agent is in memory, and not just getting another id.
    pub fn has_agent(&self, id: &AgentId) -> bool {
        self.pool.has_agent(id)
    }

    /// Checks whether the events of an agent, or of everything, are for the caller.
    pub fn may_stream(&self, caller: &Caller, of: Option<&AgentId>) -> Result<(), ErrorObject> {
        caller.may_stream(&self.pool, of)
    }

    pub async fn answer(&self, caller: &Caller, target: Target<'_>, body: &[u8]) -> Reply {
        let agent = match target {
            Target::Global => None,
            Target::Agent(segment) => match self.find(segment).await {
                Ok(agent) => Some(agent),
                Err(missing) => {
                    self.record_refused(caller, segment, body, &missing);
                    return missing.reply();
                }
            },
        };
        match wire::parse(body) {
            Ok(Body::One(entry)) => self.answer_one(caller, agent.as_ref(), entry).await,
            Ok(Body::Batch(entries)) => self.answer_batch(caller, agent.as_ref(), entries).await,
            Err(error) => Reply::NotJsonRpc(wire::answer(&Id::Null, &Err(error))),
        }
    }

    /// The agent of an id as it was written in a path; one that is only on disk comes back.
    async fn find(&self, segment: &str) -> Result<AgentHandle, Missing> {
        let id = AgentId::parse(segment).map_err(|error| Missing::Unknown(Code::of_id(&error)))?;
        self.find_agent(&id).await
    }

    /// The agent of this id; one that is only on disk comes back.
    async fn find_agent(&self, id: &AgentId) -> Result<AgentHandle, Missing> {
        Self::found(id, self.pool.find(id).await)
    }

    /// The agent of this id; one that is on record comes back, one that only has a session file does not.
    pub async fn find_on_record(&self, id: &AgentId) -> Result<AgentHandle, Missing> {
        Self::found(id, self.pool.find_on_record(id).await)
    }

    /// Notes that a terminal follows an agent.
    pub async fn follow(&self, id: &AgentId) {
        self.pool.follow(id).await;
    }

    fn found(
        id: &AgentId,
        found: Result<Option<AgentHandle>, RestoreError>,
    ) -> Result<AgentHandle, Missing> {
        match found {
            Ok(Some(agent)) => Ok(agent),
            Ok(None) => Err(Missing::Unknown(Code::gone(id))),
            Err(RestoreError::Stopping) => Err(Missing::Stopping),
            Err(error) => {
                tracing::warn!(agent = %id, error = &error as &dyn std::error::Error, "cannot restore");
                let message = format!("Failed to restore session: {error}");
                Err(Missing::Broken(ErrorObject::new(Code::Internal, message)))
            }
        }
    }

    async fn answer_one(
        &self,
        caller: &Caller,
        agent: Option<&AgentHandle>,
        entry: Entry,
    ) -> Reply {
        let request = match entry {
            Ok(request) => request,
            Err(invalid) => return Reply::NotJsonRpc(invalid.answer()),
        };
        let method = find_method(&request.method, agent);
        let Some(place) = self.place(method.as_ref().ok().into_iter().copied()) else {
            return busy();
        };
        match self.execute(caller, agent, &place, request, method).await {
            Some(answer) => Reply::Answer(answer),
            None => Reply::NoContent,
        }
    }

    async fn answer_batch(
        &self,
        caller: &Caller,
        agent: Option<&AgentHandle>,
        entries: Vec<Entry>,
    ) -> Reply {
        let valid = entries.iter().flatten();
        let methods = valid.filter_map(|request| find_method(&request.method, agent).ok());
        let Some(place) = self.place(methods) else {
            return busy();
        };
        let mut answers = Vec::with_capacity(entries.len());
        for entry in entries {
            match entry {
                Ok(request) => {
                    let method = find_method(&request.method, agent);
                    answers.extend(self.execute(caller, agent, &place, request, method).await);
                }
                Err(invalid) => {
                    self.left_out(LeftOut::Entry);
                    answers.push(invalid.answer());
                }
            }
        }
        if answers.is_empty() {
            Reply::NoContent
        } else {
            Reply::Answer(format!("[{}]", answers.join(",")))
        }
    }

    /// A place among the executing requests; one that calls only exempt methods needs none.
    fn place(&self, mut methods: impl Iterator<Item = Method>) -> Option<Place> {
        if methods.all(|method| method.load() == Load::Exempt) {
            Some(Place::exempt())
        } else {
            self.executing.enter()
        }
    }

    /// Runs one request; `None` for a notification, whatever became of it.
    async fn execute(
        &self,
        caller: &Caller,
        agent: Option<&AgentHandle>,
        place: &Place,
        request: Request,
        method: Result<Method, ErrorObject>,
    ) -> Option<String> {
        let seen = self.record(caller, agent.map(AgentHandle::id).as_ref(), &request);
        let Request { id, params, .. } = request;
        let patience = if id == Id::Null { Patience::Leaves } else { Patience::Waits };
        let call = Call { rpc: self, caller, place, patience };
        let outcome = match method {
            Ok(method) => self.guarded(method, call.dispatch(agent, method, params)).await,
            Err(error) => Err(error),
        };
        if let Some(seen) = seen {
            seen.answered(&outcome);
        }
        match patience {
            Patience::Waits => Some(wire::answer(&id, &outcome)),
            Patience::Leaves => None,
        }
    }

    fn record(
        &self,
        caller: &Caller,
        agent: Option<&AgentId>,
        request: &Request,
    ) -> Option<CallSeen> {
        let recorder = self.recorder.as_ref()?;
        let Some(mut params) = request.params.named().cloned() else {
            recorder.left_out(LeftOut::List);
            return None;
        };
        if request.id == Id::Null && request.method == Method::Send.name() {
            // Who notifies does not wait.
            params.insert("wait".to_owned(), false.into());
        }
        if let Some(config) =
            params.get_mut("config").filter(|_| request.method == Method::McpConnect.name())
        {
            *config = mcp::recorded(config.take());
        }
        let by = (caller.client.as_str(), caller.agent.as_ref());
        Some(recorder.call(by, agent.map(AgentId::as_str), &request.method, params))
    }

    /// Notes what a replay cannot be refused for.
    fn left_out(&self, what: LeftOut) {
        if let Some(recorder) = &self.recorder {
            recorder.left_out(what);
        }
    }

    /// Records the calls of a body that was not looked at.
    fn record_refused(&self, caller: &Caller, agent: &str, body: &[u8], missing: &Missing) {
        let Some(recorder) = &self.recorder else { return };
        let (http, code) = match missing {
            Missing::Unknown(error) => (404, error.code),
            Missing::Broken(error) => (500, error.code),
            // The server ends, and the recording with it.
            Missing::Stopping => return,
        };
        if let Some((method, params)) = Self::call_of(agent, body) {
            let by = (caller.client.as_str(), caller.agent.as_ref());
            recorder.call(by, Some(agent), &method, params).refused(http, code);
        }
    }

    /// The one call of an agent that a body is, if a client would make it so.
    fn call_of(agent: &str, body: &[u8]) -> Option<(String, Map<String, Value>)> {
        AgentId::parse(agent).ok()?;
        match wire::parse(body) {
            Ok(Body::One(Ok(Request { method, params: Params::Named(params), .. }))) => {
                Some((method, params))
            }
            Ok(Body::One(_) | Body::Batch(_)) | Err(_) => None,
        }
    }

    /// Whether a body that was not looked at is recorded as a call, and not as the bytes it is.
    pub fn is_recorded_as_call(target: Target<'_>, body: &[u8]) -> bool {
        match target {
            Target::Global => true,
            Target::Agent(agent) => Self::call_of(agent, body).is_some(),
        }
    }

    /// A panic inside a method is our defect, not the end of the connection.
    async fn guarded(&self, method: Method, call: impl Future<Output = Outcome>) -> Outcome {
        AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|_| {
            let error_id = self.chance.hex(Use::ErrorId, 8);
            tracing::error!(error_id, method = method.name(), "a method panicked");
            Err(outcome::defect(&error_id))
        })
    }
}

impl Call<'_> {
    async fn dispatch(self, agent: Option<&AgentHandle>, method: Method, given: Params) -> Outcome {
        let target = agent.map(AgentHandle::id);
        self.caller.may_call(&self.rpc.pool, method, target.as_ref())?;
        let agent = || agent.expect("an agent's method is called on an agent");
        Ok(match method {
            Method::CreateAgent => raw(self.create_agent(params::read(method, given)?).await?),
            Method::DestroyAgent => raw(self.destroy_agent(params::read(method, given)?).await?),
            Method::ListAgents => raw(self.list_agents(params::read(method, given)?)),
            Method::GetAgentSummaries => raw(self.summaries(params::read(method, given)?).await),
            Method::ShutdownServer => raw(self.shutdown_server(params::read(method, given)?)),
            Method::CloneSession => raw(self.clone_session(params::read(method, given)?).await?),
            Method::RenameSession => raw(self.rename_session(params::read(method, given)?).await?),
            Method::DeleteSession => raw(self.delete_session(params::read(method, given)?).await?),
            Method::McpListServers => raw(self.mcp_list_servers(params::read(method, given)?)),
            Method::McpConnect => raw(self.mcp_connect(params::read(method, given)?).await?),
            Method::McpDisconnect => raw(self.mcp_disconnect(params::read(method, given)?).await?),
            Method::McpStatus => raw(self.mcp_status(params::read(method, given)?)?),
            Method::PruneSessions => raw(self.prune_sessions(params::read(method, given)?).await?),
            Method::ListSessions => raw(self.list_sessions(params::read(method, given)?).await?),
            Method::ShowSession => raw(self.show_session(params::read(method, given)?).await?),
            Method::LoadSession => raw(self.load_session(params::read(method, given)?).await?),
            Method::SaveSession => raw(self.save_session(params::read(method, given)?).await?),
            Method::Discover => raw(self.discover(params::read(method, given)?)),
            Method::Send => raw(self.send(agent(), params::read(method, given)?).await?),
            Method::Cancel => raw(self.cancel(agent(), params::read(method, given)?).await?),
            Method::GetRequest => {
                raw(self.get_request(agent(), params::read(method, given)?).await?)
            }
            Method::GetTokens => {
                raw(self.get_tokens(agent(), params::read(method, given)?).await?)
            }
            Method::GetContext => {
                raw(self.get_context(agent(), params::read(method, given)?).await?)
            }
            Method::GetMessages => {
                raw(self.get_messages(agent(), params::read(method, given)?).await?)
            }
            Method::GetModel => raw(self.get_model(agent(), params::read(method, given)?)),
            Method::SetModel => raw(self.set_model(agent(), params::read(method, given)?).await?),
            Method::Compact => raw(self.compact(agent(), params::read(method, given)?).await?),
            Method::GetSystemPrompt => {
                raw(self.get_system_prompt(agent(), params::read(method, given)?))
            }
            Method::SetSystemPrompt => {
                raw(self.set_system_prompt(agent(), params::read(method, given)?).await?)
            }
            Method::Confirm => raw(self.confirm(agent(), params::read(method, given)?).await?),
            Method::ListConfirmations => {
                raw(self.list_confirmations(agent(), params::read(method, given)?).await?)
            }
            Method::SetCwd => raw(self.set_cwd(agent(), params::read(method, given)?).await?),
            Method::GetPermissions => {
                raw(self.get_permissions(agent(), params::read(method, given)?))
            }
            Method::SetPermissions => {
                raw(self.set_permissions(agent(), params::read(method, given)?).await?)
            }
            Method::ExplainPermission => {
                raw(self.explain_permission(agent(), params::read(method, given)?).await?)
            }
            Method::Shutdown => raw(self.shutdown(agent(), params::read(method, given)?).await?),
        })
    }
}

fn raw(result: impl serde::Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(&result).expect("results have only string keys")
}

fn busy() -> Reply {
    let error =
        ErrorObject::new(Code::Overloaded, "too many requests at once; try again in a second");
    Reply::Busy(wire::answer(&Id::Null, &Err(error)))
}

fn find_method(name: &str, agent: Option<&AgentHandle>) -> Result<Method, ErrorObject> {
    let scope = if agent.is_some() { Scope::Agent } else { Scope::Global };
    params::find(name, scope)
}
