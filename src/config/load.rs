//! Layers become a `Config`, or the list of all that is wrong with them. Pure; `gather` says which
//! layers there are.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use super::layer::{Form, Layer};
use super::problem::Problems;
use super::providers;
use super::screen::{self, Screened, screen};
use super::section::{Field, Section, Zero};
use super::tree::Tree;
use super::words::{nearest, quoted};
use super::{
    BuiltIn, CompactionConfig, Config, ConfigError, EventsConfig, LineageError, LogLevel,
    NetworkConfig, PermissionsConfig, PresetConfig, RetainConfig, ServerConfig, Source,
    StorageConfig, SyncMode, ToolConfig, syntax,
};
use crate::limits::{self, PRESET_CHAIN_MAX};

/// Reads a configuration that is one text.
pub fn load(source: &Source) -> Result<Config, ConfigError> {
    let layer = Layer { source: source.clone(), form: Form::File };
    read(&[layer]).map(|read| read.config)
}

/// What layers are together.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) config: Config,
    /// All of them, laid over each other.
    pub(super) merged: Tree,
    /// What of them does not count.
    pub(super) screened: Vec<Screened>,
}

/// The configuration that layers make together, the later over the earlier.
pub(super) fn read(layers: &[Layer]) -> Result<Read, ConfigError> {
    let problems = Problems::new(layers);
    let mut trees: Vec<Option<Tree>> =
        layers.iter().enumerate().map(|(index, layer)| tree(index, layer, &problems)).collect();
    let projects = trees.iter_mut().zip(layers).enumerate();
    let projects = projects.filter_map(|(index, (tree, layer))| match &layer.form {
        Form::Project { standing } => Some((index, *standing, tree.as_mut()?)),
        Form::File | Form::Value { .. } => None,
    });
    let screened = screen(projects.collect());
    let mut merged = Tree::empty();
    for tree in trees.into_iter().flatten() {
        merged.cover(tree);
    }
    let config = Section::root(&merged, &problems).map(config).unwrap_or_default();
    problems.settle((config, screened)).map(|(config, screened)| Read { config, merged, screened })
}

/// What a layer says. None, with a problem added, where it is no object with keys.
fn tree(index: usize, layer: &Layer, problems: &Problems<'_>) -> Option<Tree> {
    match &layer.form {
        Form::File | Form::Project { .. } => {
            let tree = syntax::file(index, &layer.source.text, problems)?;
            // Merged, it would be told only where nothing lies over it.
            let is_object = tree.is_object() || Section::root(&tree, problems).is_some();
            is_object.then_some(tree)
        }
        Form::Value { keys } => Some(syntax::variable(index, &layer.source.text).below(keys)),
    }
}

/// The keys of a project's configuration that count only when it is trusted.
pub fn needing_trust(source: &Source) -> Result<Vec<String>, ConfigError> {
    let layer = Layer { source: source.clone(), form: Form::File };
    let problems = Problems::new(std::slice::from_ref(&layer));
    let keys = tree(0, &layer, &problems).map(|tree| screen::needing_trust(&tree));
    problems.settle(keys.unwrap_or_default())
}

fn config(mut root: Section<'_>) -> Config {
    let default = Config::default();
    let model_hint = "name an alias of `providers.*.models`, or leave it out for the first one";
    let default_model = root.given("default_model", model_hint);
    let network = section(&mut root, "network", network).unwrap_or_default();
    let (providers, names) =
        providers::read(root.field("providers", String::new()), network.reach());
    let config = Config {
        default_model: default_model.and_then(|field| providers::known_model(&field, &names)),
        providers,
        max_tool_iterations: root.value("max_tool_iterations", default.max_tool_iterations, |f| {
            f.whole(1..=limits::TOOL_ITERATIONS_CONFIGURED_MAX.into())
        }),
        max_concurrent_tools: root.value(
            "max_concurrent_tools",
            default.max_concurrent_tools,
            |f| f.whole(1..=limits::CONCURRENT_TOOLS_CONFIGURED_MAX as u64),
        ),
        skill_timeout: root
            .value("skill_timeout", default.skill_timeout, |f| f.seconds(Zero::Refused)),
        turn_timeout: root
            .value("turn_timeout", default.turn_timeout, |f| f.seconds(Zero::Refused)),
        confirmation_timeout: root.value(
            "confirmation_timeout",
            default.confirmation_timeout,
            |f| f.seconds(Zero::Refused),
        ),
        max_messages: root.value("max_messages", default.max_messages, |f| {
            f.whole(1..=limits::MESSAGES_LOADED_CONFIGURED_MAX as u64)
        }),
        compaction: section(&mut root, "compaction", |section| compaction(section, &names))
            .unwrap_or_default(),
        permissions: section(&mut root, "permissions", permissions).unwrap_or_default(),
        network,
        server: section(&mut root, "server", server).unwrap_or_default(),
        storage: section(&mut root, "storage", storage).unwrap_or_default(),
        events: section(&mut root, "events", events).unwrap_or_default(),
        mcp_servers: default.mcp_servers,
    };
    root.finish(&[]);
    config
}

