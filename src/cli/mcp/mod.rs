//! `nexus3 mcp`: the server's agents as tools of an MCP host, over stdin and stdout. Each tool is a call
//! of the client library; a host that calls one off, or goes, cancels the turn it waits for, and one that
//! asks for progress is told what the agent does.

mod pipes; // stdin and stdout as a transport
mod tools; // what a host is offered

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{Connection, Place};
use super::{Failed, inside};
use crate::client::{ClientError, NexusClient};
use crate::event::{Seq, What};
use crate::id::{AgentId, RequestId};
use crate::rpc::method::{
    CreateAgentParams, CreateAgentResult, DestroyAgentParams, SendParams, SendResult,
    SummariesParams,
};
use crate::world::World;
use tools::{Asked, Send};

/// How long an answer waits for what happened before it.
const TELL_MAX: Duration = Duration::from_secs(2);
/// How long the end of what was called off is waited for: an agent has five seconds to end a turn.
const CALL_OFF_MAX: Duration = Duration::from_secs(8);
const CANCEL_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Offers the server's agents to an MCP host over stdin and stdout
///
/// It uses the server that runs, or one inside this command, which ends with it.
#[derive(Debug, Args)]
#[command(after_help = "Example, as an entry of a host's configuration:\n  \
    {\"mcpServers\": {\"nexus3\": {\"command\": \"nexus3\", \"args\": [\"mcp\"]}}}")]
pub struct Arguments {
    #[command(flatten)]
    server: Place,
}

impl Arguments {
    pub async fn run(self, world: &World) -> Result<(), Failed> {
        let offer = async |connection: &Connection| offer(connection).await;
        inside::anywhere(world, &self.server.into(), offer).await
    }
}

async fn offer(connection: &Connection) -> Result<(), Failed> {
    let agents = Agents {
        client: Arc::new(connection.client.clone().named("mcp")),
        gone: CancellationToken::new(),
        waiting: TaskTracker::new(),
    };
    let (gone, waiting) = (agents.gone.clone(), agents.waiting.clone());
    let ended = tokio::select! {
        biased;
        ended = speak(agents) => ended,
        () = connection.world.signals.stop() => Err(Failed::Interrupted),
    };
    // Nobody is there any more who waits: what runs for them is called off before we go.
    gone.cancel();
    waiting.close();
    let _ = timeout(CALL_OFF_MAX, waiting.wait()).await;
    ended
}

/// Speaks with the host until it goes.
async fn speak(agents: Agents) -> Result<(), Failed> {
    let pipes = pipes::open(agents.gone.clone());
    match agents.serve(pipes).await {
        Ok(host) => host.waiting().await.map(drop).map_err(Failed::from),
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
            Err(anyhow::anyhow!("the host does not begin with `initialize`, as MCP has it").into())
        }
        Err(error) => Err(anyhow::anyhow!("the host does not speak MCP: {error}").into()),
    }
}

#[derive(Clone)]
struct Agents {
    client: Arc<NexusClient>,
    /// Cancelled when the host is gone.
    gone: CancellationToken,
    /// The calls that the host waits for.
    waiting: TaskTracker,
}

impl ServerHandler for Agents {
    fn get_info(&self) -> ServerConfig {
        let us = Implementation::new("nexus3", env!("CARGO_PKG_VERSION"));
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = us;
        info.instructions = Some(
            "Creates and drives LLM agents on this machine: create one, send it a message, read \
             its answer, destroy it."
                .to_owned(),
        );
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let asked = Asked::read(&request.name, arguments)
            .map_err(|problem| ErrorData::invalid_params(problem, None))?;
        let _waiting = self.waiting.token();
        let result = match self.answer(asked, &context).await {
            Ok(result) => CallToolResult::structured(result),
            Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
        };
        Ok(result.into())
    }
}

