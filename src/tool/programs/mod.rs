//! Tools that start programs: one file per tool; here is what they have in common. A program runs
//! until it ends, its time is over or nobody waits for it, and nothing it started outlives it.
//! Whether it may be started at all is for `policy::programs`.

mod asked_for; // a program in its caller's words
mod confine; // what a program reaches
mod exec;
mod git;
mod output; // what is kept of what it says
mod run_python;
mod shell;

pub use asked_for::asked_for;
pub use output::Kept;

use std::ffi::{OsStr, OsString};
use std::io;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::AsyncRead;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::decide::{self, Examined};
use super::error::{FileError, Given};
use super::list_directory::here;
use super::schema::{definition, typed};
use super::workplace::{Site, Workplace};
use super::{Effect, Tool, ToolOutput};
use crate::limits::{PROGRAM_END_MAX, PROGRAM_SECONDS, PROGRAM_SECONDS_MAX};
use crate::message::ToolDefinition;
use crate::policy::programs::{Wanted, programs};
use crate::policy::{Decision, Leave, Permissions, Permit, Rule, Subject};
use crate::world::{BoxFuture, Confinement, Environment, Exit, Process, Program, Programs};
use output::{End, Told};

pub(super) use exec::Exec;
pub(super) use git::Git;
pub(super) use run_python::RunPython;
pub(super) use shell::Shell;

/// The arguments of a tool that starts a program.
pub(super) trait AsProgram: DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    const DESCRIPTION: &'static str;

    fn leave(_arguments: &Value, permissions: &Permissions) -> Leave {
        programs(permissions, Wanted::Anything)
    }

    fn asked(self) -> Asked;

    /// What somebody confirms who confirms that a program is started in a directory.
    fn subject(program: String, directory: PathBuf) -> Subject {
        Subject::Program { name: program, directory }
    }
}

/// What a call wants to have started.
pub(super) struct Asked {
    program: String,
    arguments: Vec<String>,
    /// Beside what every program gets.
    environment: &'static [(&'static str, &'static str)],
    reach: Reach,
    terms: Terms,
}

/// The arguments that all tools here have. A call is checked against the schema of the whole, which
/// knows no others, before it is read as this.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Terms {
    /// After how many seconds it is ended.
    #[serde(default = "seconds")]
    #[schemars(range(min = 0, max = PROGRAM_SECONDS_MAX))]
    timeout: f64,
    /// Where it runs; the working directory by default.
    #[serde(default = "here")]
    cwd: String,
}

/// How much a program may do, below `yolo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Read what the agent may read, write where it may write, start what it finds.
    Agent,
    /// Read what the agent may read, and nothing else.
    Look,
}

const PATH: &str = "PATH";

fn seconds() -> f64 {
    PROGRAM_SECONDS
}

pub(super) struct ProgramTool<T>(PhantomData<fn() -> T>);

pub(super) fn tool<T: AsProgram>() -> Arc<dyn Tool> {
    Arc::new(ProgramTool::<T>(PhantomData))
}

impl<T: AsProgram> Tool for ProgramTool<T> {
    fn definition(&self) -> ToolDefinition {
        definition::<T>(T::NAME, T::DESCRIPTION)
    }

    fn leave(&self, arguments: &Value, permissions: &Permissions) -> Leave {
        T::leave(arguments, permissions)
    }

