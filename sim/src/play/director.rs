//! Plays the steps of a scenario: each when its time has come, on the host of its client. What it
//! does between two ticks takes no virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nexus3::id::{AgentId, RequestId};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::client::{Done, Job, JobId, Work};
use super::expect;
pub use super::made::{Made, Sending, Told};
use super::made::{maybe_ended, renamed};
use super::observed::Answer;
use super::stage::Stage;
use crate::scenario::{
    Action, Call, Ground, SERVER, Scenario, Step, Substitution, Token, Turn, When,
};

pub struct Director<'a> {
    steps: &'a [Step],
    states: Vec<State>,
    names: Substitution,
    jobs: BTreeMap<JobId, Playing>,
    next_job: JobId,
    pub sendings: Vec<Sending>,
    /// In the order in which they were made.
    pub calls: Vec<Made>,
    /// Bytes that clients sent as they are.
    pub raw: Vec<String>,
    /// Ids of agents that were destroyed or renamed: another may have the id of one by now.
    pub destroyed: BTreeSet<String>,
    /// Messages of each client at a terminal, and what they may have been joined to.
    typed: BTreeMap<String, Vec<String>>,
    pub failures: Vec<String>,
    /// How many steps have ended, each repetition counted.
    pub ended: u64,
}

#[derive(Debug)]
enum State {
    Waiting,
    Running(Running),
    Ended,
}

#[derive(Debug)]
struct Running {
    /// How many repetitions have been started.
    started: u64,
    open: BTreeSet<JobId>,
    until: Until,
}

/// What ends a step that no client's job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    JobsEnd,
    Time(Duration),
    ServerIsDown,
    ServerIsUp,
}

/// A job and what is expected of it.
struct Playing {
    step: usize,
    action: Action,
    server_start: u64,
    made: Duration,
    /// Its place among the calls, if it is one.
    call: Option<usize>,
}

impl std::fmt::Debug for Director<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Director").field("states", &self.states).finish_non_exhaustive()
    }
}

impl<'a> Director<'a> {
    pub fn new(scenario: &'a Scenario) -> Self {
        Self {
            steps: &scenario.steps,
            states: scenario.steps.iter().map(|_| State::Waiting).collect(),
            names: Substitution::default(),
            jobs: BTreeMap::new(),
            next_job: 1,
            sendings: Vec::new(),
            calls: Vec::new(),
            raw: Vec::new(),
            destroyed: BTreeSet::new(),
            typed: BTreeMap::new(),
            failures: Vec::new(),
            ended: 0,
        }
    }

    pub fn is_done(&self) -> bool {
        self.states.iter().all(|state| matches!(state, State::Ended))
    }

    /// The steps that have not ended, for a run that took too long.
    pub fn unfinished(&self) -> Vec<String> {
        let open = self.steps.iter().zip(&self.states).enumerate();
        open.filter(|(_, (_, state))| !matches!(state, State::Ended))
            .map(|(index, (step, _))| label(index, step))
            .collect()
    }

    /// Looks at what has ended and starts what is due, until nothing more changes in this tick.
    pub fn advance(&mut self, stage: &mut dyn Stage) {
        self.collect(stage);
        loop {
            let mut changed = false;
            for index in 0..self.steps.len() {
                changed |= match &self.states[index] {
                    State::Waiting if self.is_due(index, stage) => {
                        self.start(index, stage);
                        true
                    }
                    State::Running(running) if is_over(running, stage) => {
                        self.go_on(index, stage);
                        true
                    }
                    State::Waiting | State::Running(_) | State::Ended => false,
                };
            }
            if !changed {
                return;
            }
        }
    }

    /// Times at which a step begins or ends.
    pub fn due(&self) -> impl Iterator<Item = Duration> {
        self.steps.iter().zip(&self.states).filter_map(|(step, state)| match (state, &step.when) {
            (State::Waiting, When::At(time)) => Some(time.0),
            (State::Running(Running { until: Until::Time(time), .. }), _) => Some(*time),
            (State::Waiting | State::Running(_) | State::Ended, _) => None,
        })
    }

