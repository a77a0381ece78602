//! The decision about one call, in the order of its rules: the tool exists and is enabled, the
//! arguments fit, the level allows it, the other agent is one to turn to, every path passes, somebody confirms it where that is needed.
//! A call that runs and one that is only asked about are decided on here alike; nothing runs here.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::error::{FileError, Given};
use super::workplace::{Site, Workplace};
use super::{Effect, NO_CONFIRMER, Tool, Tools, Wanted, schema};
use crate::message::{ToolCall, ToolDefinition};
use crate::policy::{Decision, Leave, PathRule, Permissions, Rule};

/// A call that the rules about tools let through, with what its schema made of the arguments.
pub(super) struct Admitted<'a> {
    pub(super) tool: &'a dyn Tool,
    pub(super) arguments: Value,
    pub(super) leave: Leave,
}

impl Tools {
    /// The rules before those about paths.
    pub(super) fn admit(
        &self,
        call: &ToolCall,
        permissions: &Permissions,
        workplace: &Workplace,
    ) -> Result<Admitted<'_>, Decision> {
        let (definition, tool) = self.enabled(&call.name, permissions)?;
        let arguments = schema::fitting(definition, &call.arguments);
        let arguments = arguments.map_err(|problem| Decision::deny(Rule::Schema, problem))?;
        self.check_level(definition, tool, &arguments, permissions)?;
        tool.target(&arguments, workplace)?;
        let leave = tool.leave(&arguments, permissions);
        Ok(Admitted { tool, arguments, leave })
    }

    /// How a call would be decided on; without arguments, whether there is any call at all.
    pub async fn explain(
        &self,
        name: &str,
        arguments: Option<Value>,
        permissions: &Permissions,
        workplace: &Arc<Workplace>,
    ) -> Decision {
        let examined = match arguments {
            None => self.at_all(name, permissions),
            Some(arguments) => {
                let call = ToolCall { id: String::new(), name: name.to_owned(), arguments };
                match self.admit(&call, permissions, workplace) {
                    Ok(Admitted { tool, arguments, leave }) => {
                        let examined = tool.examine(arguments, workplace).await;
                        examined.map(|rule| (leave, rule))
                    }
                    Err(decision) => Err(decision),
                }
            }
        };
        match examined {
            Err(decision) => decision,
            Ok((Leave::Confirm | Leave::Never, _)) => unconfirmed(name),
            Ok((Leave::Free, Rule::Allowance)) => {
                let reason = format!("{name} may do this: somebody allowed it for good.");
                Decision::allow(Rule::Allowance, reason)
            }
            Ok((Leave::Free, _)) => {
                Decision::allow(Rule::Allowed, format!("{name} may do this freely."))
            }
        }
    }

    fn at_all(&self, name: &str, permissions: &Permissions) -> Result<(Leave, Rule), Decision> {
        let (definition, tool) = self.enabled(name, permissions)?;
        self.check_level(definition, tool, &nothing(), permissions)?;
        Ok((tool.leave(&nothing(), permissions), Rule::Allowed))
    }

    fn enabled(
        &self,
        name: &str,
        permissions: &Permissions,
    ) -> Result<(&ToolDefinition, &dyn Tool), Decision> {
        let found = self.registered.iter().find(|(definition, _)| definition.name == name);
        match found {
            Some((definition, tool))
                if !permissions.rights().disabled_tools.contains(definition.name) =>
            {
                Ok((definition, tool.as_ref()))
            }
            Some(_) | None => {
                let known = self.known(permissions);
                let problem = format!("Unknown tool: {name}. Tools you have: {known}.");
                Err(Decision::deny(Rule::Exists, problem))
            }
        }
    }

    fn check_level(
        &self,
        definition: &ToolDefinition,
        tool: &dyn Tool,
        arguments: &Value,
        permissions: &Permissions,
    ) -> Result<(), Decision> {
        if is_open(tool, permissions) && tool.leave(arguments, permissions) != Leave::Never {
            return Ok(());
        }
        let (name, level, known) = (definition.name, permissions.level(), self.known(permissions));
        let problem =
            format!("{name} is not for a {level} agent like you. Tools you have: {known}.");
        Err(Decision::deny(Rule::Level, problem))
    }

    fn known(&self, permissions: &Permissions) -> String {
        self.of(permissions).map(|(definition, _)| definition.name).collect::<Vec<_>>().join(", ")
    }
}

/// Whether a tool exists for agents with these permissions, unless it is disabled.
pub(super) fn is_open(tool: &dyn Tool, permissions: &Permissions) -> bool {
    let may_have_effect = match tool.effect() {
        Effect::None => true,
        Effect::Changes => permissions.rights().may_write(),
    };
    may_have_effect && tool.leave(&nothing(), permissions) != Leave::Never
}

/// The rule about paths, for all that a call names: a refusal of any comes before a confirmation.
pub(super) fn paths(
    site: &Site,
    tool: &str,
    wanted: Wanted,
    arguments: &Value,
) -> Result<Rule, Decision> {
    let mut rule = Rule::Allowed;
    let mut unconfirmed = None;
    for (argument, side) in wanted {
        // What may be left out is the working directory.
        let given = Given::new(arguments[*argument].as_str().unwrap_or("."));
        match site.examine(&given, *side) {
            Ok(PathRule::Confirm) => {
                let reason = FileError::Unconfirmed { given }.to_string();
                unconfirmed = unconfirmed.or(Some(Decision::confirm(reason)));
            }
            Ok(PathRule::Allowance) => rule = Rule::Allowance,
            Err(error) if error.is_refusal() => {
                return Err(Decision::deny(Rule::Path, error.to_string()));
            }
            // The tool itself tells what is wrong there, if anything is.
            Ok(PathRule::Free) | Err(_) => {}
            Ok(PathRule::Blocked | PathRule::Outside | PathRule::NotWritable) => {
                panic!("{tool}: a refused path is an error")
            }
        }
    }
    unconfirmed.map_or(Ok(rule), Err)
}

/// What becomes of a call that somebody would have to confirm.
pub(super) fn unconfirmed(tool: &str) -> Decision {
    Decision::confirm(format!("{tool} was not run: {NO_CONFIRMER}"))
}

fn nothing() -> Value {
    Value::Object(Map::new())
}
