//! Filters for the samples of an endpoint.

use super::key::Labels;
use regex::Regex;

/// One filter of a user: a regular expression for `{endpoint}.{sample name}`, and one for each of some labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Searched anywhere in `{endpoint}.{sample name}`.
    pub name: String,
    /// Label and expression; a missing label does not match.
    pub labels: Vec<(String, String)>,
}

impl Filter {
    /// # Errors
    /// A sentence about the invalid part.
    pub fn check(&self) -> Result<(), String> {
        Filters::new(std::slice::from_ref(self)).map(|_| ())
    }
}

/// Compiled filters. Empty ones keep everything; else a sample is kept if any filter matches it.
#[derive(Clone, Debug, Default)]
pub(super) struct Filters(Vec<(Regex, Vec<(String, Regex)>)>);

impl Filters {
    /// # Errors
    /// A sentence about the first invalid expression.
    pub(super) fn new(filters: &[Filter]) -> Result<Self, String> {
        // An expression comes from the configuration; the limit only prevents `{1000}{1000}` from taking all memory.
        let regex = |text: &str| {
            let built = regex::RegexBuilder::new(text).size_limit(1 << 20).build();
            built.map_err(|error| format!("{text:?} is not a regular expression: {}", last_line(&error.to_string())))
        };
        let labels = |filter: &Filter| {
            filter.labels.iter().map(|(label, text)| Ok((label.clone(), regex(text)?))).collect::<Result<_, String>>()
        };
        filters.iter().map(|f| Ok((regex(&f.name)?, labels(f)?))).collect::<Result<_, String>>().map(Filters)
    }

    /// Whether a sample is kept; `name` is `{endpoint}.{sample name}`.
    pub(super) fn keep(&self, name: &str, labels: &Labels<'_>) -> bool {
        let matches =
            |(label, regex): &(String, Regex)| labels.iter().any(|(l, v)| **l == **label && regex.is_match(v));
        self.0.is_empty() || self.0.iter().any(|(regex, wanted)| regex.is_match(name) && wanted.iter().all(matches))
    }
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or("").trim_start_matches("error: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(name: &str, labels: &[(&str, &str)]) -> Filter {
        Filter { name: name.into(), labels: labels.iter().map(|(l, r)| (l.to_string(), r.to_string())).collect() }
    }

    #[test]
    fn any_filter_keeps_and_all_its_labels_must_match() {
        let labels = vec![("gpu".into(), "0".to_string()), ("pod".into(), "train-7".to_string())];
        let keeps =
            |filters: &[Filter]| Filters::new(filters).expect("expressions").keep("dcgm.DCGM_FI_DEV_TEMP", &labels);
        assert!(keeps(&[]));
        assert!(keeps(&[filter("DCGM_FI_.*", &[])]));
        assert!(keeps(&[filter("^dcgm\\.", &[])]));
        assert!(!keeps(&[filter("^DCGM", &[])]), "the name has the endpoint's in front");
        assert!(keeps(&[filter("^other", &[]), filter("TEMP", &[("gpu", "[01]"), ("pod", "^train-\\d$")])]));
        assert!(!keeps(&[filter("TEMP", &[("gpu", "[01]"), ("pod", "^serve")])]));
        assert!(!keeps(&[filter("TEMP", &[("node", ".*")])]), "a missing label does not match");
    }

    #[test]
    fn what_is_no_expression_is_named() {
        let error = Filters::new(&[filter("a(", &[])]).expect_err("unclosed");
        assert!(error.starts_with("\"a(\" is not a regular expression: "), "{error}");
        assert!(Filters::new(&[filter("a", &[("l", "[")])]).is_err());
    }
}
