//! How much may be on its way to the server at once, and what is told where that is too much. Pure.

use super::core::{Effect, Input};
use super::line::Tone;
use crate::limits::terminal::{ACTS_MAX, CALLS_MAX};

/// With how many others an effect may be on its way. What there is only one of is not counted.
pub fn at_once_max(effect: &Effect) -> usize {
    match effect {
        Effect::Send { .. } | Effect::Run { .. } => CALLS_MAX,
        // They end what others wait for.
        Effect::Cancel { .. } | Effect::Confirm { .. } => ACTS_MAX,
        Effect::Create(_)
        | Effect::Survey
        | Effect::Refresh(_)
        | Effect::Complete { .. }
        | Effect::Print(_)
        | Effect::Attach { .. }
        | Effect::Leave
        | Effect::Remember(_)
        | Effect::Interrupt(_)
        | Effect::ClearScreen
        | Effect::Quit => usize::MAX,
    }
}

/// What is told of an effect for which there is no room.
pub fn refused(effect: Effect) -> Input {
    let error = "too much is going on at once".to_owned();
    match effect {
        Effect::Send { number, .. } => Input::NotSent { number, error },
        Effect::Confirm { confirm_id, .. } => Input::NotConfirmed { confirm_id, error },
        Effect::Run { number, .. } => not_done(Some(number), &error),
        Effect::Cancel { .. }
        | Effect::Interrupt(_)
        | Effect::Create(_)
        | Effect::Survey
        | Effect::Refresh(_)
        | Effect::Complete { .. }
        | Effect::Print(_)
        | Effect::Attach { .. }
        | Effect::Leave
        | Effect::Remember(_)
        | Effect::ClearScreen
        | Effect::Quit => not_done(None, &error),
    }
}

fn not_done(number: Option<u64>, error: &str) -> Input {
    Input::Ran { number, text: format!("✗ {error}: it was not done"), how: Tone::Bad }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::AgentId;

    #[test]
    fn a_message_without_room_is_given_back() {
        let agent = AgentId::parse("scout").unwrap();
        let send = Effect::Send { agent: agent.clone(), content: "Hello".to_owned(), number: 3 };
        assert!(at_once_max(&send) < at_once_max(&Effect::Cancel { agent, request: None }));
        assert!(matches!(refused(send), Input::NotSent { number: 3, .. }));
    }
}
