//! A position in the tree of a scenario file: the keys and indices that lead there.

use toml::{Table, Value};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Turn {
    Key(String),
    Index(usize),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place(Vec<Turn>);

/// Every place in a file, in its order, each before those inside it.
pub fn all(root: &Table) -> Vec<Place> {
    let mut places = Vec::new();
    for (key, value) in root {
        collect(&mut places, &Place::outermost(key), value);
    }
    places
}

fn collect(places: &mut Vec<Place>, place: &Place, value: &Value) {
    places.push(place.clone());
    match value {
        Value::Table(members) => {
            for (key, member) in members {
                collect(places, &place.then(Turn::Key(key.clone())), member);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(places, &place.then(Turn::Index(index)), item);
            }
        }
        Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_) => {}
    }
}

impl Place {
    /// The value of an outermost key.
    pub fn outermost(key: &str) -> Self {
        Self(vec![Turn::Key(key.to_owned())])
    }

    fn then(&self, turn: Turn) -> Self {
        let mut turns = self.0.clone();
        turns.push(turn);
        Self(turns)
    }

    /// The last key on the way: that of the value, or of the list it is in.
    pub fn key(&self) -> Option<&str> {
        self.keys().last()
    }

    /// The keys on the way, from the outermost.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.iter().filter_map(|turn| match turn {
            Turn::Key(key) => Some(key.as_str()),
            Turn::Index(_) => None,
        })
    }

    /// Whether it belongs to one of the outermost keys that are given.
    pub fn is_fixed(&self, keys: &[&str]) -> bool {
        self.keys().next().is_some_and(|first| keys.contains(&first))
    }

    pub fn get<'t>(&self, root: &'t Table) -> Option<&'t Value> {
        let (first, inner) = self.0.split_first()?;
        let Turn::Key(first) = first else { return None };
        inner.iter().try_fold(root.get(first)?, |value, turn| match turn {
            Turn::Key(key) => value.get(key),
            Turn::Index(index) => value.get(*index),
        })
    }

    pub fn get_mut<'t>(&self, root: &'t mut Table) -> Option<&'t mut Value> {
        let (first, inner) = self.0.split_first()?;
        let Turn::Key(first) = first else { return None };
        inner.iter().try_fold(root.get_mut(first)?, |value, turn| match turn {
            Turn::Key(key) => value.get_mut(key),
            Turn::Index(index) => value.get_mut(*index),
        })
    }

    /// Takes the member of a table away that is here. Returns whether there was one: an entry of a list
    /// is none.
    pub fn remove_member(&self, root: &mut Table) -> bool {
        let Some((Turn::Key(key), outer)) = self.0.split_last() else { return false };
        let table = if outer.is_empty() {
            Some(root)
        } else {
            Self(outer.to_vec()).get_mut(root).and_then(Value::as_table_mut)
        };
        table.is_some_and(|table| table.remove(key).is_some())
    }
}
