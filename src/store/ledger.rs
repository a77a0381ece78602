//! The database and what must be true of it: which batch is its last, and that one which failed is
//! not in it. All of it blocks; the writer calls it off the async threads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::SignedDuration;
use rusqlite::Connection;

use super::apply::Change;
use super::database::{Counters, Database, Statements, sql};
use super::error::{Fault, StoreError};
use super::files::Files;
use super::journal::{Journal, More};
use super::known::Known;
use super::recovery::{self, Recovered};
use super::{AgentNumber, Options, Resident, Sync, Write, budgets, journal, read, schema};
use crate::event::{Committed, Seq, iso};
use crate::limits::{DAMAGE_READ_TIMES, DAMAGE_SEEN_TIMES};
use crate::policy::budget::KeptBudget;
use crate::world::World;

pub(super) struct Ledger {
    world: World,
    path: PathBuf,
    sync: Sync,
    days: u64,
    /// None after a failure that could not be put right yet.
    database: Option<Database>,
    /// As of the last commit that succeeded.
    counters: Counters,
    journal: Journal,
    /// None until the first transaction, and after one that failed.
    known: Option<Known>,
}

/// What was found, and done, at the start.
pub(super) struct Start {
    pub(super) residents: Vec<Resident>,
    pub(super) budgets: Vec<KeptBudget>,
    pub(super) recovered: Recovered,
    pub(super) events: Vec<Committed>,
    pub(super) set_aside: Option<PathBuf>,
}

impl Ledger {
    pub(super) fn open(world: &World, options: &Options) -> Result<(Self, Start), StoreError> {
        let path = options.path.clone();
        Self::open_or_set_aside(world, options).map_err(|fault| match fault {
            Fault::Newer { found } => StoreError::Newer { path, found, known: schema::known() },
            fault => StoreError::Open { path, source: Arc::new(fault) },
        })
    }

    fn open_or_set_aside(world: &World, options: &Options) -> Result<(Self, Start), Fault> {
        for time in 1..=DAMAGE_SEEN_TIMES {
            match Self::start(world, options) {
                // SQLite says the same of a disk that fails to read, which is no reason to set a sound
                // database aside: it must be read in full, and be found damaged every time. A long log
                // takes many reads, so a disk that fails few of them can fail each of several starts.
                Err(fault) if fault.is_damage() => {
                    if time <= DAMAGE_READ_TIMES {
                        Files::of(&*world.fs, &options.path)?.read_through()?;
                    }
                }
                started => return started,
            }
        }
        let set_aside = Files::of(&*world.fs, &options.path)?.set_aside(world.clock.now())?;
        let (ledger, start) = Self::start(world, options)?;
        Ok((ledger, Start { set_aside: Some(set_aside), ..start }))
    }

    fn start(world: &World, options: &Options) -> Result<(Self, Start), Fault> {
        let files = Files::of(&*world.fs, &options.path)?;
        if let Some(found) = files.version()?.filter(|found| *found > schema::known()) {
            return Err(Fault::Newer { found });
        }
        files.make()?;
        files.sync_log()?;
        let mut database = Database::new(world.sqlite.open(&options.path)?, options.sync)?;
        database.migrate()?;
        let mut ledger = Self {
            counters: database.counters()?,
            world: world.clone(),
            path: options.path.clone(),
            sync: options.sync,
            days: options.kept.days,
            database: Some(database),
            journal: Journal::new(options.kept.per_agent),
            known: None,
        };
        if ledger.counters.seq == 0 && files.has_set_aside()? {
            ledger.number_anew()?;
        }
        let (recovered, events) = if recovery::is_due(ledger.connection()?)? {
            ledger.transact(|change| recovery::run(change, &options.interrupted))?
        } else {
            (Recovered::default(), Vec::new())
        };
        let residents = read::residents(ledger.connection()?)?;
        let budgets = budgets::read(ledger.connection()?)?;
        Ok((ledger, Start { residents, budgets, recovered, events, set_aside: None }))
    }