    fn collect(&mut self, stage: &dyn Stage) {
        for desk in stage.desks() {
            for (job, done) in desk.take_done() {
                let playing = self.jobs.remove(&job).expect("a job ends once");
                let (playing, done) = self.as_call(playing, done);
                if let State::Running(running) = &mut self.states[playing.step] {
                    running.open.remove(&job);
                }
                observe(stage, &playing, &done);
                self.note_end(&playing, &done, stage.elapsed());
                self.judge(&playing, &done, stage.elapsed());
            }
        }
    }

    fn is_due(&self, index: usize, stage: &dyn Stage) -> bool {
        let step = &self.steps[index];
        let previous = || index == 0 || self.lets_go_on(index - 1);
        let due = match &step.when {
            When::AfterPrevious => previous(),
            When::At(time) => stage.elapsed() >= time.0,
            When::After(name) => previous() && self.has_ended(name),
            When::OnEvent(trigger, Turn::Any) => stage.has_heard(trigger),
            When::OnEvent(trigger, Turn::InOrder) => previous() && stage.has_heard(trigger),
        };
        due && (stage.server_is_up() || !step.action.needs_server())
    }

    fn lets_go_on(&self, index: usize) -> bool {
        match &self.states[index] {
            State::Waiting => false,
            State::Running(_) => self.steps[index].ground == Ground::Back,
            State::Ended => true,
        }
    }

    fn has_ended(&self, name: &str) -> bool {
        let named = self.steps.iter().position(|step| step.name.as_deref() == Some(name));
        let index = named.expect("names were checked when the file was read");
        matches!(self.states[index], State::Ended)
    }

    fn start(&mut self, index: usize, stage: &mut dyn Stage) {
        let running = Running { started: 0, open: BTreeSet::new(), until: Until::JobsEnd };
        self.states[index] = State::Running(running);
        let step = &self.steps[index];
        let at_once = match step.ground {
            Ground::Fore => 1,
            Ground::Back => step.repeat,
        };
        for _ in 0..at_once {
            self.repeat(index, stage);
        }
    }

    fn go_on(&mut self, index: usize, stage: &mut dyn Stage) {
        let State::Running(running) = &self.states[index] else {
            unreachable!("only a running step goes on");
        };
        self.ended += 1;
        if running.started < self.steps[index].repeat {
            self.repeat(index, stage);
        } else {
            self.states[index] = State::Ended;
            if let Some(name) = &self.steps[index].name {
                stage.step_ended(name);
            }
        }
    }

    /// Starts one repetition of a step.
    fn repeat(&mut self, index: usize, stage: &mut dyn Stage) {
        let State::Running(running) = &mut self.states[index] else {
            unreachable!("only a running step repeats");
        };
        running.started += 1;
        self.names.set("n", running.started.to_string().into());
        let seq = stage.desk(&self.steps[index].client).seq();
        self.names.set("seq", seq.into());
        let token = stage.token();
        if let Some(token) = &token {
            self.names.set("token", token.expose_secret().into());
        }
        self.names.set("mcp", stage.mcp_root().into());
        let step = match self.names.step(&self.steps[index]) {
            Ok(step) => step,
            Err(unknown) => {
                self.fail(index, &unknown.to_string());
                return;
            }
        };
        let until = self.act(index, &step, token, stage);
        if let State::Running(running) = &mut self.states[index] {
            running.until = until;
        }
    }

