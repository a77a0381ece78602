//! Keys as the terminal understands them, whatever machine they were typed on.

/// A key that somebody pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Enter,
    /// Enter that does not send.
    NewLine,
    Tab,
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    Up,
    Down,
    Escape,
    /// Control with a lower-case letter.
    Control(char),
    /// Alt with a character.
    Alt(char),
}

impl Key {
    /// The key of a name, as scenarios and tests write it.
    pub fn named(name: &str) -> Option<Self> {
        let letter = |prefix: &str| {
            let mut rest = name.strip_prefix(prefix)?.chars();
            rest.next().filter(|_| rest.next().is_none())
        };
        let key = match name {
            "enter" => Self::Enter,
            "newline" => Self::NewLine,
            "tab" => Self::Tab,
            "backspace" => Self::Backspace,
            "delete" => Self::Delete,
            "left" => Self::Left,
            "right" => Self::Right,
            "home" => Self::Home,
            "end" => Self::End,
            "up" => Self::Up,
            "down" => Self::Down,
            "esc" => Self::Escape,
            _ => letter("ctrl-").map(Self::Control).or_else(|| letter("alt-").map(Self::Alt))?,
        };
        Some(key)
    }
}
