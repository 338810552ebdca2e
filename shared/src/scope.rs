//! Sources that a reader may see: only ids, so that code that queries data needs no account.
//!
//! Objects outside a scope do not exist for its holder: the answer is the same as for an unknown id.

use crate::catalog::{base_chart, job};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Objects that a reader may see. Cheap to clone; two readers with the same grants have equal scopes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Everything, now and later: `serve`, and an admin of the hub.
    All,
    /// The objects of some teams.
    Only {
        /// Ids of the teams.
        teams: Arc<BTreeSet<String>>,
        /// Ids of the sources that are granted to them. The id of a source is its name in the store: 26 letters for an
        /// agent's, the host name for the hub's own machine.
        sources: Arc<BTreeSet<String>>,
        /// Ids of charts that a share link leaves out.
        hidden: Arc<BTreeSet<String>>,
        /// Ids of the sources and teams in whose data names of people are hidden.
        nameless: Arc<BTreeSet<String>>,
    },
}

impl Scope {
    /// The scope of these teams and the sources that are granted to them, both by id.
    pub fn only(teams: impl IntoIterator<Item = String>, sources: impl IntoIterator<Item = String>) -> Self {
        let (teams, sources) = (teams.into_iter().collect(), sources.into_iter().collect());
        let (hidden, nameless) = (Arc::default(), Arc::default());
        Scope::Only { teams: Arc::new(teams), sources: Arc::new(sources), hidden, nameless }
    }

    /// The same without these charts, by id. A reader of everything sees all charts.
    pub fn without_charts(self, charts: impl IntoIterator<Item = String>) -> Self {
        match self {
            Scope::All => Scope::All,
            Scope::Only { teams, sources, nameless, .. } => {
                Scope::Only { teams, sources, hidden: Arc::new(charts.into_iter().collect()), nameless }
            }
        }
    }

    /// The same with these teams, by id, in place of its own.
    pub fn with_teams(&self, teams: impl IntoIterator<Item = String>) -> Self {
        match self {
            Scope::All => Scope::All,
            Scope::Only { sources, hidden, nameless, .. } => Scope::Only {
                teams: Arc::new(teams.into_iter().collect()),
                sources: sources.clone(),
                hidden: hidden.clone(),
                nameless: nameless.clone(),
            },
        }
    }

    /// The same without names of people in the data of these sources and teams, by id. A reader of everything sees all
    /// names.
    pub fn without_names(self, ids: impl IntoIterator<Item = String>) -> Self {
        match self {
            Scope::All => Scope::All,
            Scope::Only { teams, sources, hidden, .. } => {
                Scope::Only { teams, sources, hidden, nameless: Arc::new(ids.into_iter().collect()) }
            }
        }
    }

    /// Whether names of people are hidden in the data of a source or a team, by its id.
    pub fn hides_names_of(&self, id: &str) -> bool {
        matches!(self, Scope::Only { nameless, .. } if nameless.contains(id))
    }

    /// Whether names of people are hidden anywhere.
    pub fn hides_names(&self) -> bool {
        matches!(self, Scope::Only { nameless, .. } if !nameless.is_empty())
    }

    /// Whether a chart, by its id, and all series of it are left out. The chart of any value of a job stands for those
    /// of all values, which come and go.
    pub fn hides(&self, chart: &str) -> bool {
        match self {
            Scope::All => false,
            Scope::Only { hidden, .. } => {
                let of_job = || chart.starts_with(job::PREFIX) && hidden.contains(job::VALUE.chart);
                hidden.contains(chart) || hidden.contains(base_chart(chart)) || of_job()
            }
        }
    }

    /// Whether any chart is left out.
    pub fn hides_any(&self) -> bool {
        matches!(self, Scope::Only { hidden, .. } if !hidden.is_empty())
    }

    /// Nothing at all.
    pub fn nothing() -> Self {
        Scope::only([], [])
    }

    /// Whether the holder sees a source, by its id.
    pub fn sees(&self, source: &str) -> bool {
        match self {
            Scope::All => true,
            Scope::Only { sources, .. } => sources.contains(source),
        }
    }

    /// Whether the holder sees the objects of a team, by the team's id.
    pub fn has_team(&self, team: &str) -> bool {
        match self {
            Scope::All => true,
            Scope::Only { teams, .. } => teams.contains(team),
        }
    }

    /// Whether everything of the other scope is in this one.
    pub fn includes(&self, other: &Scope) -> bool {
        match (self, other) {
            (Scope::All, _) => true,
            (_, Scope::All) => false,
            (
                Scope::Only { teams, sources, hidden, nameless },
                Scope::Only { teams: their_teams, sources: their_sources, hidden: theirs, .. },
            ) => {
                // Names that are hidden in what the other scope does not have are no loss.
                let names_less =
                    |id: &String| (their_sources.contains(id) || their_teams.contains(id)) && !other.hides_names_of(id);
                their_teams.is_subset(teams)
                    && their_sources.is_subset(sources)
                    && hidden.is_subset(theirs)
                    && !nameless.iter().any(names_less)
            }
        }
    }
}

