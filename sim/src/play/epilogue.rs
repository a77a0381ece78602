//! The end of a transcript: who is there, who was asked, and what is on the disk. It judges nothing.

use super::checker::Survey;
use super::kept::Kept;
use super::theatre::Theatre;
use crate::disk::View;

/// The end state, in a few lines.
pub fn tell(theatre: &Theatre, survey: Option<&Survey>, kept: Option<&Kept>) {
    let transcript = &theatre.transcript;
    if let Some(survey) = survey {
        let active = survey.agents.iter();
        let mut agents: Vec<String> = active
            .map(|agent| format!("{} ({} messages)", agent.agent_id, agent.message_count))
            .collect();
        // A server lists those in memory; the others are there as well, for who asks for them.
        let is_active = |id: &str| survey.agents.iter().any(|agent| agent.agent_id.as_str() == id);
        let kept = kept.into_iter().flat_map(|kept| &kept.agents);
        let dormant = kept.filter(|agent| agent.exists() && !is_active(&agent.id));
        agents.extend(
            dormant
                .map(|agent| format!("{} ({} messages, dormant)", agent.id, agent.messages.len())),
        );
        let agents = if agents.is_empty() { "none".to_owned() } else { agents.join(", ") };
        transcript.end("agents", &agents);
    }
    models_at_end(theatre);
    transcript.end("disk", &format!("{:016x}", theatre.server.disk.digest(View::Now)));
}

fn models_at_end(theatre: &Theatre) {
    let transcript = &theatre.transcript;
    let calls = theatre.watching.model_calls();
    let calls: Vec<String> =
        calls.iter().map(|(agent, count)| format!("{agent} {count}")).collect();
    if !calls.is_empty() {
        transcript.end("models", &format!("asked by {}", calls.join(", ")));
    }
    let left: Vec<String> = theatre.watching.left_over().iter().map(usize::to_string).collect();
    if !left.is_empty() {
        transcript.end("models", &format!("not used up: entry {}", left.join(", ")));
    }
}
