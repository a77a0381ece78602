//! What agents may do is changed here: for one of them, and with it for all below it, by one commit.
//! Nobody is created, restored or destroyed meanwhile: each is decided on against what its parent may
//! do now, and that must not change before it is there.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Pool;
use super::create::CreateError;
use super::registry::Member;
use crate::agent::{AgentHandle, Answered, ConfirmError, Decided};
use crate::event::{Event, What};
use crate::limits::FAMILIES_AT_ONCE_MAX;
use crate::policy::{
    Allowances, Change, Level, PathRule, Permissions, PolicyError, PolicyView, Reason, Refusal,
    Rights, Side, ceiling,
};
use crate::store::{Granted, Write};
use crate::tool::mcp::is_outside;

/// What is asked of an agent's permissions.
#[derive(Clone, Debug)]
pub struct NewPermissions {
    pub preset: String,
    pub disable_tools: Vec<String>,
    pub enable_tools: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error(transparent)]
    Refused(#[from] CreateError),
    #[error("the agent is gone")]
    Gone,
}

impl From<PolicyError> for ChangeError {
    fn from(error: PolicyError) -> Self {
        Self::Refused(error.into())
    }
}

impl From<Refusal> for ChangeError {
    fn from(refusal: Refusal) -> Self {
        PolicyError::from(refusal).into()
    }
}

/// One agent of a family, with what it is to have.
struct Step {
    member: Member<AgentHandle>,
    before: Arc<Permissions>,
    after: Arc<Permissions>,
}

impl Pool {
    /// Gives an agent another preset, and takes from those below it what it lacks from now on.
    pub async fn set_permissions(
        self: &Arc<Self>,
        agent: &AgentHandle,
        new: NewPermissions,
    ) -> Result<Arc<Permissions>, ChangeError> {
        let preset = Arc::clone(self.presets.get(&new.preset)?);
        self.check_tools(new.disable_tools.iter().chain(&new.enable_tools))?;
        let yolo = self.ground.yolo;
        let change = Change { preset, disable: new.disable_tools, enable: new.enable_tools };
        self.change(agent, move |before, closed| {
            if before.ceiling().is_none() {
                ceiling::root(&change.preset, yolo)?;
            }
            before.changed(&change, closed)
        })
        .await
    }

    /// Answers a confirmation, which may allow the agent more for good: nobody changes its permissions
    /// meanwhile.
    pub async fn confirm(
        self: &Arc<Self>,
        agent: &AgentHandle,
        answer: Decided,
    ) -> Result<Answered, ConfirmError> {
        let (pool, agent) = (Arc::clone(self), agent.clone());
        // What has begun is finished even if the caller goes away.
        let answered = tokio::spawn(async move {
            let _place = pool.families.acquire().await.expect("it is never closed");
            agent.confirm(answer).await
        });
        answered.await.expect("answering a confirmation does not panic")
    }

    /// Has an agent work elsewhere.
    pub async fn set_cwd(
        self: &Arc<Self>,
        agent: &AgentHandle,
        given: PathBuf,
    ) -> Result<Arc<Permissions>, ChangeError> {
        let base = agent.permissions().grant().cwd.clone();
        let cwd = self.resolved_dir(&base, &given).await?;
        let shown = given.display().to_string();
        self.change(agent, move |before, closed| {
            // The tools are nobody's here: what all of them may use is what counts.
            match before.rights().path("", Side::Read, &cwd) {
                PathRule::Free => Ok(before.moved(cwd, closed)),
                _ => Err(Refusal {
                    reason: Reason::Policy,
                    message: format!("{shown} lies outside of what the agent may use"),
                }),
            }
        })
        .await
    }

    async fn change(
        self: &Arc<Self>,
        agent: &AgentHandle,
        change: impl FnOnce(&Permissions, &[PathBuf]) -> Result<Permissions, Refusal> + Send + 'static,
    ) -> Result<Arc<Permissions>, ChangeError> {
        let (pool, agent) = (Arc::clone(self), agent.clone());
        // What has begun is finished even if the caller goes away: half of a family would be changed.
        let changed = tokio::spawn(async move { pool.change_family(&agent, change).await });
        changed.await.expect("changing permissions does not panic")
    }

