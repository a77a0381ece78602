//! Agents that come back from a session file: with every field of what they were made from. What is compared
//! is the whole record, given here without a field left out, so that a new one cannot be forgotten.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use nexus3::config::Config;
use nexus3::id::AgentId;
use nexus3::policy::Allowances;
use nexus3::policy::ceiling::Yolo;
use nexus3::rpc::method::SaveSessionParams;
use nexus3::store::{Recipe, Standing};
use rusqlite::Connection;
use serde_json::Value;

use crate::agents_support::Stage;

/// All that is on record of an agent but its requests and events.
#[derive(Debug, PartialEq)]
struct Record {
    recipe: Recipe,
    /// `id`, `parent`, `depth`, `created_at` and `modified_at`, as they are told.
    row: Vec<String>,
    standing: Standing,
    messages: Vec<Value>,
}

impl Record {
    /// What is over with an agent that is destroyed, and nothing else.
    fn with_how_its_last_turn_went_forgotten(self) -> Self {
        let Standing {
            halted_at_iteration_limit: _,
            last_iteration_count: _,
            last_action_at: _,
            token_usage,
        } = self.standing;
        assert_ne!(token_usage, Standing::default().token_usage, "it has used something");
        Self { standing: Standing { token_usage, ..Standing::default() }, ..self }
    }
}

fn database(stage: &Stage) -> PathBuf {
    stage.server.home.path().join("nexus3.db")
}

fn record(database: &Path, id: &AgentId) -> Record {
    let database = Connection::open(database).expect("no server has it");
    let text = "SELECT number, recipe, standing, id || '', coalesce(parent, ''), depth || '', \
                created_at || '', modified_at || '' FROM agents JOIN recipes ON agent = number \
                WHERE id = ?1 AND session_status IN ('active', 'dormant')";
    let json = |text: &str| serde_json::from_str(text).expect("it is JSON");
    let (number, record) = database
        .query_row(text, [id.as_str()], |row| {
            let text = |column: usize| row.get::<_, String>(column);
            let record = Record {
                recipe: serde_json::from_str(&text(1)?).expect("it is a recipe"),
                standing: serde_json::from_str(&text(2)?).expect("it is a standing"),
                row: (3..8).map(text).collect::<Result<_, _>>()?,
                messages: Vec::new(),
            };
            Ok((row.get::<_, i64>(0)?, record))
        })
        .expect("the agent is on record");
    let mut rows = database
        .prepare("SELECT message FROM messages WHERE agent = ?1 ORDER BY place")
        .expect("there are messages");
    let messages =
        rows.query_map([number], |row| row.get::<_, String>(0)).expect("they can be read");
    Record { messages: messages.map(|text| json(&text.expect("it is text"))).collect(), ..record }
}

fn set_recipe(database: &Path, id: &AgentId, recipe: &Recipe) {
    let database = Connection::open(database).expect("no server has it");
    let text = "UPDATE recipes SET recipe = ?2 WHERE agent = (SELECT number FROM agents \
                WHERE id = ?1 AND session_status IN ('active', 'dormant'))";
    let recipe = serde_json::to_string(recipe).expect("it has only string keys");
    let changed = database.execute(text, (id.as_str(), recipe));
    assert_eq!(changed.expect("it is written"), 1);
}

fn two_models(config: &mut Config) {
    let provider = config.providers.values_mut().next().expect("there is one");
    let other = provider.models["m"].clone();
    provider.models.insert("other".to_owned(), other);
    config.default_model = Some("m".to_owned());
}

/// Everything that a trusted agent can have, and nothing as it is by default.
fn trusted(place: &Path) -> Recipe {
    let path = |name: &str| place.join(name);
    Recipe {
        preset: "trusted".to_owned(),
        model: "other".to_owned(),
        cwd: path("home"),
        write_paths: Vec::new(),
        disabled_tools: vec!["echo".to_owned(), "sleep".to_owned()],
        enabled_tools: Vec::new(),
        system_prompt: "You count.".into(),
        system_prompt_path: Some(path("home/NEXUS.md")),
        root: Some(place.to_owned()),
        session_allowances: Some(Allowances {
            write_files: [path("a.txt")].into(),
            write_directories: [path("out")].into(),
            exec_directories: [("make".to_owned(), [path("home")].into())].into(),
            mcp_servers: ["files".to_owned()].into(),
            mcp_tools: ["files_read".to_owned()].into(),
        }),
        ceiling: None,
    }
}

/// What only a sandboxed agent has: paths that it may write, around where it works.
fn sandboxed(place: &Path) -> Recipe {
    Recipe {
        preset: "sandboxed".to_owned(),
        write_paths: vec![place.join("home/out"), place.join("log")],
        session_allowances: None,
        ..trusted(place)
    }
}

/// What callers are told of an agent.
async fn told(stage: &Stage, id: &AgentId) -> impl PartialEq + Debug + use<> {
    let permissions = stage.get_permissions(id).await.expect("it tells its permissions");
    let model = stage.get_model(id).await.expect("it tells its model");
    let prompt = stage.get_system_prompt(id).await.expect("it tells its prompt");
    let tokens = stage.get_tokens(id).await.expect("it counts its tokens");
    (permissions, model, prompt, tokens)
}

#[tokio::test]
async fn what_is_saved_destroyed_and_restored_is_equal_field_by_field() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    std::fs::create_dir(place.join("home")).unwrap();
    for (name, recipe) in [("scout", trusted(&place)), ("clerk", sandboxed(&place))] {
        let mut stage = Stage::with(Yolo::Refused, two_models).await;
        let (id, database) = (stage.agent(name, &recipe.preset).await, database(&stage));
        stage.exchange(&id, "One?", "One.").await;
        stage.exchange(&id, "Two?", "Two.").await;
        let stage = stage.restarted(Yolo::Refused, |config| {
            two_models(config);
            set_recipe(&database, &id, &recipe);
        });
        let stage = stage.await;
        let params =
            SaveSessionParams { agent_id: id.clone(), session_name: None, overwrite: None };
        stage.save_session(&params).await.unwrap();
        let told_before = told(&stage, &id).await;
        let mut saved = None;
        let stage = stage.restarted(Yolo::Refused, |config| {
            two_models(config);
            saved = Some(record(&database, &id));
        });
        let stage = stage.await;
        assert_eq!(stage.destroy(&id).await.destroyed, std::slice::from_ref(&id));
        let stage = stage.restarted(Yolo::Refused, two_models).await;
        assert_eq!(told(&stage, &id).await, told_before);
        let mut restored = None;
        let stage = stage.restarted(Yolo::Refused, |config| {
            two_models(config);
            restored = Some(record(&database, &id));
        });
        stage.await;
        let (saved, restored) = (saved.unwrap(), restored.unwrap());
        assert_eq!((&restored.recipe, restored.messages.len()), (&recipe, 4));
        assert_eq!(restored, saved.with_how_its_last_turn_went_forgotten());
    }
}
