//! The decision about one call, in the order of its rules: the tool exists and is enabled, the
//! arguments fit, the level allows it, the other agent is one to turn to, every path passes, somebody confirms it where that is needed.
//! A call that runs and one that is only asked about are decided on here alike; nothing runs here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::error::Given;
use super::workplace::{Site, Workplace};
use super::{Effect, Entry, Tool, Tools, UNCONFIRMED, Wanted};
use crate::message::{ToolCall, ToolDefinition};
use crate::policy::{Decision, Leave, PathRule, Permissions, Rule, Side, Subject};
use crate::world::BoxFuture;

/// Stands between the source and the destination of a call that has both.
const BETWEEN_ENDS: &str = " → ";

/// A call that the rules about tools let through, with what its schema made of the arguments.
pub(super) struct Admitted {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) arguments: Value,
    pub(super) leave: Leave,
}

/// What the rules about paths say to a call that none of them refuses.
#[derive(Debug)]
pub(super) struct Examined {
    pub(super) subject: Subject,
    /// `Allowed`, or `Allowance` where somebody allowed for good what would need a confirmation.
    pub(super) rule: Rule,
    /// All that the call uses, as it is shown to whoever confirms it.
    pub(super) target: Option<String>,
}

impl Examined {
    /// A call that uses no path.
    pub(super) fn of_call() -> Self {
        Self { subject: Subject::Call, rule: Rule::Allowed, target: None }
    }

    pub(super) fn needs_confirmation(&self, leave: Leave) -> bool {
        match leave {
            Leave::Free => !self.subject.writes().is_empty(),
            Leave::Confirm => self.rule != Rule::Allowance,
            // It is refused before.
            Leave::Never => true,
        }
    }
}

/// What somebody has to be asked before a call runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub subject: Arc<Subject>,
    /// What the call uses, without links.
    pub target: Option<String>,
    /// Where it works.
    pub cwd: String,
}

impl Tools {
    /// The rules before those about paths.
    pub(super) fn admit(
        &self,
        call: &ToolCall,
        permissions: &Permissions,
        workplace: &Workplace,
    ) -> Result<Admitted, Decision> {
        let (definition, tool) = self.enabled(&call.name, permissions, workplace)?;
        let arguments = tool.fitting(&definition, &call.arguments);
        let arguments = arguments.map_err(|problem| Decision::deny(Rule::Schema, problem))?;
        let at = (permissions, workplace);
        self.check_level((&definition, tool.as_ref()), &arguments, at)?;
        tool.target(&arguments, workplace)?;
        let leave = tool.leave(&arguments, permissions);
        Ok(Admitted { tool, arguments, leave })
    }

    /// Whether somebody may have to be asked about a call, as far as that is seen without a look at the
    /// disk.
    pub fn may_ask(
        &self,
        call: &ToolCall,
        permissions: &Permissions,
        workplace: &Workplace,
    ) -> bool {
        self.admit(call, permissions, workplace).is_ok_and(|admitted| {
            match admitted.tool.effect() {
                Effect::Changes if permissions.rights().asks_to_write() => true,
                Effect::Changes | Effect::None => admitted.leave == Leave::Confirm,
            }
        })
    }