    /// Numbers events beyond all that a database which was set aside can have had: whoever has a cursor
    /// from then is told of a gap, and never of other events under the numbers it knows. It has no
    /// number to go on from, but no server had a thousand events in each second since 1970.
    fn number_anew(&mut self) -> Result<(), Fault> {
        let beyond = u64::try_from(self.world.clock.now().as_millisecond()).unwrap_or_default();
        let leap = |change: &mut Change<'_>| {
            change.counters.seq = beyond;
            journal::note_lost(&change.statements, beyond)
        };
        self.transact(leap).map(drop)
    }

    pub(super) fn last_seq(&self) -> Seq {
        self.counters.seq
    }

    pub(super) fn next_number(&self) -> AgentNumber {
        self.counters.next_agent
    }

    /// Writes all of it in one transaction; returns the events to be published.
    pub(super) fn commit(
        &mut self,
        writes: impl IntoIterator<Item = Write>,
    ) -> Result<Vec<Committed>, Fault> {
        let apply =
            |change: &mut Change<'_>| writes.into_iter().try_for_each(|write| change.apply(write));
        self.transact(apply).map(|((), events)| events)
    }

    /// Forgets some of the events that are too old.
    pub(super) fn forget_old(&mut self) -> Result<More, Fault> {
        let days = i64::try_from(self.days).unwrap_or(i64::MAX);
        let age = SignedDuration::from_secs(days.saturating_mul(24 * 60 * 60));
        let Ok(before) = self.world.clock.now().checked_sub(age) else {
            return Ok(More::No);
        };
        let before = iso(before);
        if !journal::any_before(self.connection()?, &before)? {
            return Ok(More::No);
        }
        let forget =
            |change: &mut Change<'_>| change.journal.forget_before(&change.statements, &before);
        self.transact(forget).map(|(more, _no_events)| more)
    }

    /// The connection, opened again where there is none.
    pub(super) fn connection(&mut self) -> Result<&Connection, Fault> {
        self.ready().map(|database| &database.connection)
    }

    pub(super) fn close(mut self) -> Result<(), Fault> {
        // A batch that failed last may still have to be cut off.
        self.ready()?;
        match self.database {
            Some(database) => Ok(database.close()?),
            None => Ok(()),
        }
    }

    fn transact<T>(
        &mut self,
        work: impl FnOnce(&mut Change<'_>) -> rusqlite::Result<T>,
    ) -> Result<(T, Vec<Committed>), Fault> {
        self.ready_to_write()?;
        match self.attempt(work) {
            Ok((value, events, counters)) => {
                assert!(self.counters.seq <= counters.seq, "seq only grows");
                self.counters = counters;
                Ok((value, events))
            }
            Err(error) => {
                // What a connection knows after a failure need not be what is on disk.
                self.database = None;
                self.journal.count_again();
                // At once, for the reads that wait; if it fails, the next job tries again.
                let _ = self.ready();
                Err(error.into())
            }
        }
    }

    fn attempt<T>(
        &mut self,
        work: impl FnOnce(&mut Change<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<(T, Vec<Committed>, Counters)> {
        let database = self.database.as_mut().expect("it was just made ready");
        let statements = Statements::new(&database.connection);
        // Whatever fails takes it along.
        let known = match self.known.take() {
            Some(known) => known,
            None => Known::read(&statements, self.counters.open_from)?,
        };
        let mut change = Change {
            statements,
            counters: Counters { batch: self.counters.batch + 1, ..self.counters },
            journal: &mut self.journal,
            known,
            accepted: Vec::new(),
            standings: BTreeMap::new(),
            now: iso(self.world.clock.now()),
            events: Vec::new(),
        };
        // What fails from here on is rolled back with its connection, which is dropped.
        change.run("BEGIN IMMEDIATE", ())?;
        let value = work(&mut change)?;
        change.settle()?;
        let counters = Counters { open_from: change.known.open_from(), ..change.counters };
        change.run(
            "UPDATE counters SET seq = ?1, batch = ?2, next_agent = ?3, open_from = ?4",
            (
                sql(counters.seq),
                sql(counters.batch),
                sql(counters.next_agent),
                sql(counters.open_from),
            ),
        )?;
        change.run("COMMIT", ())?;
        self.known = Some(change.known);
        Ok((value, change.events, counters))
    }

    /// Opens the database again if the last failure closed it. A batch that failed and is there all
    /// the same is cut off: its members were told that it is not.
    fn ready(&mut self) -> Result<&mut Database, Fault> {
        if self.database.is_none() {
            let mut database = self.connect()?;
            let expected = self.counters.batch;
            if database.counters()?.batch == expected + 1 {
                let log = database.log()?;
                drop(database);
                Files::of(&*self.world.fs, &self.path)?.cut_last_batch(log)?;
                database = self.connect()?;
            }
            let found = database.counters()?;
            if found != self.counters {
                return Err(Fault::Diverged { found: found.batch, expected });
            }
            self.database = Some(database);
        }
        Ok(self.database.as_mut().expect("it is there or was just opened"))
    }

    /// A database that was opened while the disk was read-only stays so, whatever the disk does.
    fn ready_to_write(&mut self) -> Result<(), Fault> {
        if self.ready()?.connection.is_readonly("main")? {
            self.database = None;
            self.ready()?;
        }
        Ok(())
    }

    fn connect(&self) -> Result<Database, Fault> {
        Database::new(self.world.sqlite.open(&self.path)?, self.sync)
    }
}