fn section<'a, T>(
    parent: &mut Section<'a>,
    key: &'static str,
    read: impl FnOnce(Section<'a>) -> T,
) -> Option<T> {
    let hint = format!("write \"{key}\": {{…}}, or leave it out");
    parent.field(key, hint)?.section().map(read)
}

fn server(mut section: Section<'_>) -> ServerConfig {
    let default = ServerConfig::default();
    let server = ServerConfig {
        host: section.value("host", default.host, host),
        port: section.value("port", default.port, |f| f.whole(0..=u16::MAX.into())),
        max_connections: section.value("max_connections", default.max_connections, |f| {
            f.whole(1..=limits::CONNECTIONS_CONFIGURED_MAX as u64)
        }),
        max_concurrent: section.value("max_concurrent", default.max_concurrent, |f| {
            f.whole(1..=limits::EXECUTING_CONFIGURED_MAX as u64)
        }),
        idle_timeout: section
            .optional("idle_timeout", "leave it out to run on", |f| f.seconds(Zero::Refused)),
        shutdown_grace: section
            .value("shutdown_grace", default.shutdown_grace, |f| f.seconds(Zero::Allowed)),
        log_level: section.value("log_level", default.log_level, |f| {
            f.choice(&LOG_LEVELS.map(|level| (level.name(), level)), &[])
        }),
    };
    section.finish(&[]);
    server
}

fn compaction(mut section: Section<'_>, names: &providers::Names<'_>) -> CompactionConfig {
    let default = CompactionConfig::default();
    let model_hint = "name an alias of `providers.*.models`, or leave it out for the agent's own";
    let model = section.given("model", model_hint);
    let compaction = CompactionConfig {
        enabled: section.value("enabled", default.enabled, Field::flag),
        model: model.and_then(|field| providers::known_model(&field, names)),
        trigger_threshold: section.value(
            "trigger_threshold",
            default.trigger_threshold,
            Field::share,
        ),
        recent_preserve_ratio: section.value(
            "recent_preserve_ratio",
            default.recent_preserve_ratio,
            Field::share,
        ),
    };
    section.finish(&[]);
    compaction
}

fn network(mut section: Section<'_>) -> NetworkConfig {
    let default = NetworkConfig::default();
    let network = NetworkConfig {
        allow_private: section.value("allow_private", default.allow_private, Field::flag),
    };
    section.finish(&[]);
    network
}

fn storage(mut section: Section<'_>) -> StorageConfig {
    let default = StorageConfig::default();
    let storage = StorageConfig {
        sync: section.value("sync", default.sync, |f| {
            f.choice(&[SyncMode::Full, SyncMode::Normal].map(|sync| (sync.name(), sync)), &[])
        }),
    };
    section.finish(&[]);
    storage
}

fn events(mut events: Section<'_>) -> EventsConfig {
    let retain = section(&mut events, "retain", retain).unwrap_or_default();
    events.finish(&[]);
    EventsConfig { retain }
}

fn retain(mut section: Section<'_>) -> RetainConfig {
    let default = RetainConfig::default();
    let retain = RetainConfig {
        per_agent: section.value("per_agent", default.per_agent, |f| {
            f.whole(1..=limits::EVENTS_KEPT_CONFIGURED_MAX)
        }),
        days: section
            .value("days", default.days, |f| f.whole(1..=limits::EVENTS_KEPT_DAYS_CONFIGURED_MAX)),
    };
    section.finish(&[]);
    retain
}

const LOG_LEVELS: [LogLevel; 5] =
    [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace];

fn host(field: &Field<'_>) -> Option<IpAddr> {
    match field.text()? {
        "127.0.0.1" | "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
        "::1" => Some(Ipv6Addr::LOCALHOST.into()),
        _ => {
            field.refuse(
                "the server listens on this machine only",
                "use \"127.0.0.1\", \"localhost\" or \"::1\"; for others, put a proxy or an SSH \
                 tunnel in front",
            );
            None
        }
    }
}