    /// What somebody has to be asked before a call runs. Nothing where it may run as it is, and where
    /// it is refused, which whoever runs it is told: nobody is asked about such a call.
    pub fn question(
        &self,
        call: &ToolCall,
        permissions: &Permissions,
        workplace: &Arc<Workplace>,
    ) -> BoxFuture<'static, Option<Question>> {
        let Ok(Admitted { tool, arguments, leave }) = self.admit(call, permissions, workplace)
        else {
            return Box::pin(std::future::ready(None));
        };
        let examined = tool.examine(arguments, workplace);
        let home = permissions.rights().cwd.clone();
        Box::pin(async move {
            let examined = examined.await.ok()?;
            examined.needs_confirmation(leave).then(|| {
                let cwd = examined.subject.directory().unwrap_or(&home).display().to_string();
                let target = examined.target.clone();
                Question { subject: Arc::new(examined.subject), target, cwd }
            })
        })
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
            None => self.at_all(name, permissions, workplace),
            Some(arguments) => {
                let call = ToolCall { id: String::new(), name: name.to_owned(), arguments };
                match self.admit(&call, permissions, workplace) {
                    Ok(Admitted { tool, arguments, leave }) => {
                        let examined = tool.examine(arguments, workplace).await;
                        examined.map(|examined| (leave, examined))
                    }
                    Err(decision) => Err(decision),
                }
            }
        };
        match examined {
            Err(decision) => decision,
            Ok((leave, examined)) if examined.needs_confirmation(leave) => {
                Decision::confirm(format!("{name} may do this once somebody confirms it."))
            }
            Ok((_, Examined { rule: Rule::Allowance, .. })) => {
                let reason = format!("{name} may do this: somebody allowed it for good.");
                Decision::allow(Rule::Allowance, reason)
            }
            Ok(_) => Decision::allow(Rule::Allowed, format!("{name} may do this freely.")),
        }
    }

    fn at_all(
        &self,
        name: &str,
        permissions: &Permissions,
        workplace: &Workplace,
    ) -> Result<(Leave, Examined), Decision> {
        let (definition, tool) = self.enabled(name, permissions, workplace)?;
        let at = (permissions, workplace);
        self.check_level((&definition, tool.as_ref()), &nothing(), at)?;
        Ok((tool.leave(&nothing(), permissions), Examined::of_call()))
    }

    fn enabled(
        &self,
        name: &str,
        permissions: &Permissions,
        workplace: &Workplace,
    ) -> Result<Entry, Decision> {
        let ours = self.registered.iter().find(|(definition, _)| definition.name == name);
        let theirs = || workplace.guest().and_then(|guest| guest.find(name));
        let found = ours.cloned().or_else(theirs);
        match found {
            Some(found) if !permissions.rights().disabled_tools.contains(name) => Ok(found),
            Some(_) | None => {
                let known = self.known(permissions, workplace);
                let problem = format!("Unknown tool: {name}. Tools you have: {known}.");
                Err(Decision::deny(Rule::Exists, problem))
            }
        }
    }

    fn check_level(
        &self,
        (definition, tool): (&ToolDefinition, &dyn Tool),
        arguments: &Value,
        (permissions, workplace): (&Permissions, &Workplace),
    ) -> Result<(), Decision> {
        if is_open(tool, permissions) && tool.leave(arguments, permissions) != Leave::Never {
            return Ok(());
        }
        let (name, level) = (&definition.name, permissions.level());
        let known = self.known(permissions, workplace);
        let problem =
            format!("{name} is not for a {level} agent like you. Tools you have: {known}.");
        Err(Decision::deny(Rule::Level, problem))
    }

    fn known(&self, permissions: &Permissions, workplace: &Workplace) -> String {
        let names = self.of(permissions, workplace).map(|(definition, _)| definition.name);
        names.collect::<Vec<_>>().join(", ")
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
) -> Result<Examined, Decision> {
    let mut rule = Rule::Allowed;
    let (mut unconfirmed, mut used) = (Vec::new(), Vec::new());
    for (argument, side) in wanted {
        // What may be left out is the working directory.
        let given = Given::new(arguments[*argument].as_str().unwrap_or("."));
        let (path_rule, leads_to) = match site.examine(&given, *side) {
            Ok(examined) => examined,
            Err(error) if error.is_refusal() => {
                return Err(Decision::deny(Rule::Path, error.to_string()));
            }
            // The tool itself tells what is wrong there, if anything is.
            Err(_) => continue,
        };
        used.push(shown(&leads_to));
        match path_rule {
            PathRule::Free => {}
            PathRule::Allowance => rule = Rule::Allowance,
            PathRule::Confirm => unconfirmed.push(leads_to),
            PathRule::Blocked | PathRule::Outside | PathRule::NotWritable => {
                panic!("{tool}: a refused path is an error")
            }
        }
    }
    let target = Some(used.join(BETWEEN_ENDS)).filter(|target| !target.is_empty());
    Ok(Examined { subject: Subject::Writes(unconfirmed), rule, target })
}

/// The directory that a call wants to start something in.
pub(super) fn directory(site: &Site, given: &Given) -> Result<PathBuf, Decision> {
    match site.examine(given, Side::Read) {
        Ok((_, directory)) => Ok(directory),
        Err(error) => Err(Decision::deny(Rule::Path, error.to_string())),
    }
}

/// What becomes of a call that nobody confirmed as it is now.
pub(super) fn unconfirmed(tool: &str) -> String {
    format!("{tool} was not run: {UNCONFIRMED}")
}

/// What becomes of a call that does not lead any more where it did when somebody confirmed it.
pub(super) fn leads_elsewhere(tool: &str) -> String {
    format!("{tool} was not run: it leads elsewhere than when it was confirmed")
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn nothing() -> Value {
    Value::Object(Map::new())
}