impl Agents {
    async fn answer(
        &self,
        asked: Asked,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ClientError> {
        let client = &self.client;
        match asked {
            Asked::Create(params) => self.create(*params, context).await.map(told),
            Asked::Send(send) => self.send(send, context).await.map(told),
            Asked::Status(of) => {
                client.get_context(&of.agent_id).await?;
                let all =
                    SummariesParams { include_tokens: Some(true), include_context: Some(true) };
                let listed = client.get_agent_summaries(&all).await?.agents;
                let found = listed.into_iter().find(|agent| agent.entry.agent_id == of.agent_id);
                Ok(found.map_or(Value::Null, told))
            }
            Asked::Cancel(cancel) => {
                client.cancel(&cancel.agent_id, cancel.request_id).await.map(told)
            }
            Asked::List => client.list_agents().await.map(told),
            Asked::Destroy(of) => {
                let params = DestroyAgentParams { agent_id: of.agent_id, cascade: None };
                client.destroy_agent(&params).await.map(told)
            }
        }
    }

    /// Returns once the host does not want an answer any more.
    async fn unwanted(&self, context: &RequestContext<RoleServer>) {
        tokio::select! {
            biased;
            () = context.ct.cancelled() => {}
            () = self.gone.cancelled() => {}
        }
    }

    /// Cancels what an answer is waited for, and returns the answer. Again and again: what is to be
    /// cancelled may be on its way to the server yet.
    async fn call_off<T>(
        &self,
        agent: &AgentId,
        request: Option<RequestId>,
        mut answer: Pin<&mut (impl Future<Output = Result<T, ClientError>> + std::marker::Send)>,
    ) -> Result<T, ClientError> {
        let ended = async {
            loop {
                let _ = self.client.cancel(agent, request.clone()).await;
                if let Ok(answer) = timeout(CANCEL_AGAIN_AFTER, answer.as_mut()).await {
                    return answer;
                }
            }
        };
        let late = Err(ClientError::Timeout { address: self.client.address() });
        timeout(CALL_OFF_MAX, ended).await.unwrap_or(late)
    }

    /// Creates an agent; a first turn that is waited for is cancelled like any other.
    async fn create(
        &self,
        mut params: CreateAgentParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CreateAgentResult, ClientError> {
        let waits = params.wait_for_initial_response == Some(true);
        if waits && params.agent_id.is_none() {
            // What the server would draw, so that we know what to cancel.
            params.agent_id = Some(self.client.draw_agent_id()?.to_string());
        }
        let agent = params.agent_id.as_deref().and_then(|id| AgentId::parse(id).ok());
        let creating = self.client.create_agent(&params);
        tokio::pin!(creating);
        tokio::select! {
            biased;
            created = &mut creating => return created,
            () = self.unwanted(context), if waits => {}
        }
        match agent {
            Some(agent) => self.call_off(&agent, None, creating).await,
            // A temporary one, whose name nobody knows yet.
            None => creating.await,
        }
    }

    /// Sends a message and waits for the turn, which is cancelled when the host does not want it any
    /// more.
    async fn send(
        &self,
        send: Send,
        context: &RequestContext<RoleServer>,
    ) -> Result<SendResult, ClientError> {
        let Send { agent_id, content, timeout } = send;
        let request_id = self.client.draw_request_id()?;
        let params = SendParams {
            content,
            request_id: Some(request_id.clone()),
            timeout,
            ..SendParams::default()
        };
        let token = context.meta.get_progress_token();
        // From here on: the turn may be over before the stream is open.
        let wanted = match token {
            Some(token) => self.client.newest_event().await.ok().map(|now| (token, now)),
            None => None,
        };
        let sending = self.client.send(&agent_id, &params);
        let telling = self.tell(&agent_id, &request_id, (wanted, &context.peer));
        tokio::pin!(sending, telling);
        let mut is_told = false;
        let answer = loop {
            tokio::select! {
                biased;
                () = &mut telling, if !is_told => is_told = true,
                answer = &mut sending => break answer,
                () = self.unwanted(context) => {
                    return self.call_off(&agent_id, Some(request_id.clone()), sending).await;
                }
            }
        };
        if !is_told {
            // What happened before the answer is told before it.
            let _ = tokio::time::timeout(TELL_MAX, telling).await;
        }
        answer
    }

    /// Tells a host that wants to hear it what the agent does in a turn.
    async fn tell(
        &self,
        agent: &AgentId,
        request: &RequestId,
        (wanted, host): (Option<(ProgressToken, Seq)>, &Peer<RoleServer>),
    ) {
        let Some((token, after)) = wanted else { return };
        let mut events = self.client.events(Some(agent), Some(after));
        let mut count = 0.0;
        while let Some(event) = events.next().await {
            let Ok(event) = event else { continue };
            if event.request_id.as_ref() != Some(request) {
                // Others have turns of this agent as well.
                continue;
            }
            let message = match event.what {
                What::ContentChunk { text, .. } => text,
                What::ToolStarted { name, .. } => format!("runs {name}"),
                What::ToolCompleted { name, success, .. } => {
                    format!("{name} {}", if success { "is done" } else { "failed" })
                }
                what if what.is_terminal() => return,
                _ => continue,
            };
            count += 1.0;
            let news = ProgressNotificationParam::new(token.clone(), count).with_message(message);
            if host.notify_progress(news).await.is_err() {
                return;
            }
        }
    }
}

fn told(result: impl serde::Serialize) -> Value {
    serde_json::to_value(result).unwrap_or_else(|_| json!({}))
}