    fn act(
        &mut self,
        index: usize,
        step: &Step,
        token: Option<SecretString>,
        stage: &mut dyn Stage,
    ) -> Until {
        match &step.action {
            Action::Call(call) => {
                let token = shown_token(&call.token, token);
                self.play(index, step, token, Work::Call(call.clone()), stage);
                Until::JobsEnd
            }
            Action::Raw(raw) => {
                self.play(index, step, token, Work::Raw(raw.clone()), stage);
                Until::JobsEnd
            }
            Action::Type(typing) => {
                self.play(index, step, token, Work::Type(typing.clone()), stage);
                Until::JobsEnd
            }
            Action::Watch(watch) => {
                let token = shown_token(&watch.token, token);
                self.play(index, step, token, Work::Watch(watch.clone()), stage);
                Until::JobsEnd
            }
            Action::Unwatch => {
                let id = self.open_job(index, step, stage);
                stage.desk(&step.client).unwatch(id);
                Until::JobsEnd
            }
            Action::Disconnect => {
                let id = self.open_job(index, step, stage);
                stage.desk(&step.client).disconnect(id);
                Until::JobsEnd
            }
            Action::Sleep(time) => Until::Time(stage.elapsed() + time.0),
            Action::Stop(_) => {
                stage.note(SERVER, "is asked to stop");
                stage.ask_server_to_stop();
                Until::ServerIsDown
            }
            Action::Start { serve } => {
                stage.note(SERVER, "is started");
                stage.start_server(serve.as_deref());
                Until::ServerIsUp
            }
            Action::Files(changed) => {
                stage.note(&step.client, "changes files");
                if let Err(error) = stage.put_files(changed) {
                    self.fail(index, &format!("the files cannot be changed: {}", error.kind()));
                }
                Until::JobsEnd
            }
            Action::Confirm(confirm) => {
                let token = shown_token(&confirm.token, token);
                self.play(index, step, token, Work::Confirm(confirm.clone()), stage);
                Until::JobsEnd
            }
        }
    }

    fn play(
        &mut self,
        index: usize,
        step: &Step,
        token: Option<SecretString>,
        work: Work,
        stage: &dyn Stage,
    ) {
        let id = self.open_job(index, step, stage);
        let State::Running(running) = &self.states[index] else {
            unreachable!("only a running step plays");
        };
        let shown = match (&step.name, step.repeat) {
            (Some(name), 1) => format!("[{name}] "),
            (Some(name), _) => format!("[{name} {}] ", running.started),
            (None, 1) => String::new(),
            (None, _) => format!("[{}] ", running.started),
        };
        let (server, server_start) = (stage.server_address(), stage.server_starts());
        stage.desk(&step.client).play(Job { id, label: shown, server_start, server, token, work });
    }

    /// A job that a running step waits for.
    fn open_job(&mut self, index: usize, step: &Step, stage: &dyn Stage) -> JobId {
        let id = self.next_job;
        self.next_job += 1;
        let State::Running(running) = &mut self.states[index] else {
            unreachable!("only a running step has jobs");
        };
        running.open.insert(id);
        let server_start = stage.server_starts();
        let (action, made) = (step.action.clone(), stage.elapsed());
        let call = match &action {
            Action::Call(call) => {
                let call = call.clone();
                let made = Made { call, server_start, at: made, ended: None, answer: None };
                self.calls.push(made);
                Some(self.calls.len() - 1)
            }
            Action::Raw(raw) => {
                self.raw.push(raw.bytes.clone());
                None
            }
            Action::Type(typing) => {
                let earlier = self.typed.entry(step.client.clone()).or_default();
                self.calls.extend(typing.calls(earlier).into_iter().map(|call| {
                    let ended = Some(made);
                    Made { call, server_start, at: made, ended, answer: None }
                }));
                None
            }
            _ => None,
        };
        self.jobs.insert(id, Playing { step: index, action, server_start, made, call });
        id
    }

    /// Compares how a job ended with what was expected, and remembers what was to be saved.
    fn judge(&mut self, playing: &Playing, done: &Done, now: Duration) {
        let problems = match &playing.action {
            Action::Call(call) => {
                self.remember_sending(call, done, playing, now);
                let mut problems = expect::call(call, done);
                if let Done::Answered { answer: Ok(result), .. } = done {
                    let ended = result.get("destroyed").and_then(Value::as_array);
                    let ended = ended.into_iter().flatten().filter_map(Value::as_str);
                    // A session that is loaded may have taken the place of an agent.
                    let loaded = result.get("restored").and(result.get("agent_id"));
                    let ended = ended.chain(loaded.and_then(Value::as_str));
                    self.destroyed.extend(ended.chain(renamed(call)).map(str::to_owned));
                    problems.extend(self.save(call, result));
                } else if matches!(done, Done::Unanswered | Done::Disconnected) {
                    let ended = maybe_ended(call).into_iter().chain(renamed(call));
                    self.destroyed.extend(ended.map(str::to_owned));
                }
                problems
            }
            Action::Raw(raw) => expect::raw(raw, done),
            Action::Watch(watch) => expect::watch(watch, done),
            Action::Confirm(confirm) if *done == Done::Unanswered => {
                vec![format!("no {} waited for a confirmation", confirm.tool)]
            }
            Action::Type(typing) if *done == Done::Unanswered => {
                vec![format!("nobody sees {:?}", typing.sees.as_deref().unwrap_or_default())]
            }
            _ => Vec::new(),
        };
        for problem in problems {
            self.fail(playing.step, &problem);
        }
    }

