//! One call of one tool of a server: asked, waited for, and called off when nobody wants it.

use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CustomResult, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use serde_json::{Map, Value};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::connection::{Lost, Server};
use super::session::{Session, quoted};
use super::{http, result};
use crate::limits::{MCP_CLOSE_MAX, MCP_PROGRESS_CHARS_MAX, MCP_START_MAX};
use crate::tool::{Progress, Tell, ToolOutput, WITHDRAWN};
use crate::world::HttpFault;

const NO_RESULT: &str = "The MCP server answered with something that is no result.";

/// What ends a call that its server does not end.
pub(super) struct Ends {
    pub(super) unwanted: CancellationToken,
    pub(super) withdrawn: CancellationToken,
}

pub(super) async fn call(
    server: &Server,
    tool: String,
    arguments: Map<String, Value>,
    ends: Ends,
    tell: Tell,
) -> ToolOutput {
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let session = server.session().map_err(|why| not_there(server, &why))?;
    let first = ask(server, &session, request.clone(), (&ends, &tell)).await;
    if let Ok(output) = first {
        return output;
    }
    let next = next_session(server, &session, &ends).await?;
    let again = ask(server, &next, request, (&ends, &tell)).await;
    again.unwrap_or_else(|SessionOver| Err(not_there(server, &Lost::SessionOver.to_string())))
}

/// The server did not look at the call, since it does not know the session that it was made in: so it
/// had no effect, and may be made again in another one.
struct SessionOver;

/// Makes a call in one session.
async fn ask(
    server: &Server,
    session: &Arc<Session>,
    request: ClientRequest,
    (ends, tell): (&Ends, &Tell),
) -> Result<ToolOutput, SessionOver> {
    let sending = session.peer.send_cancellable_request(request, PeerRequestOptions::no_options());
    let handle = tokio::select! {
        biased;
        () = session.ended.cancelled() => return Ok(Err(lost(server))),
        () = ends.unwanted.cancelled() => return Ok(Err(String::new())),
        handle = sending => handle,
    };
    match handle {
        Ok(handle) => wait(server, session, handle, (ends, tell)).await,
        Err(_) => Ok(Err(over(server, session).await)),
    }
}

/// Has a session given up that the server does not know any more, and waits for the next.
async fn next_session(
    server: &Server,
    before: &Arc<Session>,
    ends: &Ends,
) -> Result<Arc<Session>, String> {
    before.doubt(Lost::SessionOver);
    tokio::select! {
        biased;
        () = ends.unwanted.cancelled() => Err(String::new()),
        () = ends.withdrawn.cancelled() => Err(WITHDRAWN.to_owned()),
        renewed = timeout(MCP_START_MAX, server.renewed(before)) => match renewed {
            Ok(renewed) => renewed.map_err(|why| not_there(server, &why)),
            Err(_) => Err(not_there(server, &Lost::SessionOver.to_string())),
        },
    }
}

async fn wait(
    server: &Server,
    session: &Arc<Session>,
    mut handle: RequestHandle<RoleClient>,
    (ends, tell): (&Ends, &Tell),
) -> Result<ToolOutput, SessionOver> {
    let mut news = session.routes.open(&handle.progress_token);
    let answer = loop {
        tokio::select! {
            // How far it is comes before that it has ended, and an answer before the end of all answers.
            biased;
            Some(told) = news.heard.recv() => {
                let short = |text: String| quoted(&text).chars().take(MCP_PROGRESS_CHARS_MAX).collect();
                let message = told.message.map(|text| server.config.hide(&text)).map(short);
                tell.tell(Progress { progress: told.progress, total: told.total, message });
            }
            answer = &mut handle.rx => break answer,
            () = ends.unwanted.cancelled() => {
                call_off(handle, "nobody waits for it any more").await;
                return Ok(Err(String::new()));
            }
            () = ends.withdrawn.cancelled() => {
                call_off(handle, "its caller may not do it any more").await;
                return Ok(Err(WITHDRAWN.to_owned()));
            }
            () = session.ended.cancelled() => return Ok(Err(lost(server))),
        }
    };
    Ok(match answer {
        Ok(Ok(ServerResult::CallToolResult(given))) => {
            result::output(&given, |text| server.config.hide(text))
        }
        Ok(Ok(ServerResult::InputRequiredResult(_))) => {
            Err("The tool asks for input from a person, which agents cannot give.".to_owned())
        }
        Ok(Ok(ServerResult::CustomResult(CustomResult(given)))) => {
            let odd = result::odd_output(&given, |text| server.config.hide(text));
            odd.unwrap_or_else(|| Err(NO_RESULT.to_owned()))
        }
        Ok(Ok(_) | Err(ServiceError::UnexpectedResponse)) => Err(NO_RESULT.to_owned()),
        Ok(Err(ServiceError::McpError(error))) => {
            let (code, said) = (error.code.0, quoted(&server.config.hide(&error.message)));
            Err(format!("The MCP server refused the call ({code}): {said}"))
        }
        Ok(Err(ServiceError::TransportSend(error))) => match http::trouble(&*error.error) {
            Some(Lost::SessionOver) => return Err(SessionOver),
            Some(why @ Lost::Unreachable(HttpFault::Connect | HttpFault::Forbidden)) => {
                session.doubt(why.clone());
                Err(not_there(server, &why.to_string()))
            }
            Some(_) | None => Err(unknown(server, &server.shown(&server.because()))),
        },
        // Over HTTP each answer has a stream of its own, whose end is not that of the others.
        Ok(Err(ServiceError::TransportClosed)) if server.config.is_http() => Err(lost(server)),
        Ok(Err(_)) | Err(_) => Err(over(server, session).await),
    })
}

/// Tells the server, if it still listens.
async fn call_off(handle: RequestHandle<RoleClient>, why: &str) {
    let _ = timeout(MCP_CLOSE_MAX, handle.cancel(Some(why.to_owned()))).await;
}

/// The library knows before us that there will be no answer, and tells calls in no certain order;
/// they go on when the connection is over, in the order in which they came.
async fn over(server: &Server, session: &Session) -> String {
    let _ = timeout(2 * MCP_CLOSE_MAX, session.ended.cancelled()).await;
    lost(server)
}

fn lost(server: &Server) -> String {
    let why = server.session().err().unwrap_or_else(|| "the connection was lost".to_owned());
    unknown(server, &why)
}

fn unknown(server: &Server, why: &str) -> String {
    let name = &server.name;
    format!(
        "The MCP server {name} gave no answer: {why}. Whether the call had an effect is not known."
    )
}

fn not_there(server: &Server, why: &str) -> String {
    format!("The MCP server {} cannot be called: {why}.", server.name)
}