/// Times that a reader may see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bounds {
    /// All stored and future times.
    #[default]
    All,
    /// Only a span, milliseconds since the Unix epoch, both ends included.
    Span(i64, i64),
    /// The newest milliseconds of this number, and all future ones.
    Window(i64),
}

impl Bounds {
    /// The visible part of a span; None if there is none.
    pub fn within(self, now: i64, from: i64, to: i64) -> Option<(i64, i64)> {
        let (from, to) = match self {
            Bounds::All => (from, to),
            Bounds::Span(first, last) => (from.max(first), to.min(last)),
            Bounds::Window(length) => (from.max(now.saturating_sub(length)), to),
        };
        (from <= to).then_some((from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds_of(sources: &[&str]) -> Scope {
        Scope::only(["t".to_string()], sources.iter().map(|id| id.to_string()))
    }

    #[test]
    fn only_what_is_granted_is_seen_and_never_by_a_part_of_its_id() {
        let scope = bounds_of(&["abc", "d"]);
        assert_eq!(
            ["abc", "d", "ab", "abcd", "", "ABC", "*"].map(|id| scope.sees(id)),
            [true, true, false, false, false, false, false]
        );
        assert!(scope.has_team("t") && !scope.has_team("abc") && !scope.sees("t"));
        assert!(!Scope::nothing().sees("") && !Scope::nothing().has_team(""));
        assert!(Scope::All.sees("whatever") && Scope::All.has_team("whatever"));
    }

    #[test]
    fn a_span_is_cut_to_what_may_be_seen() {
        assert_eq!(Bounds::All.within(100, 5, 9), Some((5, 9)));
        assert_eq!(Bounds::Span(10, 20).within(100, 0, 15), Some((10, 15)));
        assert_eq!(Bounds::Span(10, 20).within(100, i64::MIN, i64::MAX), Some((10, 20)));
        assert_eq!((Bounds::Span(10, 20).within(100, 21, 90), Bounds::Span(10, 20).within(100, 0, 9)), (None, None));
        assert_eq!(Bounds::Window(30).within(100, 0, 100), Some((70, 100)));
        assert_eq!(Bounds::Window(30).within(100, 0, 69), None);
    }

    #[test]
    fn a_smaller_grant_is_told_from_a_larger_one() {
        assert!(
            bounds_of(&["a", "b"]).includes(&bounds_of(&["b"])) && !bounds_of(&["b"]).includes(&bounds_of(&["a", "b"]))
        );
        assert!(
            Scope::All.includes(&Scope::All)
                && !bounds_of(&["a"]).includes(&Scope::All)
                && Scope::All.includes(&bounds_of(&["a"]))
        );
        assert!(bounds_of(&["a"]).includes(&Scope::nothing()) && !Scope::nothing().includes(&bounds_of(&[])));
        assert_eq!(bounds_of(&["a", "b"]), bounds_of(&["b", "a", "a"]));
    }

    #[test]
    fn hidden_names_are_less_only_where_they_were_seen() {
        let (whole, two) = (bounds_of(&["a"]), bounds_of(&["a", "b"]));
        let nameless = |scope: &Scope, id: &str| scope.clone().without_names([id.to_string()]);
        let less = nameless(&whole, "a");
        assert!(less.hides_names_of("a") && !less.hides_names_of("b") && less.hides_names() && less.sees("a"));
        assert!(!whole.hides_names() && !Scope::All.without_names(["a".to_string()]).hides_names());
        assert!(whole.includes(&less) && !less.includes(&whole) && less.includes(&less) && Scope::All.includes(&less));
        assert!(nameless(&two, "b").includes(&whole), "a further source without names takes nothing away");
        assert!(!nameless(&two, "t").includes(&whole), "nor does it give the names of a team back");
        assert!(less.without_charts(["cpu".to_string()]).hides_names_of("a"));
    }

    #[test]
    fn a_chart_that_is_left_out_is_less() {
        let (whole, less) = (bounds_of(&["a"]), bounds_of(&["a"]).without_charts(["cpu".to_string()]));
        assert!(less.hides("cpu") && less.hides_any() && !less.hides("cpu.cores") && less.sees("a"));
        let jobless = bounds_of(&["a"]).without_charts(["job".to_string()]);
        assert!(
            jobless.hides("job") && jobless.hides("job.loss") && jobless.hides("job.step") && !jobless.hides("jobs")
        );
        assert!(!whole.hides("cpu") && !whole.hides_any() && !Scope::All.hides("cpu"));
        assert!(whole.includes(&less) && !less.includes(&whole) && Scope::All.includes(&less));
    }
}