fn permissions(mut section: Section<'_>) -> PermissionsConfig {
    let default = PermissionsConfig::default();
    let default_field = section.field("default_preset", String::new());
    let default_preset =
        section.value("default_preset", default.default_preset, |f| f.text().map(str::to_owned));
    let preset_fields = section
        .field("presets", "write \"presets\": {\"name\": {…}}".to_owned())
        .and_then(|field| field.entries())
        .unwrap_or_default();
    let mut presets = BTreeMap::new();
    let mut extends_fields = Vec::new();
    for field in &preset_fields {
        if BuiltIn::parse(field.name).is_some() {
            field.refuse_key("this preset is built in", "choose another name");
        }
        if let Some(mut section) = field.section() {
            extends_fields.push((field, section.field("extends", String::new())));
            presets.insert(field.name.to_owned(), preset(section));
        }
    }
    let blocked_paths = blocked_paths(&mut section);
    let permissions = PermissionsConfig { default_preset, presets, blocked_paths };
    section.finish(&[]);

    let names = permissions.preset_names();
    if let Some(field) = default_field {
        check_lineage(&field, &permissions, &names, &permissions.default_preset);
    }
    for (field, extends) in extends_fields {
        check_lineage(extends.as_ref().unwrap_or(field), &permissions, &names, field.name);
    }
    permissions
}

fn preset(mut section: Section<'_>) -> PresetConfig {
    let preset = PresetConfig {
        extends: section
            .required("extends", "name the preset it starts from", |f| f.text().map(str::to_owned))
            // The fault is told; whoever extends this preset is not to blame for it.
            .unwrap_or_else(|| PermissionsConfig::default().default_preset),
        description: section
            .optional("description", "write a sentence", |f| f.text().map(str::to_owned)),
        allowed_paths: allowed_paths(&mut section),
        blocked_paths: blocked_paths(&mut section),
        tools: section
            .field("tools", "write \"tools\": {\"name\": {…}}".to_owned())
            .and_then(|field| field.entries())
            .unwrap_or_default()
            .iter()
            .filter_map(|field| Some((field.name.to_owned(), tool(field.section()?))))
            .collect(),
    };
    section.finish(&[]);
    preset
}

fn tool(mut section: Section<'_>) -> ToolConfig {
    let tool = ToolConfig {
        enabled: section.optional("enabled", "leave it out to change nothing", Field::flag),
        allowed_paths: allowed_paths(&mut section),
        timeout: section
            .optional("timeout", "leave it out for `skill_timeout`", |f| f.seconds(Zero::Refused)),
    };
    section.finish(&[]);
    tool
}

/// A list with a fault in it allows less than was meant, never more.
fn allowed_paths(section: &mut Section<'_>) -> Option<Vec<PathBuf>> {
    let hint = "write \"allowed_paths\": [\"/a/directory\"]; [] allows nothing";
    let list = section.optional("allowed_paths", hint, Field::list)?;
    Some(list.iter().filter_map(absolute_path).collect())
}

fn blocked_paths(section: &mut Section<'_>) -> Vec<PathBuf> {
    let hint = "write \"blocked_paths\": [\"/a/directory\"]".to_owned();
    let blocked = section.field("blocked_paths", hint);
    let blocked = blocked.and_then(|field| field.list()).unwrap_or_default();
    blocked.iter().filter_map(absolute_path).collect()
}

/// A preset is told about its own `extends` only: a fault further down is told there.
fn check_lineage(field: &Field<'_>, permissions: &PermissionsConfig, names: &[&str], preset: &str) {
    let Err(error) = permissions.lineage(preset) else {
        return;
    };
    let direct = permissions.presets.get(preset).map(|preset| &preset.extends);
    match error {
        LineageError::Unknown { name } if name == preset || Some(&name) == direct => field.refuse(
            &format!("there is no preset {}", quoted(&name)),
            &nearest(&name, names, "there are"),
        ),
        LineageError::Endless { .. } => field.refuse(
            &format!("the preset extends itself, or stands on more than {PRESET_CHAIN_MAX} others"),
            "let one of them extend a built-in preset",
        ),
        LineageError::Unknown { .. } | LineageError::BuiltIn { .. } => (),
    }
}

/// What a path is relative to would be a guess: the server, the file or the agent.
pub(super) fn absolute_path(field: &Field<'_>) -> Option<PathBuf> {
    let path = PathBuf::from(field.text()?);
    if path.is_absolute() {
        return Some(path);
    }
    field.refuse(
        "expected an absolute path",
        "write the whole path, starting with /; `~` is not expanded",
    );
    None
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "told_tests.rs"]
mod told_tests;
