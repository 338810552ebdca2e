//! Silences: queries, creation and end.

use super::registry::{AlertRegistry, maker, scoped};
use records::silences::{self, SilenceRow};
use shared::alert::{MAX_TEXT_BYTES, Silence, Silences};
use shared::role::{KeyScope, Role};
use team::accounts::{Denied, Principal, random_id};

/// Maximum duration of a silence, seconds: 30 days.
const MAX_DURATION_S: i64 = 30 * 86_400;

/// Maximum number of silences of a team that have not ended.
const MAX_SILENCES: i64 = 500;

/// Maximum number of silences of one answer.
const ROWS: i64 = 200;

/// Maximum number of labels of one silence, and maximum length of their names and patterns, bytes.
const LABELS: usize = 16;
const LABEL: usize = 200;

/// The silence of a row; none if this version cannot read it.
pub(super) fn silence_of(row: SilenceRow) -> Option<Silence> {
    Some(Silence {
        matches: serde_json::from_str(&row.labels).ok()?,
        id: row.id,
        from: row.begins / 1_000,
        to: row.ends / 1_000,
        comment: row.comment,
        by: row.maker,
        held: u64::try_from(row.held).unwrap_or(0),
    })
}

fn checked(wanted: &Silence, now: i64) -> Result<(i64, i64), Denied> {
    let invalid = |sentence: &str| Err(Denied::Invalid(sentence.into()));
    let from = if wanted.from == 0 { now } else { wanted.from };
    if wanted.matches.is_empty() {
        return invalid("a silence needs a matcher: match has labels and patterns, such as {\"source\": \"node-3\"}");
    }
    let fits = |text: &str| (1..=LABEL).contains(&text.len()) && !text.chars().any(char::is_control);
    if wanted.matches.len() > LABELS || !wanted.matches.iter().all(|(label, pattern)| fits(label) && fits(pattern)) {
        return Err(Denied::Invalid(format!("match has at most {LABELS} labels and patterns of 1 to {LABEL} bytes")));
    }
    if from < 0 {
        return invalid("from is a time in Unix seconds; leave it out to begin now");
    }
    if wanted.to <= from || wanted.to <= now {
        return invalid("a silence ends after it begins and in the future; give its end in to");
    }
    if wanted.to.saturating_sub(from.max(now)) > MAX_DURATION_S || from > now.saturating_add(MAX_DURATION_S * 12) {
        return invalid("a silence lasts at most 30 days; create a new one then");
    }
    if wanted.comment.len() > MAX_TEXT_BYTES {
        return Err(Denied::Invalid(format!("a comment has at most {MAX_TEXT_BYTES} bytes")));
    }
    Ok((from, wanted.to))
}

impl AlertRegistry {
    /// Present and future silences of all teams, with the team's id.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn all_silences(&self) -> Result<Vec<(String, Silence)>, Denied> {
        let Some(records) = self.there().await? else { return Ok(Vec::new()) };
        let rows = silences::list(&mut *records.read().await?, None, self.now(), i64::MAX).await?;
        Ok(rows.into_iter().filter_map(|row| Some((row.team.clone(), silence_of(row)?))).collect())
    }

    /// The silences of the principal's teams: present and future ones, then ended ones, newest first.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn silences(&self, by: &Principal, team: Option<&str>) -> Result<Silences, Denied> {
        let Some(records) = self.there().await? else { return Ok(Silences::default()) };
        let mut on = records.read().await?;
        let mut rows = Vec::new();
        for team in self.teams(&mut on, by, team, Role::Viewer).await? {
            rows.extend(silences::list(&mut on, Some(&team.id), 0, ROWS).await?);
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.ends));
        Ok(Silences { silences: rows.into_iter().filter_map(silence_of).collect() })
    }

    /// Silences matching alerts for a while.
    ///
    /// # Errors
    /// [`Denied`]: the principal is no member of the team, or there are too many.
    pub async fn add_silence(&self, by: &Principal, team: Option<&str>, wanted: &Silence) -> Result<Silence, Denied> {
        scoped(by, KeyScope::AlertsWrite)?;
        let (from, to) = checked(wanted, self.now() / 1_000)?;
        let mut change = self.begin().await?;
        let team = self.team(&mut change, by, team, Role::Member).await?;
        if silences::count(&mut change, &team.id, self.now()).await? >= MAX_SILENCES {
            return Err(Denied::Conflict(format!("a team has at most {MAX_SILENCES} silences at once; end one first")));
        }
        let row = SilenceRow {
            id: random_id(),
            team: team.id.clone(),
            maker: maker(by),
            labels: serde_json::to_string(&wanted.matches).expect("texts only"),
            begins: from * 1_000,
            ends: to * 1_000,
            comment: wanted.comment.clone(),
            held: 0,
        };
        silences::add(&mut change, &row).await?;
        let what = Some(row.labels.clone());
        self.audit(&mut change, by, ("silence.add", &team.id), &row.id, (None, what)).await?;
        change.commit().await?;
        self.has_changed();
        silence_of(row).ok_or(Denied::Unknown)
    }

    /// Ends a silence now.
    ///
    /// # Errors
    /// [`Denied`]: it has ended already.
    pub async fn end_silence(&self, by: &Principal, id: &str) -> Result<(), Denied> {
        scoped(by, KeyScope::AlertsWrite)?;
        if self.there().await?.is_none() {
            return Err(Denied::Unknown);
        }
        let mut change = self.begin().await?;
        let row = silences::get(&mut change, id).await?;
        let row = row.filter(|row| by.role_in(&row.team).is_some()).ok_or(Denied::Unknown)?;
        self.team(&mut change, by, Some(&row.team), Role::Member).await?;
        if !silences::end(&mut change, id, self.now()).await? {
            return Err(Denied::Conflict("the silence has already ended".into()));
        }
        self.audit(&mut change, by, ("silence.end", &row.team), id, (Some(row.labels.clone()), None)).await?;
        change.commit().await?;
        self.has_changed();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_says_what_and_until_when() {
        let silence = |from, to| Silence {
            matches: [("source".to_string(), "node-*".to_string())].into(),
            from,
            to,
            ..Silence::default()
        };
        assert_eq!(checked(&silence(0, 1_100), 1_000), Ok((1_000, 1_100)));
        assert_eq!(checked(&silence(1_050, 1_100), 1_000), Ok((1_050, 1_100)));
        assert_eq!(checked(&silence(1_000, 1_000 + MAX_DURATION_S), 1_000), Ok((1_000, 1_000 + MAX_DURATION_S)));
        for (wrong, said) in [
            (silence(0, 1_000), "ends after"),
            (silence(500, 900), "in the future"),
            (silence(i64::MIN, 1_100), "Unix seconds"),
            (silence(1_000, 1_001 + MAX_DURATION_S), "30 days"),
            (silence(0, i64::MAX), "30 days"),
            (Silence { matches: [].into(), ..silence(0, 1_100) }, "needs a matcher"),
            (Silence { matches: [("a".into(), String::new())].into(), ..silence(0, 1_100) }, "1 to 200 bytes"),
            (Silence { comment: "x".repeat(2_001), ..silence(0, 1_100) }, "2000 bytes"),
        ] {
            let why = checked(&wrong, 1_000).expect_err("refused").to_string();
            assert!(why.contains(said), "{why}");
        }
    }
}
