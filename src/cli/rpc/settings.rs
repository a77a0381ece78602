//! What an agent is set to: `permissions`, `cwd`, `prompt`, `model`. Each shows it, or sets it if a new
//! value is given.

use clap::Args;
use serde_json::json;

use crate::cli::connection::Connection;
use crate::cli::{Failed, output};
use crate::id::AgentId;
use crate::rpc::method::{GetPermissionsResult, SetPermissionsParams};

/// Shows what an agent may do, or gives it another preset
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 rpc permissions scout\n  \
    nexus3 rpc permissions scout trusted --disable-tools exec")]
pub struct Permissions {
    /// Its id
    agent: AgentId,
    /// The new preset: yolo, trusted, sandboxed, worker, or one of the configuration
    preset: Option<String>,
    /// Takes a tool away; may be given several times
    #[arg(long, value_name = "TOOL", requires = "preset")]
    disable_tools: Vec<String>,
    /// Gives back a tool that the preset takes away; may be given several times
    #[arg(long, value_name = "TOOL", requires = "preset")]
    enable_tools: Vec<String>,
}

impl Permissions {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let client = &connection.client;
        let some = |list: Vec<String>| (!list.is_empty()).then_some(list);
        let Some(preset) = self.preset else {
            let permissions = client.get_permissions(&self.agent).await;
            let permissions = connection.answered(permissions).await?;
            connection.show(&permissions, || told(&permissions));
            return Ok(());
        };
        let params = SetPermissionsParams {
            preset,
            disable_tools: some(self.disable_tools),
            enable_tools: some(self.enable_tools),
        };
        let set = connection.answered(client.set_permissions(&self.agent, &params).await).await?;
        connection.show(&set, || told(&set.permissions));
        Ok(())
    }
}

fn told(permissions: &GetPermissionsResult) -> String {
    let level = json!(permissions.permission_level);
    let paths = |paths: &Option<Vec<String>>, none: &str| match paths {
        Some(paths) if paths.is_empty() => "nothing".to_owned(),
        Some(paths) => output::plain(&paths.join(", ")),
        None => none.to_owned(),
    };
    let disabled: Vec<&str> = permissions.disabled_tools.iter().map(String::as_str).collect();
    let policy = &permissions.policy;
    let mut facts = vec![
        ("preset", permissions.preset.clone()),
        ("level", level.as_str().unwrap_or_default().to_owned()),
        ("cwd", output::plain(&policy.cwd)),
        ("may use", paths(&policy.allowed_paths, "all that is not blocked")),
        ("may write", paths(&policy.write_paths, "as its level says")),
        ("blocked", output::plain(&policy.blocked_paths.join(", "))),
    ];
    let description = permissions.description.as_deref().map(output::plain);
    facts.extend(description.map(|text| ("about it", text)));
    if !disabled.is_empty() {
        facts.push(("no tools", disabled.join(", ")));
    }
    output::facts(&facts)
}

/// Shows where an agent works, or has it work in another directory
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nexus3 rpc cwd scout\n  nexus3 rpc cwd scout src")]
pub struct Cwd {
    /// Its id
    agent: AgentId,
    /// The new directory, relative to the one it has
    #[arg(value_name = "DIR")]
    cwd: Option<String>,
}

impl Cwd {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let client = &connection.client;
        let cwd = if let Some(cwd) = self.cwd {
            connection.answered(client.set_cwd(&self.agent, &cwd).await).await?.cwd
        } else {
            let permissions = client.get_permissions(&self.agent).await;
            connection.answered(permissions).await?.policy.cwd
        };
        connection.show(&json!({"cwd": cwd}), || output::plain(&cwd));
        Ok(())
    }
}

/// Shows what an agent's model is told first, or replaces it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 rpc prompt scout\n  \
    nexus3 rpc prompt scout \"$(cat prompt.md)\"")]
pub struct Prompt {
    /// Its id
    agent: AgentId,
    /// The new system prompt
    #[arg(value_name = "TEXT")]
    system_prompt: Option<String>,
}

impl Prompt {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let client = &connection.client;
        if let Some(text) = self.system_prompt {
            let set = client.set_system_prompt(&self.agent, &text).await;
            let set = connection.answered(set).await?;
            connection.show(&set, String::new);
            return Ok(());
        }
        let prompt = connection.answered(client.get_system_prompt(&self.agent).await).await?;
        connection.show(&prompt, || output::plain(&prompt.system_prompt));
        Ok(())
    }
}

/// Shows which model an agent asks, or gives it another
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nexus3 rpc model scout\n  nexus3 rpc model scout large")]
pub struct Model {
    /// Its id
    agent: AgentId,
    /// An alias of the configuration, or provider/model-id
    model: Option<String>,
}

impl Model {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let client = &connection.client;
        if let Some(model) = self.model {
            let set = connection.answered(client.set_model(&self.agent, &model).await).await?;
            connection.show(&set, || format!("{} ({})", set.model, set.provider));
            return Ok(());
        }
        let model = connection.answered(client.get_model(&self.agent).await).await?;
        connection.show(&model, || format!("{} ({})", model.model, model.provider));
        Ok(())
    }
}