    fn examine(
        &self,
        arguments: Value,
        workplace: &Arc<Workplace>,
    ) -> BoxFuture<'static, Result<Examined, Decision>> {
        workplace.run(T::NAME, Effect::None, Permit::Nothing, move |site| {
            let asked = typed::<T>(T::NAME, arguments);
            let asked = asked.map_err(|problem| Decision::deny(Rule::Schema, problem))?.asked();
            let directory = decide::directory(site, &Given::new(&asked.terms.cwd))?;
            let target = Some(asked.program.clone());
            let subject = T::subject(asked.program, directory);
            let allowances = &site.rights().allowances;
            let rule = if allowances.cover(&subject) { Rule::Allowance } else { Rule::Allowed };
            Ok(Examined { subject, rule, target })
        })
    }

    fn run(
        &self,
        arguments: Value,
        workplace: &Arc<Workplace>,
        permit: Permit,
    ) -> BoxFuture<'static, ToolOutput> {
        let workplace = Arc::clone(workplace);
        // It was decided on just now, and may wait for its place: whatever is taken from the agent until
        // then, or while the program runs, ends it.
        let mandate = workplace.mandate();
        Box::pin(async move {
            let asked = typed::<T>(T::NAME, arguments)?.asked();
            let place = workplace.program_turn().await;
            let (cwd, reach, withdrawn) =
                (Given::new(&asked.terms.cwd), asked.reach, mandate.withdrawn().clone());
            let prepare = move |site: &Site| {
                if withdrawn.is_cancelled() {
                    return Err(FileError::Withdrawn);
                }
                prepare(site, &cwd, reach)
            };
            let prepared = workplace.run(T::NAME, Effect::None, permit, prepare).await;
            let prepared = prepared.map_err(|error| error.to_string())?;
            let (seconds, name) = (asked.terms.timeout, asked.program.clone());
            let program = asked.program(&workplace, prepared);
            let ends = Ends {
                late: Duration::from_secs_f64(seconds),
                unwanted: CancellationToken::new(),
                withdrawn: mandate.withdrawn().clone(),
            };
            let _waiting = ends.unwanted.clone().drop_guard();
            let programs = Arc::clone(workplace.programs());
            // A task of its own: whoever no longer waits for the result does not end the program by
            // that, and the agent waits for it before it goes.
            let kept = workplace.running().spawn(async move {
                let kept = keep(programs.as_ref(), program, ends).await;
                drop(place);
                kept
            });
            match kept.await {
                Ok(Ok(told)) => told.output(),
                Ok(Err(error)) => Err(not_started(&name, &error)),
                Err(_panicked) => Err(format!("{name} was lost by a defect of the server.")),
            }
        })
    }
}

impl Asked {
    fn program(self, of: &Workplace, prepared: Prepared) -> Program {
        let extra = self.environment.iter().map(|(name, value)| (name.into(), value.into()));
        let extra = extra.chain(prepared.path.map(|path| (PATH.into(), path)));
        Program {
            program: self.program.into(),
            arguments: self.arguments.into_iter().map(OsString::from).collect(),
            directory: prepared.directory,
            environment: of.environment().iter().cloned().chain(extra).collect(),
            confinement: prepared.confinement,
        }
    }
}

/// All that a program learns of ours.
pub(super) fn environment(of: &dyn Environment) -> Vec<(OsString, OsString)> {
    const KNOWN: [&str; 6] = [PATH, "HOME", "USER", "LANG", "TERM", "TMPDIR"];
    let is_known = |name: &str| KNOWN.contains(&name) || name.starts_with("LC_");
    let vars = of.vars().into_iter().filter(|(name, _)| is_known(name));
    vars.map(|(name, value)| (name.into(), value.into())).collect()
}

/// What a program needs of the disk.
struct Prepared {
    directory: PathBuf,
    confinement: Confinement,
    /// Where it is looked for, if not where all are.
    path: Option<OsString>,
}

fn prepare(site: &Site, cwd: &Given, reach: Reach) -> Result<Prepared, FileError> {
    let directory =
        site.reading(cwd, |spot| spot.parent.dir(spot.name()).map(|_dir| spot.resolved.clone()))?;
    if site.permit().directory().is_some_and(|permitted| permitted != directory) {
        return Err(FileError::LeadsElsewhere { given: cwd.clone() });
    }
    let path = match reach {
        Reach::Agent => None,
        Reach::Look => trusted_first(site),
    };
    Ok(Prepared { directory, confinement: confine::confinement(site, reach)?, path })
}

/// The places of programs, those last where the agent itself may put something: what it starts freely
/// is the machine's program of that name, not one of its own making.
fn trusted_first(site: &Site) -> Option<OsString> {
    let path = site.variable(OsStr::new(PATH))?;
    let (own, others): (Vec<PathBuf>, Vec<PathBuf>) =
        std::env::split_paths(&path).partition(|place| {
            let resolved = site.fs().canonical(place).unwrap_or_else(|_| place.clone());
            site.may_write_freely(&resolved)
        });
    std::env::join_paths(others.into_iter().chain(own)).ok()
}

/// What ends a program that does not end by itself.
struct Ends {
    late: Duration,
    unwanted: CancellationToken,
    withdrawn: CancellationToken,
}

/// Why the wait for a program ended.
enum Because {
    Ended(io::Result<Exit>),
    Late,
    Unwanted,
    Withdrawn,
}

