//! What agents may use together, and what they have used, as SQL. The rules are `policy::budget`; here is
//! what makes them survive. What an agent has used itself is written as it is, not added, so that writing
//! it again counts nothing twice; it is added to another row only in the moment in which its own goes.

use rusqlite::{Connection, OptionalExtension, Row};

use super::AgentNumber;
use super::apply::Change;
use super::database::{number, sql, unreadable};
use crate::event::iso;
use crate::limits::LIMIT_AMOUNT_MAX;
use crate::policy::budget::{Bounds, KeptBudget, Presence, Used};

pub(super) fn open(change: &mut Change<'_>, budget: &KeptBudget) -> rusqlite::Result<()> {
    let Bounds { max_agents, max_turns, max_tokens, deadline } = budget.bounds;
    change.run(
        "INSERT INTO budgets (agent, parent, max_agents, max_turns, max_tokens, deadline, \
         turns, tokens, gone_turns, gone_tokens) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, 0)",
        (
            sql(budget.agent),
            budget.parent.map(sql),
            max_agents.map(sql),
            max_turns.map(sql),
            max_tokens.map(sql),
            deadline.map(iso),
        ),
    )
}

pub(super) fn spend(
    change: &mut Change<'_>,
    agent: AgentNumber,
    used: Used,
) -> rusqlite::Result<()> {
    change.run(
        "UPDATE budgets SET turns = ?2, tokens = ?3 WHERE agent = ?1",
        (sql(agent), sql(used.turns), sql(used.tokens)),
    )
}

/// The agent is gone: what it has used goes to the one above it, unless somebody below it lives.
pub(super) fn fold(change: &mut Change<'_>, agent: AgentNumber) -> rusqlite::Result<()> {
    let mut next = Some(agent);
    while let Some(agent) = next {
        let Some((parent, used)) = over(change, agent)? else {
            return Ok(());
        };
        change.run("DELETE FROM budgets WHERE agent = ?1", [sql(agent)])?;
        if let Some(parent) = parent {
            let most = sql(LIMIT_AMOUNT_MAX);
            change.run(
                "UPDATE budgets SET gone_turns = min(?4, gone_turns + ?2), \
                 gone_tokens = min(?4, gone_tokens + ?3) WHERE agent = ?1",
                (sql(parent), sql(used.turns), sql(used.tokens), most),
            )?;
        }
        next = parent;
    }
    Ok(())
}

/// Does the same for every agent that is gone.
pub(super) fn fold_gone(change: &mut Change<'_>) -> rusqlite::Result<()> {
    let text = "SELECT agent FROM budgets WHERE NOT EXISTS (SELECT 1 FROM agents \
                WHERE number = agent AND session_status IN ('active', 'dormant')) \
                ORDER BY agent DESC";
    let mut statement = change.statements.prepare(text)?;
    let gone = statement.query_map((), |row| number(row, 0))?;
    let gone: Vec<AgentNumber> = gone.collect::<rusqlite::Result<_>>()?;
    gone.into_iter().try_for_each(|agent| fold(change, agent))
}

/// Who stands above a budget that is over, and what was used of it in all.
fn over(
    change: &Change<'_>,
    agent: AgentNumber,
) -> rusqlite::Result<Option<(Option<AgentNumber>, Used)>> {
    let text = "SELECT parent, turns, tokens, gone_turns, gone_tokens FROM budgets AS own \
                WHERE agent = ?1 \
                AND NOT EXISTS (SELECT 1 FROM budgets AS below WHERE below.parent = own.agent) \
                AND NOT EXISTS (SELECT 1 FROM agents WHERE agents.number = own.agent \
                AND session_status IN ('active', 'dormant'))";
    let row = |row: &Row<'_>| Ok((optional_number(row, 0)?, used(row, 1)?.plus(used(row, 3)?)));
    change.statements.prepare(text)?.query_row([sql(agent)], row).optional()
}

/// All budgets, parents before their children.
pub(super) fn read(connection: &Connection) -> rusqlite::Result<Vec<KeptBudget>> {
    let text = "SELECT agent, parent, max_agents, max_turns, max_tokens, deadline, \
                turns, tokens, gone_turns, gone_tokens, \
                EXISTS (SELECT 1 FROM agents WHERE agents.number = budgets.agent \
                AND session_status IN ('active', 'dormant')) \
                FROM budgets ORDER BY agent";
    connection.prepare_cached(text)?.query_map((), budget)?.collect()
}

fn budget(row: &Row<'_>) -> rusqlite::Result<KeptBudget> {
    let deadline = row.get_ref(5)?.as_str_or_null()?.map(str::parse).transpose();
    let bounds = Bounds {
        max_agents: optional_number(row, 2)?,
        max_turns: optional_number(row, 3)?,
        max_tokens: optional_number(row, 4)?,
        deadline: deadline.map_err(|error| unreadable(5, error))?,
    };
    Ok(KeptBudget {
        agent: number(row, 0)?,
        parent: optional_number(row, 1)?,
        bounds,
        own: used(row, 6)?,
        gone: used(row, 8)?,
        presence: if row.get(10)? { Presence::Here } else { Presence::Gone },
    })
}

/// Turns and tokens, which stand beside each other.
fn used(row: &Row<'_>, column: usize) -> rusqlite::Result<Used> {
    Ok(Used { turns: number(row, column)?, tokens: number(row, column + 1)? })
}

fn optional_number(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    let found = row.get::<_, Option<i64>>(column)?;
    found.map(|_| number(row, column)).transpose()
}