    async fn change_family(
        self: &Arc<Self>,
        agent: &AgentHandle,
        change: impl FnOnce(&Permissions, &[PathBuf]) -> Result<Permissions, Refusal> + Send,
    ) -> Result<Arc<Permissions>, ChangeError> {
        let dormant = self.registry().dormant_below(&agent.id());
        for id in dormant {
            // One that cannot come back is decided on anew once it does.
            let _ = self.find(&id).await;
        }
        let places = u32::try_from(FAMILIES_AT_ONCE_MAX).expect("they are few");
        let _alone = self.families.acquire_many(places).await.expect("it is never closed");
        if self.is_stopping() {
            return Err(CreateError::Stopping.into());
        }
        let family = self.registry().family(agent.facts().number);
        if !family.first().is_some_and(|first| first.agent.is(agent)) {
            return Err(ChangeError::Gone);
        }
        let before = agent.permissions();
        let after = Arc::new(change(&before, &self.closed)?);
        let steps = self.steps(family, &after)?;
        self.write_changes(&steps).await?;
        for Step { member, after, .. } in steps {
            // One that is gone needs none.
            let _ = member.agent.adopt(after).await;
        }
        Ok(after)
    }

    /// What a change of the first of a family means for each of it, parents first.
    fn steps(
        &self,
        family: Vec<Member<AgentHandle>>,
        first: &Arc<Permissions>,
    ) -> Result<Vec<Step>, Refusal> {
        let mut steps: Vec<Step> = Vec::with_capacity(family.len());
        for member in family {
            let before = member.agent.permissions();
            let parent = steps.iter().find(|step| Some(step.member.number) == member.parent);
            let after = match parent {
                None => Arc::clone(first),
                Some(parent) => {
                    let ceiling = Arc::new(parent.after.rights().as_ceiling());
                    Arc::new(before.below(Some(ceiling), &self.closed))
                }
            };
            if member.has_children && after.level() == Level::Sandboxed {
                let message = format!("{} has children, and a sandboxed agent has none", member.id);
                return Err(Refusal { reason: Reason::Ceiling, message });
            }
            steps.push(Step { member, before, after });
        }
        let first = steps.remove(0);
        steps.retain(|step| step.after != step.before);
        steps.insert(0, first);
        Ok(steps)
    }

    async fn write_changes(&self, steps: &[Step]) -> Result<(), ChangeError> {
        let now = self.shared.world.clock.now();
        let mut writes = Vec::with_capacity(2 * steps.len());
        for Step { member, before, after } in steps {
            let granted = Box::new(granted(after));
            writes.push(Write::PermissionsSet { agent: member.number, granted });
            let changed = changed(before, after);
            if !changed.is_empty() {
                let parent_agent_id = member.parent_id.clone();
                let previous_agent_id = None;
                let what = What::AgentUpdated { parent_agent_id, changed, previous_agent_id };
                writes.push(Write::Event(Event::new(&member.id, now, what)));
            }
        }
        let committed = self.shared.store.commit(writes).await;
        committed.map_err(|source| CreateError::Storage { source }.into())
    }

    pub(super) fn check_tools<'n>(
        &self,
        mut named: impl Iterator<Item = &'n String>,
    ) -> Result<(), CreateError> {
        let known: Vec<&str> = self.shared.tools.names().collect();
        match named.find(|name| !known.contains(&name.as_str()) && !is_outside(name)) {
            None => Ok(()),
            Some(name) => {
                let (name, mut known) = (name.clone(), known);
                known.sort_unstable();
                Err(CreateError::UnknownTool { name, known: known.join(", ") })
            }
        }
    }

    /// The ceiling of a child of this agent.
    pub(super) fn ceiling_of(parent: &AgentHandle) -> Arc<Rights> {
        Arc::new(parent.permissions().rights().as_ceiling())
    }
}

/// What is kept of permissions.
pub(super) fn granted(permissions: &Permissions) -> Granted {
    let grant = permissions.grant();
    Granted {
        preset: grant.preset.name.clone(),
        cwd: grant.cwd.clone(),
        root: (grant.root != grant.cwd).then(|| grant.root.clone()),
        write_paths: grant.write_paths.clone(),
        disabled_tools: grant.disabled_tools.iter().cloned().collect(),
        enabled_tools: grant.enabled_tools.iter().cloned().collect(),
        session_allowances: (grant.allowances != Allowances::default())
            .then(|| grant.allowances.clone()),
        ceiling: permissions.ceiling().map(|ceiling| Rights::clone(ceiling)),
    }
}

/// What is different, by the names that callers know.
fn changed(before: &Permissions, after: &Permissions) -> Map<String, Value> {
    let told = |permissions: &Permissions| {
        [
            ("preset", json!(permissions.grant().preset.name)),
            ("permission_level", json!(permissions.level())),
            ("disabled_tools", json!(permissions.rights().disabled_tools)),
            ("cwd", json!(permissions.grant().cwd.display().to_string())),
            ("policy", json!(PolicyView::of(permissions))),
            ("session_allowances", json!(permissions.rights().allowances)),
        ]
    };
    let pairs = told(before).into_iter().zip(told(after));
    let differ = pairs.filter(|((_, before), (_, after))| before != after);
    differ.map(|(_, (name, after))| (name.to_owned(), after)).collect()
}