/// Runs a program to its end, or ends it.
async fn keep(programs: &dyn Programs, program: Program, ends: Ends) -> io::Result<Told> {
    let mut process = programs.start(program).await?;
    // It has nothing to read.
    drop(process.stdin());
    let (mut output, mut errors) = (Kept::default(), Kept::default());
    let (from_output, from_errors) = (process.stdout(), process.stderr());
    let because = {
        let reading =
            async { tokio::join!(read(from_output, &mut output), read(from_errors, &mut errors)) };
        let ending = async {
            let because = tokio::select! {
                // One that has ended is told of, however late.
                biased;
                exit = process.wait() => Because::Ended(exit),
                () = ends.unwanted.cancelled() => Because::Unwanted,
                () = ends.withdrawn.cancelled() => Because::Withdrawn,
                () = sleep(ends.late) => Because::Late,
            };
            end(process.as_mut()).await;
            because
        };
        tokio::pin!(reading, ending);
        tokio::select! {
            biased;
            _ = &mut reading => ending.await,
            because = &mut ending => {
                // All who could write are gone, but for those who could not be killed.
                let _ = timeout(PROGRAM_END_MAX, reading).await;
                because
            }
        }
    };
    let end = match because {
        Because::Ended(exit) => End::Exit(exit?),
        Because::Late => End::Late(ends.late),
        Because::Withdrawn => End::Withdrawn,
        // Nobody hears of it.
        Because::Unwanted => return Err(io::ErrorKind::Interrupted.into()),
    };
    Ok(Told { output, errors, end })
}

async fn end(process: &mut dyn Process) {
    if timeout(PROGRAM_END_MAX, process.end()).await.is_err() {
        tracing::warn!("a program cannot be killed and stays behind with its supervisor");
    }
}

async fn read(pipe: Option<Box<dyn AsyncRead + Send + Unpin>>, kept: &mut Kept) {
    // What cannot be read any more has ended.
    if let Some(pipe) = pipe {
        let _ = kept.read(pipe).await;
    }
}

fn not_started(program: &str, error: &io::Error) -> String {
    let program = Given::new(program);
    match error.kind() {
        io::ErrorKind::NotFound => format!("There is no program {program} on this machine."),
        io::ErrorKind::PermissionDenied => format!("{program} may not be executed."),
        io::ErrorKind::ArgumentListTooLong => format!("The arguments of {program} are too long."),
        io::ErrorKind::UnexpectedEof => format!(
            "{program} was lost, since its supervisor was killed: whether it had an effect is not known."
        ),
        io::ErrorKind::Unsupported => format!(
            "{program} was not started: this machine cannot keep it from starting other programs."
        ),
        io::ErrorKind::InvalidInput => {
            format!("{program} was not started: an argument holds a NUL character.")
        }
        kind => format!("{program} could not be started: {kind}."),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn models_see_the_terms_beside_what_each_tool_takes_and_no_other_argument() {
        let definitions = [tool::<Exec>(), tool::<RunPython>(), tool::<Shell>(), tool::<Git>()]
            .map(|tool| {
                let ToolDefinition { name, parameters, .. } = tool.definition();
                let keys = |part: &Value| part.as_object().unwrap().keys().cloned().collect();
                let (all, arguments): (Vec<String>, Vec<String>) =
                    (keys(&parameters), keys(&parameters["properties"]));
                assert_eq!(
                    all,
                    ["type", "properties", "additionalProperties", "required"],
                    "{name}"
                );
                assert_eq!(parameters["additionalProperties"], false, "{name}");
                let (timeout, cwd) =
                    (&parameters["properties"]["timeout"], &parameters["properties"]["cwd"]);
                assert_eq!(
                    [timeout, cwd],
                    [
                        &json!({
                            "description": "After how many seconds it is ended.",
                            "type": "number",
                            "minimum": 0,
                            "maximum": 300.0,
                            "default": 30.0,
                        }),
                        &json!({
                            "description": "Where it runs; the working directory by default.",
                            "type": "string",
                            "default": ".",
                        }),
                    ],
                    "{name}"
                );
                (name.into_owned(), arguments.join(" "), parameters["required"].clone())
            });
        assert_eq!(
            definitions,
            [
                (
                    "exec".to_owned(),
                    "program args timeout cwd _parallel".to_owned(),
                    json!(["program"])
                ),
                ("run_python".to_owned(), "code timeout cwd _parallel".to_owned(), json!(["code"])),
                (
                    "shell_UNSAFE".to_owned(),
                    "command timeout cwd _parallel".to_owned(),
                    json!(["command"])
                ),
                ("git".to_owned(), "args timeout cwd _parallel".to_owned(), json!(["args"])),
            ]
        );
    }
}