    /// The answer to a confirmation is a call like any other, once it is known to which.
    fn as_call(&mut self, playing: Playing, done: Done) -> (Playing, Done) {
        let Done::Confirmed { call, done } = done else { return (playing, done) };
        let Playing { server_start, made, .. } = playing;
        let call = *call;
        let made = Made { call: call.clone(), server_start, at: made, ended: None, answer: None };
        self.calls.push(made);
        let place = Some(self.calls.len() - 1);
        (Playing { action: Action::Call(call), call: place, ..playing }, *done)
    }

    fn note_end(&mut self, playing: &Playing, done: &Done, now: Duration) {
        if let Some(call) = playing.call {
            self.calls[call].ended = Some(now);
            if let Done::Answered { answer, .. } = done {
                self.calls[call].answer = Some(answer.clone());
            }
        }
    }

    fn save(&mut self, call: &Call, result: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, pointer) in &call.save {
            match result.pointer(pointer) {
                Some(value) => self.names.set(name, value.clone()),
                None => problems.push(format!("there is nothing at {pointer} to save as {name}")),
            }
        }
        problems
    }

    fn remember_sending(&mut self, call: &Call, done: &Done, playing: &Playing, told: Duration) {
        let Some(agent) = call.agent.as_deref().filter(|_| call.method == "send") else {
            return;
        };
        let given = call.params.as_ref().and_then(|params| params.get("request_id"));
        let (outcome, told_id) = match done {
            Done::Answered { answer: Ok(result), .. } => {
                let accepted = result.get("status").is_some();
                let told = if accepted { Told::Accepted } else { Told::Result(result.clone()) };
                (told, result.get("request_id").cloned())
            }
            Done::Answered { answer: Err(error), .. } => (Told::Error(error.clone()), None),
            Done::RawAnswer { .. }
            | Done::Confirmed { .. }
            | Done::Streaming
            | Done::Unanswered
            | Done::Disconnected => (Told::Nothing, None),
        };
        let request = told_id.or_else(|| given.cloned());
        let request = request.as_ref().and_then(Value::as_str).map(RequestId::parse);
        if let (Ok(agent), Some(Ok(request))) = (AgentId::parse(agent), request) {
            let Playing { server_start, made, .. } = *playing;
            self.sendings.push(Sending { agent, request, server_start, made, told, outcome });
        }
    }

    fn fail(&mut self, index: usize, problem: &str) {
        let step = &self.steps[index];
        self.failures.push(format!("{} (line {}): {problem}", label(index, step), step.line));
    }
}

/// Tells the invariants of an answer.
fn observe(stage: &dyn Stage, playing: &Playing, done: &Done) {
    if let (Action::Call(call), Done::Answered { answer, .. }) = (&playing.action, done) {
        stage.heard_answer(Answer {
            server_start: playing.server_start,
            method: call.method.clone(),
            agent: call.agent.clone(),
            result: answer.clone(),
        });
    }
}

fn is_over(running: &Running, stage: &dyn Stage) -> bool {
    match running.until {
        Until::JobsEnd => running.open.is_empty(),
        Until::Time(time) => stage.elapsed() >= time,
        Until::ServerIsDown => !stage.server_is_up(),
        Until::ServerIsUp => stage.server_is_up() || stage.server_gave_up(),
    }
}

/// The token that a request shows, of the server's and its own.
fn shown_token(token: &Token, servers: Option<SecretString>) -> Option<SecretString> {
    match token {
        Token::Server => servers,
        Token::Text(text) => Some(text.clone().into()),
        Token::Without => None,
    }
}

fn label(index: usize, step: &Step) -> String {
    match &step.name {
        Some(name) => format!("step {} `{name}`", index + 1),
        None => format!("step {}", index + 1),
    }
}
