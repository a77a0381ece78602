//! Who wins, who is told what, and that each confirmation is decided once.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::policy::Subject;

type Answer = oneshot::Receiver<Result<Answered, ConfirmError>>;

fn id(digit: char) -> ConfirmId {
    ConfirmId::parse(&digit.to_string().repeat(16)).unwrap()
}

fn confirmation(digit: char, index: usize, expires: Instant) -> Confirmation {
    Confirmation {
        id: id(digit),
        request: RequestId::parse("r1").unwrap(),
        index,
        tool: AskedTool { name: "write_file".to_owned(), params: json!({}) },
        question: Question {
            subject: Arc::new(Subject::Writes(vec!["/x".into()])),
            target: Some("/x".to_owned()),
            cwd: "/p".to_owned(),
        },
        expires,
        expires_at: "2026-01-01T00:02:00.000Z".into(),
    }
}

/// A book with one that can be answered.
fn asked() -> Confirmations {
    let mut book = Confirmations::default();
    book.ask(confirmation('a', 0, Instant::now()));
    book.written(&id('a'));
    book
}

fn answer(book: &mut Confirmations, decision: Choice, client: &str) -> (Taken, Answer) {
    let (reply, answer) = oneshot::channel();
    (book.answer(&id('a'), decision.name(), client, reply), answer)
}

fn heard(mut answer: Answer) -> Result<Answered, ConfirmError> {
    answer.try_recv().expect("everybody is told")
}

fn told(accepted: bool, decision: Choice, by: &str) -> Answered {
    Answered { accepted, decision, resolved_by: by.to_owned() }
}

#[test]
fn of_two_answers_the_first_wins_and_both_hear_of_it() {
    let mut book = asked();
    let (taken, alice) = answer(&mut book, Choice::AllowOnce, "alice");
    assert_eq!(taken, Taken::Write(Resolution::by_client(Choice::AllowOnce, "alice")));
    let (taken, bob) = answer(&mut book, Choice::Deny, "bob");
    assert_eq!(taken, Taken::Nothing);
    let settled = book.settle(&id('a'));
    assert!(settled.is_wanted);
    settled.tell();
    assert_eq!(heard(alice), Ok(told(true, Choice::AllowOnce, "alice")));
    assert_eq!(heard(bob), Ok(told(false, Choice::AllowOnce, "alice")));
    let (taken, late) = answer(&mut book, Choice::Deny, "carol");
    assert_eq!((taken, heard(late)), (Taken::Nothing, Err(ConfirmError::Unknown)));
}

#[test]
fn only_what_was_offered_is_an_answer() {
    let mut book = asked();
    for wrong in [Choice::AllowExecCwd, Choice::TimeoutDeny] {
        let (taken, told) = answer(&mut book, wrong, "alice");
        let options = vec![Choice::AllowOnce, Choice::AllowFile, Choice::AllowDir, Choice::Deny];
        let decision = wrong.name().to_owned();
        let refused = Err(ConfirmError::NotOffered { decision, options });
        assert_eq!((taken, heard(told)), (Taken::Nothing, refused));
    }
    assert_eq!(book.pending().len(), 1, "it still waits");
}

#[test]
fn nobody_is_shown_what_is_not_on_record() {
    let mut book = Confirmations::default();
    book.ask(confirmation('a', 0, Instant::now()));
    assert_eq!((book.pending(), book.is_waiting(), book.next_expiry()), (Vec::new(), false, None));
}

#[test]
fn an_answer_that_overtakes_the_news_of_its_record_wins() {
    let mut book = Confirmations::default();
    book.ask(confirmation('a', 0, Instant::now()));
    let (taken, alice) = answer(&mut book, Choice::AllowOnce, "alice");
    assert_eq!(taken, Taken::Write(Resolution::by_client(Choice::AllowOnce, "alice")));
    book.written(&id('a'));
    assert!(book.expired(Instant::now()).is_empty(), "it is being decided");
    let settled = book.settle(&id('a'));
    assert!(settled.is_wanted);
    settled.tell();
    assert_eq!(heard(alice), Ok(told(true, Choice::AllowOnce, "alice")));
}

#[test]
fn an_answer_that_is_not_written_was_never_given() {
    let mut book = asked();
    let (_, alice) = answer(&mut book, Choice::Deny, "alice");
    let (_, bob) = answer(&mut book, Choice::AllowOnce, "bob");
    assert!(book.reopen(&id('a')).is_none(), "its call still waits");
    assert_eq!(
        [heard(alice), heard(bob)],
        [Err(ConfirmError::Storage), Err(ConfirmError::Storage)]
    );
    let (taken, _) = answer(&mut book, Choice::AllowOnce, "bob");
    assert_eq!(taken, Taken::Write(Resolution::by_client(Choice::AllowOnce, "bob")));
}

#[test]
fn a_turn_that_ends_while_an_answer_is_written_leaves_the_answer() {
    let mut book = asked();
    let (_, alice) = answer(&mut book, Choice::AllowFile, "alice");
    assert!(book.withdraw(0, "cancelled").is_none(), "it is being decided");
    assert!(!book.is_waiting());
    let settled = book.settle(&id('a'));
    assert!(!settled.is_wanted, "nothing runs");
    settled.tell();
    assert_eq!(heard(alice), Ok(told(true, Choice::AllowFile, "alice")));

    let mut book = asked();
    let (_, alice) = answer(&mut book, Choice::AllowFile, "alice");
    assert!(book.withdraw(0, "cancelled").is_none());
    let (over, why) = book.reopen(&id('a')).expect("nobody waits for it");
    assert_eq!((over.id, why.as_str()), (id('a'), "cancelled"));
    assert_eq!(heard(alice), Err(ConfirmError::Storage));
}

#[test]
fn what_is_withdrawn_is_over_once() {
    let mut book = asked();
    book.ask(confirmation('b', 1, Instant::now()));
    assert_eq!(book.withdraw(0, "cancelled").map(|over| over.id), Some(id('a')));
    assert_eq!(book.withdraw(1, "cancelled").map(|over| over.id), Some(id('b')));
    assert!(book.withdraw(0, "cancelled").is_none());
}

#[test]
fn time_takes_only_what_nobody_answers() {
    let now = Instant::now();
    let mut book = asked();
    book.ask(confirmation('b', 1, now + Duration::from_mins(1)));
    book.written(&id('b'));
    book.ask(confirmation('c', 2, now));
    let (_, _alice) = answer(&mut book, Choice::Deny, "alice");
    assert_eq!(book.next_expiry(), Some(now + Duration::from_mins(1)));
    assert!(book.expired(now).is_empty(), "one is being decided, one is not on record");
    let over = book.expired(now + Duration::from_mins(1));
    assert_eq!(over.into_iter().map(|over| over.id).collect::<Vec<_>>(), [id('b')]);
}

#[test]
fn a_model_is_told_why_nothing_ran() {
    let told = |resolution: Resolution| resolution.told("exec");
    let begin = "exec was not run: it needs a confirmation, and";
    let cases = [
        (Resolution::by_client(Choice::Deny, "alice"), "it was denied"),
        (Resolution::nobody_there(), "nobody is there to give one (no_confirmer)"),
        (Resolution::too_late(), "nobody gave one in time (timeout_deny)"),
    ];
    for (resolution, why) in cases {
        assert_eq!(told(resolution), format!("{begin} {why}"));
    }
}
