//! A tool of an MCP server as one of ours: what a call of it needs, and how it runs.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::arguments;
use super::call::{self, Ends};
use super::connection::Server;
use super::offered::Offer;
use crate::message::ToolDefinition;
use crate::policy::{Decision, Leave, Level, Permissions, Permit, Rule, Subject};
use crate::tool::decide::Examined;
use crate::tool::workplace::Workplace;
use crate::tool::{Tell, Tool, ToolOutput, WITHDRAWN};
use crate::world::BoxFuture;

struct McpTool {
    server: Arc<Server>,
    offer: Offer,
}

pub(super) fn tool(server: Arc<Server>, offer: &Offer) -> Arc<dyn Tool> {
    Arc::new(McpTool { server, offer: offer.clone() })
}

impl McpTool {
    fn subject(&self) -> Subject {
        let tool = self.offer.definition.name.to_string();
        Subject::Mcp { server: self.server.name.clone(), tool }
    }
}

impl Tool for McpTool {
    fn definition(&self) -> ToolDefinition {
        self.offer.definition.clone()
    }

    fn fitting(&self, definition: &ToolDefinition, given: &Value) -> Result<Value, String> {
        let fitting = arguments::fitting(&definition.name, &self.offer.schema, given);
        fitting.map_err(|problem| self.server.config.hide(&problem))
    }

    fn leave(&self, _arguments: &Value, permissions: &Permissions) -> Leave {
        match permissions.level() {
            Level::Yolo => Leave::Free,
            Level::Trusted => Leave::Confirm,
            Level::Sandboxed => Leave::Never,
        }
    }

    fn examine(
        &self,
        _arguments: Value,
        workplace: &Arc<Workplace>,
    ) -> BoxFuture<'static, Result<Examined, Decision>> {
        let subject = self.subject();
        let is_covered = workplace.mandate().allowances().cover(&subject);
        let rule = if is_covered { Rule::Allowance } else { Rule::Allowed };
        let target = Some(self.server.name.clone());
        Box::pin(std::future::ready(Ok(Examined { subject, rule, target })))
    }

    fn run(
        &self,
        arguments: Value,
        workplace: &Arc<Workplace>,
        permit: Permit,
    ) -> BoxFuture<'static, ToolOutput> {
        self.run_telling(arguments, workplace, permit, Tell::nobody())
    }

    fn run_telling(
        &self,
        arguments: Value,
        workplace: &Arc<Workplace>,
        _: Permit,
        tell: Tell,
    ) -> BoxFuture<'static, ToolOutput> {
        let mandate = workplace.mandate();
        if !mandate.has(&self.offer.definition.name) {
            // It was taken from the agent after the call was decided on.
            return Box::pin(std::future::ready(Err(WITHDRAWN.to_owned())));
        }
        let Value::Object(arguments) = arguments else {
            panic!("arguments that fit a schema are an object");
        };
        let (server, tool) = (Arc::clone(&self.server), self.offer.tool.clone());
        let workplace = Arc::clone(workplace);
        Box::pin(async move {
            let ends =
                Ends { unwanted: CancellationToken::new(), withdrawn: mandate.withdrawn().clone() };
            let _waiting = ends.unwanted.clone().drop_guard();
            // A task of its own: whoever no longer waits for the answer leaves time to call it off.
            let calling = workplace
                .running()
                .spawn(async move { call::call(&server, tool, arguments, ends, tell).await });
            match calling.await {
                Ok(output) => output,
                Err(_panicked) => Err("The call was lost by a defect of the server.".to_owned()),
            }
        })
    }
}
