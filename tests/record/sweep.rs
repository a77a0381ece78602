//! Scenarios of all kinds, recorded and replayed: sessions, restarts, renames, confirmations, limits,
//! summaries, programs, cancels. Every start of a scenario records, and every recording replays the same;
//! where one cannot, it says so in its first lines.

use std::path::Path;

use super::replay::{Events, parting, recorded, replay};

/// Whose recordings replay the same, from the first event to the last.
const SAME: &[&str] = &[
    "every_tool_offers_the_answers_that_fit",
    "names_are_given_once",
    "rename_session_takes_agent_and_file_along",
    "last_session_follows_the_terminal",
    "restart_keeps_agents",
    "newer_of_file_and_record_wins",
    "agent_looks_at_and_cancels_a_child",
    "agents_of_an_earlier_server_are_as_they_were",
    "cancel_ends_a_running_program",
    "cancel_follows_a_chain_of_four",
    "cancel_keeps_what_was_said",
    "clone_session_copies_what_has_ended",
    "compact_sums_up_at_once",
    "confirmed_write_runs_once",
    "coordinator_asks_three_workers_at_once",
    "deadline_is_kept_over_a_restart",
    "demotion_while_somebody_is_asked",
    "destroy_in_the_middle_of_a_hand_off",
    "files_are_copied_renamed_and_put_in_new_directories",
    "guide_budget",
    "guide_confirmation",
    "guide_rate_limit",
    "last_turn_of_a_family_is_had_once",
    "long_conversation_is_summed_up",
    "model_connection_breaks_over_anthropic",
    "program_is_ended_when_its_time_is_over",
    "program_runs_and_tells_its_output",
    "save_during_a_turn_keeps_what_has_ended",
    "saved_session_comes_back_field_by_field",
    "sends_wait_their_turn",
    "set_model_swaps_the_provider",
    "temporary_agent_gets_the_name_of_its_session",
    "tools_run_together_when_asked_to",
    "two_clients_answer_one_confirmation",
    "confirmer_that_leaves_leaves_the_question",
    "connection_that_breaks_before_a_word_is_tried_again",
    "connection_that_breaks_before_a_word_is_tried_again_over_anthropic",
    "destroy_ends_the_stream",
    "directory_is_no_file",
    "missing_file_is_told_by_its_given_name",
    "path_that_turns_back_outside_tells_nothing",
    "stop_cancels_a_turn_after_the_grace",
    "stop_lets_a_turn_end",
    "stop_while_somebody_is_asked",
    "trusted_agent_reads_outside_and_writes_at_home",
    "model_answer_drips_over_anthropic",
    "sends_meet_an_agent_that_gets_another_id",
    "many_requests_come_to_a_dormant_agent",
    "two_loads_at_once_make_one_agent",
    "turn_outlives_its_caller",
    "terminal_cancels_with_escape",
];

/// In which so much happens in the same moment that events come in another order: nothing else is other.
const SAME_BUT_THE_ORDER: &[&str] = &[
    "terminal_opens_on_a_busy_agent",
    "fifty_agents_answer_at_once",
    "answers_of_fifty_agents_meet_at_the_top",
];

const RUNNING: &str = "# The server was still running.";

/// Which start of a scenario has a recording that is not faithful, and what it says.
const TOLD: &[(&str, usize, &str)] = &[
    // The disk is full when the server stops, so that the last state was written before.
    ("full_disk_at_the_stop", 0, RUNNING),
    (
        "loading_over_an_agent_is_one_commit",
        0,
        "# The disk failed 2 calls; it is sound in a replay, which parts there from what happened.",
    ),
    (
        "file_is_deleted_while_somebody_restores_it",
        1,
        "# Calls that lost a race with another, which they may win in a replay: 1.",
    ),
    (
        "malformed_requests_are_explained",
        0,
        "# Refused, and not here since a replay could not be refused for the same: 1 call with a list \
         of params.",
    ),
    (
        "strangers_are_turned_away",
        0,
        "# Refused, and not here since a replay could not be refused for the same: 1 request with HTTP \
         400.",
    ),
    (
        "large_file_is_read_in_parts",
        0,
        "# Files that are too large, or have a key among their bytes, and are blank here: \
         /project/log.txt.",
    ),
    (
        "model_machine_dies",
        0,
        "# Attempts at a model that could not be reached: 1; there it closes the connection without \
         an answer.",
    ),
    (
        "two_clients_answer_one_confirmation",
        1,
        "# Answers to confirmations of an earlier server, which are not here: 1.",
    ),
];

/// In which a server is killed in the middle of something: what was left of it replays until there.
const KILLED: &[&str] = &[
    "crash_in_the_middle_of_a_hand_off",
    "crash_while_a_program_runs",
    "crash_while_somebody_is_asked",
    "guide_crash",
];

fn scenario(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap()
}

/// The lines at the top of a recording, but for the first, which every one has.
fn first_lines(recording: &str) -> Vec<&str> {
    recording.lines().skip(1).take_while(|line| line.starts_with('#')).collect()
}

#[test]
fn scenarios_of_all_kinds_are_the_same_when_their_recordings_are_replayed() {
    let in_order = SAME.iter().map(|name| (name, Events::InOrder));
    let at_once = SAME_BUT_THE_ORDER.iter().map(|name| (name, Events::InAnyOrder));
    let parted = in_order.chain(at_once);
    let parted = parted.filter_map(|(name, events)| parting(name, &scenario(name), events).err());
    let parted: Vec<String> = parted.collect();
    assert!(parted.is_empty(), "{}", parted.join("\n\n"));
}

#[test]
fn a_recording_that_cannot_be_replayed_faithfully_says_so_in_its_first_lines() {
    for (name, start, line) in TOLD {
        let (_, recordings) = recorded(name, &scenario(name));
        for (index, recording) in recordings.iter().enumerate() {
            if index == *start {
                assert_eq!(first_lines(recording), [*line], "{name}\n{recording}");
            } else {
                assert_eq!(first_lines(recording), [""; 0], "{name}\n{recording}");
                let again = replay(recording);
                assert_eq!(again.failures, [""; 0], "{name}\n{recording}\n{}", again.transcript);
            }
        }
        assert!(*start < recordings.len(), "{name} has {} recordings", recordings.len());
    }
}

#[test]
fn a_recording_that_a_kill_cut_off_replays_what_is_in_it_and_goes_on_in_silence() {
    for name in KILLED {
        let (_, recordings) = recorded(name, &scenario(name));
        let killed = recordings.first().filter(|text| first_lines(text).contains(&RUNNING));
        let killed = killed.unwrap_or_else(|| panic!("{name}: {recordings:#?}"));
        let again = replay(killed);
        assert_eq!(again.failures, [""; 0], "{name}\n{killed}\n{}", again.transcript);
    }
}
