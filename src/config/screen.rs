//! What of a project's configuration does not count before somebody trusts it: where models are asked,
//! what agents may do, what the server is. The rest is harmless.

use std::collections::BTreeSet;

use super::tree::{Object, Tree, Value};
use super::trust::Standing;

/// The network is among them because leave to ask private addresses is no harmless thing.
const NEEDS_TRUST: [&str; 4] = ["providers", "permissions", "network", "server"];

/// What was taken out of one layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Screened {
    pub(super) layer: usize,
    pub(super) keys: Vec<String>,
}

/// The keys of one project's configuration that count only when it is trusted.
pub(super) fn needing_trust(tree: &Tree) -> Vec<String> {
    let keys = NEEDS_TRUST.iter().filter(|key| tree.member(key).is_some());
    keys.map(|&key| key.to_owned()).collect()
}

/// Takes out of projects' layers what does not count; and the names of models that went with it, which
/// would otherwise lead nowhere.
pub(super) fn screen(projects: Vec<(usize, Standing, &mut Tree)>) -> Vec<Screened> {
    let mut gone = Models::default();
    let mut rest = Vec::new();
    for (layer, standing, tree) in projects {
        let keys = match standing {
            Standing::Trusted => Vec::new(),
            Standing::Changed | Standing::Unknown => needing_trust(tree),
        };
        for key in &keys {
            if let Some(removed) = tree.object_mut().and_then(|o| o.members.shift_remove(key))
                && key == "providers"
            {
                gone.add(&removed);
            }
        }
        rest.push((Screened { layer, keys }, tree));
    }
    let screened = rest.into_iter().map(|(mut screened, tree)| {
        if let Some(root) = tree.object_mut() {
            take_name(root, "default_model", &gone, "default_model", &mut screened.keys);
            let compaction = root.members.get_mut("compaction").and_then(Tree::object_mut);
            if let Some(compaction) = compaction {
                take_name(compaction, "model", &gone, "compaction.model", &mut screened.keys);
            }
        }
        screened
    });
    screened.filter(|screened| !screened.keys.is_empty()).collect()
}

fn take_name(object: &mut Object, key: &str, gone: &Models, path: &str, taken: &mut Vec<String>) {
    if let Some(Tree { value: Value::Text(name), .. }) = object.members.get(key)
        && gone.has(name)
    {
        object.members.shift_remove(key);
        taken.push(path.to_owned());
    }
}

/// The models of providers that do not count, by the names they can be asked for.
#[derive(Debug, Default)]
struct Models {
    providers: BTreeSet<String>,
    aliases: BTreeSet<String>,
}

impl Models {
    fn add(&mut self, providers: &Tree) {
        for (name, provider) in providers.members() {
            self.providers.insert(name.clone());
            let models = provider.member("models").into_iter().flat_map(Tree::members);
            self.aliases.extend(models.map(|(alias, _)| alias.clone()));
        }
    }

    fn has(&self, name: &str) -> bool {
        let provider = name.split_once('/').map(|(provider, _)| provider);
        self.aliases.contains(name) || provider.is_some_and(|name| self.providers.contains(name))
    }
}
