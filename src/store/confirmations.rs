//! Confirmations, and what they allow for good, as SQL inside the transaction that makes them durable.

use rusqlite::OptionalExtension;

use super::apply::{Change, text};
use super::database::{json, sql};
use super::{AgentNumber, ConfirmationAsked, Recipe};
use crate::choice::Choice;
use crate::id::ConfirmId;
use crate::limits::CONFIRMATIONS_KEPT_MAX;
use crate::policy::Allowances;

impl Change<'_> {
    pub(super) fn ask_confirmation(
        &mut self,
        agent: AgentNumber,
        asked: &ConfirmationAsked,
    ) -> rusqlite::Result<()> {
        let ConfirmationAsked { id, request, tool, options, expires_at } = asked;
        self.run(
            "INSERT INTO confirmations (confirm_id, agent, request, tool, options, status, \
             expires_at) SELECT ?2, ?1, ?3, ?4, ?5, 'pending', ?6 WHERE EXISTS (SELECT 1 FROM \
             agents WHERE number = ?1 AND session_status IN ('active', 'dormant')) \
             ON CONFLICT (confirm_id) DO NOTHING",
            (sql(agent), id.as_str(), request.as_str(), tool, text(options), &**expires_at),
        )
    }

    pub(super) fn resolve_confirmation(
        &mut self,
        agent: AgentNumber,
        id: &ConfirmId,
        decision: Choice,
        by: &str,
    ) -> rusqlite::Result<()> {
        // The first decision is the decision. Rows stand in the order of decisions, so that the newest
        // are kept, whenever somebody was asked.
        self.run(
            "UPDATE confirmations SET status = 'resolved', decision = ?3, resolved_by = ?4, \
             rowid = CASE rowid WHEN (SELECT max(rowid) FROM confirmations) THEN rowid \
             ELSE (SELECT max(rowid) + 1 FROM confirmations) END \
             WHERE agent = ?1 AND confirm_id = ?2 AND status = 'pending'",
            (sql(agent), id.as_str(), decision.name(), by),
        )?;
        self.run(
            "DELETE FROM confirmations WHERE status = 'resolved' AND rowid <= (SELECT rowid \
             FROM confirmations WHERE status = 'resolved' ORDER BY rowid DESC LIMIT 1 OFFSET ?1)",
            [sql(CONFIRMATIONS_KEPT_MAX as u64)],
        )
    }

    /// Adds to what is on record, so that of two changes that meet none is lost.
    pub(super) fn allow(&mut self, agent: AgentNumber, more: &Allowances) -> rusqlite::Result<()> {
        let kept = self
            .statements
            .prepare("SELECT recipe FROM recipes WHERE agent = ?1")?
            .query_row([sql(agent)], |row| json::<Recipe>(row, 0))
            .optional()?;
        let Some(recipe) = kept else { return Ok(()) };
        let mut allowances = recipe.session_allowances.unwrap_or_default();
        allowances.add(more);
        self.run(
            "UPDATE recipes SET recipe = json_set(recipe, '$.session_allowances', json(?2)) \
             WHERE agent = ?1",
            (sql(agent), text(&allowances)),
        )
    }
}
