//! What the sources say, as trees whose every value knows where it stands, and one laid over
//! another: objects merge, everything else replaces. It knows no key; the readers do.

use indexmap::IndexMap;
use indexmap::map::Entry;
use jsonc_parser::ast;
use jsonc_parser::common::Ranged;

/// A place in one of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) source: usize,
    pub(super) offset: usize,
}

/// One value, and where it and its key stand.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) key_at: At,
    pub(super) at: At,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Flag(bool),
    /// As it is written.
    Number(String),
    Text(String),
    List(Vec<Tree>),
    Object(Object),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    pub(super) members: IndexMap<String, Tree>,
    /// Keys that a source has a second time, with their places there.
    pub(super) twice: Vec<(String, At)>,
}

impl Tree {
    /// An object without members.
    pub(super) fn empty() -> Self {
        let at = At { source: 0, offset: 0 };
        Self { key_at: at, at, value: Value::Object(Object::default()) }
    }

    /// A text that stands at the start of a source.
    pub(super) fn text(source: usize, text: &str) -> Self {
        let at = At { source, offset: 0 };
        Self { key_at: at, at, value: Value::Text(text.to_owned()) }
    }

    /// What was parsed of a source.
    pub(super) fn parsed(source: usize, value: &ast::Value<'_>) -> Self {
        let at = At { source, offset: value.start() };
        let value = match value {
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::BooleanLit(flag) => Value::Flag(flag.value),
            ast::Value::NumberLit(number) => Value::Number(number.value.to_owned()),
            ast::Value::StringLit(text) => Value::Text(text.value.clone().into_owned()),
            ast::Value::Array(array) => {
                Value::List(array.elements.iter().map(|item| Self::parsed(source, item)).collect())
            }
            ast::Value::Object(object) => Value::Object(Object::parsed(source, object)),
        };
        Self { key_at: at, at, value }
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self.value, Value::Object(_))
    }

    pub(super) fn object_mut(&mut self) -> Option<&mut Object> {
        match &mut self.value {
            Value::Object(object) => Some(object),
            Value::Null | Value::Flag(_) | Value::Number(_) | Value::Text(_) | Value::List(_) => {
                None
            }
        }
    }

    /// The members of an object; nothing has none.
    pub(super) fn members(&self) -> impl Iterator<Item = (&String, &Tree)> {
        let object = match &self.value {
            Value::Object(object) => Some(object),
            Value::Null | Value::Flag(_) | Value::Number(_) | Value::Text(_) | Value::List(_) => {
                None
            }
        };
        object.into_iter().flat_map(|object| &object.members)
    }

    pub(super) fn member(&self, key: &str) -> Option<&Tree> {
        self.members().find(|(name, _)| *name == key).map(|(_, tree)| tree)
    }

    /// The same without its places, or the first key that stands somewhere a second time.
    pub(super) fn plain(&self) -> Result<serde_json::Value, (&str, At)> {
        Ok(match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Flag(flag) => (*flag).into(),
            Value::Number(number) => serde_json::from_str(number).unwrap_or_default(),
            Value::Text(text) => text.as_str().into(),
            Value::List(items) => items.iter().map(Self::plain).collect::<Result<_, _>>()?,
            Value::Object(Object { members, twice }) => {
                if let Some((key, at)) = twice.first() {
                    return Err((key, *at));
                }
                let mut plain = serde_json::Map::new();
                for (key, tree) in members {
                    plain.insert(key.clone(), tree.plain()?);
                }
                serde_json::Value::Object(plain)
            }
        })
    }

    /// The tree as the member of objects around it, the outermost first.
    pub(super) fn below(self, keys: &[String]) -> Self {
        keys.iter().rev().fold(self, |inner, key| {
            let (key_at, at) = (inner.at, inner.at);
            let members = IndexMap::from([(key.clone(), inner)]);
            Self { key_at, at, value: Value::Object(Object { members, twice: Vec::new() }) }
        })
    }

    /// Lays another tree over this one.
    pub(super) fn cover(&mut self, over: Self) {
        match (&mut self.value, over.value) {
            (Value::Object(object), Value::Object(over_object)) => {
                object.cover(over_object);
                (self.key_at, self.at) = (over.key_at, over.at);
            }
            (_, value) => *self = Self { value, ..over },
        }
    }
}

impl Object {
    fn parsed(source: usize, object: &ast::Object<'_>) -> Self {
        let mut parsed = Self::default();
        for property in &object.properties {
            let key_at = At { source, offset: property.start() };
            match parsed.members.entry(property.name.as_str().to_owned()) {
                Entry::Occupied(first) => parsed.twice.push((first.key().clone(), key_at)),
                Entry::Vacant(place) => {
                    place.insert(Tree { key_at, ..Tree::parsed(source, &property.value) });
                }
            }
        }
        parsed
    }

    /// What is new comes after what was there: the first provider stays the first.
    fn cover(&mut self, over: Self) {
        self.twice.extend(over.twice);
        for (key, tree) in over.members {
            match self.members.entry(key) {
                Entry::Occupied(mut below) => below.get_mut().cover(tree),
                Entry::Vacant(place) => {
                    place.insert(tree);
                }
            }
        }
    }
}
